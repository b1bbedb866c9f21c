"""What goes wrong, in one line with what to do, and a status that programs can go by.

A traceback is for what only we can mend.
"""

from enum import IntEnum

import click

from barnabas.cli.operations.errors import client_error, reason


class Status(IntEnum):
    """How a command ends. Unix has 130 for Ctrl-C."""

    FINE = 0
    REFUSED = 1
    """By the broker, or because what was asked for cannot be."""
    USAGE = 2
    UNREACHABLE = 3
    """Nobody answered, or not in time: it may be tried again."""


class Told(click.ClickException):
    def __init__(self, message: str, status: Status) -> None:
        super().__init__(message)
        self.exit_code = int(status)  # type: ignore[misc]


def told(error: Exception) -> Told | None:
    """The error in a line, if it is one that whoever typed the command can do something about."""
    why = reason(error)
    if why is None:
        return None
    if not _is_unreachable(error):
        return Told(why, Status.REFUSED)
    return Told(
        f"{why} (does a broker run there? --bootstrap-server says where to look)",
        Status.UNREACHABLE,
    )


def _is_unreachable(error: Exception) -> bool:
    from barnabas.client.errors import KafkaError

    return client_error(error) in (
        KafkaError._TRANSPORT,
        KafkaError._ALL_BROKERS_DOWN,
        KafkaError._RESOLVE,
        KafkaError._TIMED_OUT,
        KafkaError._SSL,
        KafkaError._AUTHENTICATION,
    )
