"""What goes wrong, in words for whoever typed the command: no traceback is needed for these."""

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from barnabas.client.errors import KafkaError


class CommandError(Exception):  # noqa: N818 - it is no fault of the program's
    """What was asked for makes no sense; the message says why, in one line."""


def describe_error(error: Exception) -> str | None:
    """Why it could not be done; None for what only we can mend."""
    if isinstance(error, CommandError) or _is_a(error, "barnabas.node", "NodeError"):
        return str(error)
    kafka_error = kafka_error_of(error)
    return kafka_error.str() if kafka_error is not None else None


def kafka_error_of(error: Exception) -> "KafkaError | None":
    """What the cluster or the way to it said, if that is what failed."""
    if not _is_a(error, "barnabas.client.errors", "KafkaException"):
        return None
    kafka_error: KafkaError = error.args[0]
    return kafka_error


def _is_a(error: Exception, module: str, name: str) -> bool:
    """Whose class nobody has imported, that was not raised; so nothing is imported for it."""
    return module in sys.modules and isinstance(error, getattr(sys.modules[module], name))
