"""The `barnabas` command, which imports a subcommand when it is called.

An error is one line that says what to do, and an exit status. A traceback is printed only for bugs.
"""

from enum import IntEnum
from importlib import import_module
from typing import Any

import click

from barnabas import __version__
from barnabas.cli.operations.errors import (
    CommandError,
    describe_error,
    is_a,
    kafka_error_of,
    require_utf8,
)
from barnabas.cli.options import fail_with_suggestion
from barnabas.cli.signals import exit_on_signal

SUBCOMMANDS = {
    "up": "Run one or more brokers on this machine.",
    "start": "Run a node from a server.properties file.",
    "registry": "Run a schema registry.",
    "schemas": "List, register, check and delete schemas.",
    "storage": "Format and inspect the log directories of a node.",
    "produce": "Send lines of standard input to a topic.",
    "consume": "Print the records of a topic.",
    "topics": "Create, list, describe, grow and delete topics.",
    "configs": "Show and change configs of topics, brokers and groups.",
    "acls": "List, add and remove ACLs.",
    "users": "List, add and remove SCRAM users.",
    "quotas": "List, set and remove quotas of clients.",
    "groups": "Describe consumer groups, reset their offsets.",
    "offsets": "Show the earliest and latest offsets of partitions.",
    "records": "Delete records.",
    "transactions": "Describe transactions, abort hanging ones.",
    "cluster": "Describe the brokers and partitions with problems.",
    "quorum": "Describe the metadata quorum.",
    "leaders": "Elect leaders of partitions.",
    "reassign": "Move partitions to other brokers.",
    "log-dirs": "Show the log directories of brokers.",
    "features": "Describe, upgrade and downgrade feature levels.",
    "perf": "Measure throughput and latency.",
    "connect": "Run connectors, and manage them.",
    "spark": "Print Spark settings, or start Spark with them.",
    "dump-log": "Print the contents of partition files.",
}
"""Each is the `command` of a module of `barnabas.cli.commands`, except those of `_MODULES`."""

_MODULES = {
    "start": "up",
    "offsets": "partitions",
    "records": "partitions",
    "leaders": "partitions",
    "log-dirs": "partitions",
}
"""The modules of the subcommands that share one, in which they have their own names."""


class LazyGroup(click.Group):
    """Imports a subcommand when it is called, and prints its errors in one line."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(SUBCOMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in SUBCOMMANDS:
            return None
        name = cmd_name.replace("-", "_")
        module = import_module(f"barnabas.cli.commands.{_MODULES.get(cmd_name, name)}")
        command: click.Command = getattr(module, name if cmd_name in _MODULES else "command")
        return command

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            require_utf8(args)
        except CommandError as error:
            ctx.fail(str(error))
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        fail_with_suggestion(ctx, args[0], SUBCOMMANDS)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(SUBCOMMANDS.items()))

    def invoke(self, ctx: click.Context) -> Any:
        with exit_on_signal():
            try:
                return super().invoke(ctx)
            except Exception as error:
                if (cli_error := as_cli_error(error)) is not None:
                    raise cli_error from None
                raise


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="barnabas")
def barnabas() -> None:
    """Apache Kafka's system in Python: `barnabas up`, and any Kafka client works with it.

    \b
      barnabas up
      echo hello | barnabas produce greetings
      barnabas consume greetings --from-beginning

    `barnabas COMMAND --help` explains a command.
    """


class ExitStatus(IntEnum):
    """Exit statuses. Ctrl-C exits with 130, as Unix has it."""

    OK = 0
    FAILED = 1
    """The broker returned an error, or the command is not possible."""
    USAGE = 2
    UNREACHABLE = 3
    """No broker responded in time: the command can be retried."""


class CliError(click.ClickException):
    def __init__(self, message: str, status: ExitStatus) -> None:
        super().__init__(message)
        self.exit_code = int(status)  # type: ignore[misc]


def as_cli_error(error: Exception) -> CliError | None:
    """Returns the error to print, or None for a bug."""
    message = describe_error(error)
    if message is None:
        return None
    if is_a(error, "barnabas.schema_registry.client.errors", "RegistryUnreachableError"):
        return CliError(f"{message} --registry sets the address.", ExitStatus.UNREACHABLE)
    if is_a(error, "barnabas.cli.operations.connect", "ConnectUnreachableError"):
        return CliError(
            f"{message} Is a Connect worker running there? --connect sets the address.",
            ExitStatus.UNREACHABLE,
        )
    if not _is_unreachable(error):
        return CliError(message, ExitStatus.FAILED)
    return CliError(
        f"{message} (is a broker running there? --bootstrap-server sets the address)",
        ExitStatus.UNREACHABLE,
    )


def _is_unreachable(error: Exception) -> bool:
    from barnabas.client.errors import KafkaError

    return kafka_error_of(error) in (
        KafkaError._TRANSPORT,
        KafkaError._ALL_BROKERS_DOWN,
        KafkaError._RESOLVE,
        KafkaError._TIMED_OUT,
    )
