"""Errors of `barnabas`: one line that says what to do, and an exit status.

A traceback is printed only for bugs.
"""

from enum import IntEnum

import click

from barnabas.cli.operations.errors import describe_error, kafka_error_of


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
        KafkaError._SSL,
        KafkaError._AUTHENTICATION,
    )
