"""What goes wrong, in one line with what to do, and a status that programs can go by.

A traceback is for what only we can mend.
"""

from enum import IntEnum

import click

from barnabas.cli.operations.errors import describe_error, kafka_error_of


class ExitStatus(IntEnum):
    """How a command ends. Unix has 130 for Ctrl-C."""

    OK = 0
    FAILED = 1
    """By the broker, or because what was asked for cannot be."""
    USAGE = 2
    UNREACHABLE = 3
    """Nobody answered, or not in time: it may be tried again."""


class CliError(click.ClickException):
    def __init__(self, message: str, status: ExitStatus) -> None:
        super().__init__(message)
        self.exit_code = int(status)  # type: ignore[misc]


def as_cli_error(error: Exception) -> CliError | None:
    """The error in a line, if it is one that whoever typed the command can do something about."""
    why = describe_error(error)
    if why is None:
        return None
    if not _is_unreachable(error):
        return CliError(why, ExitStatus.FAILED)
    return CliError(
        f"{why} (does a broker run there? --bootstrap-server says where to look)",
        ExitStatus.UNREACHABLE,
    )


def _is_unreachable(error: Exception) -> bool:
    from barnabas.client.errors import KafkaError

    return kafka_error_of(error) in (
        KafkaError._TRANSPORT,
        KafkaError._ALL_BROKERS_DOWN,
        KafkaError._RESOLVE,
        KafkaError._TIMED_OUT,
        KafkaError._SSL,
        KafkaError._AUTHENTICATION,
    )
