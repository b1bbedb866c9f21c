"""Why there is no answer: the network's words turned into the errors that users meet."""

import errno
import socket

from barnabas.client.errors import KafkaError
from barnabas.wire.errors import ErrorCode


def told_by_network(failure: OSError) -> KafkaError:
    """The error for a request that was not answered; its text names the address and why."""
    return KafkaError(_code(failure), failure.strerror or str(failure), retriable=_passes(failure))


def _code(failure: OSError) -> int:
    if isinstance(failure, TimeoutError):
        return KafkaError._TIMED_OUT
    if isinstance(failure, socket.gaierror):
        return KafkaError._RESOLVE
    if failure.errno == errno.EPROTONOSUPPORT:
        return ErrorCode.UNSUPPORTED_VERSION
    return KafkaError._TRANSPORT


def _passes(failure: OSError) -> bool:
    """Whether the same request may be answered later."""
    return failure.errno != errno.EPROTONOSUPPORT
