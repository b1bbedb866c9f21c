"""The `barnabas` command, which imports a subcommand when it is called."""

from difflib import get_close_matches
from importlib import import_module
from typing import Any

import click

from barnabas import __version__
from barnabas.cli.errors import as_cli_error

SUBCOMMANDS = {
    "up": "Run one or more brokers on this machine.",
    "start": "Run a node from a server.properties file.",
    "registry": "Run a schema registry.",
    "storage": "Format and inspect the log directories of a node.",
    "produce": "Send lines of standard input to a topic.",
    "consume": "Print the records of a topic.",
    "topics": "Create, list, describe, grow and delete topics.",
    "configs": "Show and change configs of topics, brokers and groups.",
    "groups": "Describe consumer groups, reset their offsets.",
    "offsets": "Show the earliest and latest offsets of partitions.",
    "records": "Delete records.",
    "transactions": "List transactions, abort hanging ones.",
    "cluster": "Describe the brokers and partitions with problems.",
    "quorum": "Describe the metadata quorum.",
    "leaders": "Elect leaders of partitions.",
    "reassign": "Move partitions to other brokers.",
    "log-dirs": "Show the log directories of brokers.",
    "features": "Describe, upgrade and downgrade feature levels.",
    "perf": "Measure throughput and latency.",
    "spark": "Print Spark settings, or start Spark with them.",
    "dump-log": "Print the contents of partition files.",
}
"""Each is a module of `barnabas.cli.commands` with a `command`."""


class LazyGroup(click.Group):
    """Imports a subcommand when it is called, and prints its errors in one line."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(SUBCOMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in SUBCOMMANDS:
            return None
        module = cmd_name.replace("-", "_")
        command: click.Command = import_module(f"barnabas.cli.commands.{module}").command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        matches = get_close_matches(args[0], SUBCOMMANDS, n=1)
        if matches and matches[0] != args[0] and not ctx.resilient_parsing:
            ctx.fail(f"No such command '{args[0]}'. Did you mean '{matches[0]}'?")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(SUBCOMMANDS.items()))

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except Exception as error:
            if (cli_error := as_cli_error(error)) is not None:
                raise cli_error from None
            raise


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="barnabas")
def barnabas() -> None:
    """Apache Kafka's system in Python: `barnabas up`, and any Kafka client works with it."""
