"""Errors as in `confluent_kafka`: a KafkaError is a value, a KafkaException carries one."""

import builtins
import functools
import logging
import operator
from typing import TYPE_CHECKING, NoReturn

from barnabas.client.codes import ErrorCodes, error_name, error_text
from barnabas.wire.errors import ErrorCode

if TYPE_CHECKING:
    from barnabas.client.settings import ConnectionSettings

_log = logging.getLogger("barnabas.client")


@functools.total_ordering
class KafkaError(ErrorCodes):
    """An error with a code; equal to the code, and to every error with that code."""

    __slots__ = ("_code", "_fatal", "_reason", "_retriable", "_txn_requires_abort")

    def __init__(
        self,
        error: int,
        reason: str | None = None,
        fatal: bool = False,
        retriable: bool = False,
        txn_requires_abort: bool = False,
    ) -> None:
        self._code = operator.index(error)
        self._reason = reason
        self._fatal = bool(fatal)
        self._retriable = bool(retriable)
        self._txn_requires_abort = bool(txn_requires_abort)

    def code(self) -> int:
        return self._code

    def name(self) -> str:
        """Returns the name of the code, a constant of this class."""
        return error_name(self._code)

    def str(self) -> str:
        """Returns a description for people."""
        return self._reason if self._reason is not None else error_text(self._code)

    def fatal(self) -> bool:
        """Returns whether the client cannot be used any more."""
        return self._fatal

    def retriable(self) -> bool:
        """Returns whether the same call may succeed when it is repeated."""
        return self._retriable

    def txn_requires_abort(self) -> bool:
        """Returns whether the transaction has to be aborted, and may then be repeated."""
        return self._txn_requires_abort

    def __eq__(self, other: object) -> bool:
        if isinstance(other, KafkaError):
            return self._code == other._code
        return self._code == other if isinstance(other, int) else NotImplemented

    def __lt__(self, other: object) -> bool:
        if isinstance(other, KafkaError):
            return self._code < other._code
        return self._code < other if isinstance(other, int) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._code)

    def __repr__(self) -> builtins.str:  # `str` is a method here
        fatal = "FATAL," if self._fatal else ""
        return f'KafkaError{{{fatal}code={self.name()},val={self._code},str="{self.str()}"}}'


class KafkaException(Exception):  # noqa: N818 - confluent_kafka's name for it
    """Raised when a call fails; `args[0]` is the KafkaError."""


def error_in(exception: KafkaException) -> KafkaError:
    """Returns the error of an exception that a client raised."""
    error: KafkaError = exception.args[0]
    return error


def fail(code: int, reason: str) -> NoReturn:
    """Raises an error that the client itself has detected."""
    raise KafkaException(KafkaError(code, reason))


def broker_error(code: int, message: str | None = None) -> KafkaError:
    """Returns the error of a response, with the broker's message if it sent one."""
    return KafkaError(code, message or None, retriable=ErrorCode.of(code).retriable)


def log_unhandled_error(settings: "ConnectionSettings", error: KafkaError) -> None:
    """Logs the error of a client without `error_cb`, to the client's `logger` if it has one.

    Only the loss of all brokers is logged, and a node that is no broker: the program would
    otherwise wait in silence. From the loss of a single broker the client recovers by itself.
    """
    if error.code() in (KafkaError._ALL_BROKERS_DOWN, ErrorCode.UNSUPPORTED_VERSION):
        client_log(settings).warning("%s: %s", settings.client_id, error.str())


def client_log(settings: "ConnectionSettings") -> logging.Logger:
    """Returns where a client logs: its setting `logger`, or else `barnabas.client`."""
    logger: logging.Logger = settings.logger or _log
    return logger
