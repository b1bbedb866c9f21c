"""`barnabas` and its subcommands. What one needs is imported when it is called."""

from difflib import get_close_matches
from importlib import import_module
from typing import Any

import click

from barnabas import __version__
from barnabas.cli.errors import as_cli_error

SUBCOMMANDS = {
    "up": "Start a broker on this machine, or several.",
    "start": "Run a node from a server.properties file.",
    "registry": "Run a schema registry.",
    "storage": "Format and inspect the log directories of a node.",
    "produce": "Send lines of standard input to a topic.",
    "consume": "Print the records of topics.",
    "topics": "Make, list, describe, enlarge and remove topics.",
    "configs": "Show and change settings of topics, brokers, groups.",
    "groups": "Look at consumer groups, move their offsets.",
    "offsets": "Show where partitions begin and end.",
    "records": "Delete records.",
    "transactions": "Look at transactions, end those that hang.",
    "cluster": "Look at the brokers and the copies they hold.",
    "quorum": "Look at the controllers.",
    "leaders": "Elect leaders of partitions.",
    "reassign": "Move partitions to other brokers.",
    "log-dirs": "Show how much lies in the log directories.",
    "features": "Look at feature levels, raise and lower them.",
    "perf": "Measure how fast records are taken and given back.",
    "spark": "Settings that make Spark quick, and Spark started with them.",
    "dump-log": "Print what the files of a partition hold.",
}
"""Each is a module of this package that has a `command`."""


class LazyGroup(click.Group):
    """Imports a subcommand when it is called, and tells in a line what went wrong with it."""

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
        near = get_close_matches(args[0], SUBCOMMANDS, n=1)
        if near and near[0] != args[0] and not ctx.resilient_parsing:
            ctx.fail(f"No such command '{args[0]}'. Did you mean '{near[0]}'?")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(SUBCOMMANDS.items()))

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except Exception as error:
            if (line := as_cli_error(error)) is not None:
                raise line from None
            raise


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="barnabas")
def barnabas() -> None:
    """Apache Kafka's system in Python: `barnabas up`, and any Kafka client works with it."""
