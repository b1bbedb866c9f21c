"""Errors that a command prints in one line, without a traceback."""

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from barnabas.client.errors import KafkaError


class CommandError(Exception):
    """The command cannot be done as given; the message says why, in one line."""


def raise_for_errors(
    errors: "Mapping[str, KafkaError | None] | Mapping[tuple[str, int], KafkaError]",
) -> None:
    """Raises CommandError with the errors of names or partitions, if there are any."""
    failed = [
        f"{key if isinstance(key, str) else f'{key[0]}-{key[1]}'}: {error.str()}"
        for key, error in errors.items()
        if error is not None
    ]
    if failed:
        raise CommandError("; ".join(failed))


def describe_error(error: Exception) -> str | None:
    """Returns the message of an expected error, or None for a bug."""
    if isinstance(error, CommandError) or _is_a(error, "barnabas.node", "NodeError"):
        return str(error)
    kafka_error = kafka_error_of(error)
    return kafka_error.str() if kafka_error is not None else None


def kafka_error_of(error: Exception) -> "KafkaError | None":
    """Returns the error of the client if `error` is a KafkaException."""
    if not _is_a(error, "barnabas.client.errors", "KafkaException"):
        return None
    kafka_error: KafkaError = error.args[0]
    return kafka_error


def _is_a(error: Exception, module: str, name: str) -> bool:
    """An isinstance check without an import: a module that is not loaded has raised nothing."""
    return module in sys.modules and isinstance(error, getattr(sys.modules[module], name))
