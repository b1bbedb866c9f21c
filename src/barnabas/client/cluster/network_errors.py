"""Why there is no answer: the network's words turned into the errors that users meet."""

import errno
import socket
import ssl
from collections.abc import Mapping

from barnabas.client.errors import KafkaError
from barnabas.net.sasl import AuthenticationFailed
from barnabas.wire.errors import ErrorCode

_LASTING = frozenset(
    {KafkaError._AUTHENTICATION, KafkaError._SSL, int(ErrorCode.UNSUPPORTED_VERSION)}
)
"""What asking again does not mend."""


def network_error(failure: OSError) -> KafkaError:
    """The error for a request that was not answered; its text names the address and why."""
    code = _code(failure)
    return KafkaError(code, failure.strerror or str(failure), retriable=code not in _LASTING)


def no_broker_error(failures: Mapping[str, OSError]) -> KafkaError:
    """The error when everybody was asked in vain, by address."""
    if not failures:
        return KafkaError(KafkaError._ALL_BROKERS_DOWN, "bootstrap.servers names nobody to ask")
    errors = [network_error(failure) for failure in failures.values()]
    codes = {error.code() for error in errors}
    alike = codes <= {KafkaError._TIMED_OUT} or codes <= {KafkaError._RESOLVE}
    return KafkaError(
        codes.pop() if alike else KafkaError._ALL_BROKERS_DOWN,
        "no broker answers: " + "; ".join(error.str() for error in errors),
        retriable=True,
    )


def _code(failure: OSError) -> int:
    if isinstance(failure, TimeoutError):
        return KafkaError._TIMED_OUT
    if isinstance(failure, AuthenticationFailed):
        return KafkaError._AUTHENTICATION
    if isinstance(failure, ssl.SSLError):
        return KafkaError._SSL
    if isinstance(failure, socket.gaierror):
        return KafkaError._RESOLVE
    if failure.errno == errno.EPROTONOSUPPORT:
        return int(ErrorCode.UNSUPPORTED_VERSION)
    return KafkaError._TRANSPORT
