"""Turns the errors of connections into the errors that users get."""

import errno
import socket
import ssl
from collections.abc import Mapping

from barnabas.client.errors import KafkaError
from barnabas.net.sasl import AuthenticationFailed
from barnabas.wire.errors import ErrorCode

_NOT_RETRIABLE = frozenset(
    {KafkaError._AUTHENTICATION, KafkaError._SSL, int(ErrorCode.UNSUPPORTED_VERSION)}
)
"""Errors that a retry does not fix."""


def network_error(exception: OSError) -> KafkaError:
    """Returns the error of a request without a response; its text names the address and cause."""
    code = _code(exception)
    return KafkaError(
        code, exception.strerror or str(exception), retriable=code not in _NOT_RETRIABLE
    )


def no_broker_error(exceptions: Mapping[str, OSError]) -> KafkaError:
    """Returns the error for the case that every address has failed."""
    if not exceptions:
        return KafkaError(KafkaError._ALL_BROKERS_DOWN, "bootstrap.servers is empty")
    errors = [network_error(exception) for exception in exceptions.values()]
    codes = {error.code() for error in errors}
    is_same = codes <= {KafkaError._TIMED_OUT} or codes <= {KafkaError._RESOLVE}
    return KafkaError(
        codes.pop() if is_same else KafkaError._ALL_BROKERS_DOWN,
        "no broker responds: " + "; ".join(error.str() for error in errors),
        retriable=True,
    )


def _code(exception: OSError) -> int:
    if isinstance(exception, TimeoutError):
        return KafkaError._TIMED_OUT
    if isinstance(exception, AuthenticationFailed):
        return KafkaError._AUTHENTICATION
    if isinstance(exception, ssl.SSLError):
        return KafkaError._SSL
    if isinstance(exception, socket.gaierror):
        return KafkaError._RESOLVE
    if exception.errno == errno.EPROTONOSUPPORT:
        return int(ErrorCode.UNSUPPORTED_VERSION)
    return KafkaError._TRANSPORT
