"""The commands. What one needs is imported when it is called, so that `--help` stays quick."""

from importlib import import_module

import click

from barnabas import __version__

COMMANDS = {
    "up": "barnabas.cli.up",
    "start": "barnabas.cli.start",
    "storage": "barnabas.cli.storage",
    "cluster": "barnabas.cli.cluster",
    "quorum": "barnabas.cli.quorum",
}


class LazyGroup(click.Group):
    """A group whose commands live in modules of their own, each with a `command`."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = import_module(COMMANDS[cmd_name]).command
        return command


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="barnabas")
def main() -> None:
    """Apache Kafka's broker in Python: `barnabas up`, and any Kafka client works with it."""
