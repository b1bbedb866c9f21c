"""The errors of group requests, and which of them are retriable."""

from typing import Any

from barnabas.client.errors import KafkaError, broker_error
from barnabas.wire.errors import ErrorCode
from barnabas.wire.schema import Message

COORDINATOR_MOVED = frozenset({ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE})
_RETRIABLE = COORDINATOR_MOVED | {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.NETWORK_EXCEPTION,
}


def error_of(outcome: Message | KafkaError) -> KafkaError | None:
    """Returns the error of a request's outcome: it names the request that failed."""
    if isinstance(outcome, KafkaError):
        return outcome
    response: Any = outcome
    if not response.error_code:
        return None
    error = broker_error(response.error_code, getattr(response, "error_message", None))
    name = type(response).__name__.removesuffix("Response")
    return KafkaError(error.code(), f"{name} failed: {error.str()}", retriable=error.retriable())


def is_retriable(error: KafkaError) -> bool:
    """Whether a retry is all there is to do: no response, or not from the coordinator.

    Errors without a response are of the network, which are reported to `error_cb`.
    """
    return error.code() < ErrorCode.UNKNOWN_SERVER_ERROR or error.code() in _RETRIABLE


def max_poll_exceeded_error(interval_ms: int) -> KafkaError:
    return KafkaError(
        KafkaError._MAX_POLL_EXCEEDED,
        f"Application maximum poll interval ({interval_ms}ms) exceeded: its partitions go to other "
        "members until it polls again (raise max.poll.interval.ms if messages take that long)",
    )


def inconsistent_protocol_error(violation: Exception) -> KafkaError:
    """Returns the error for metadata or an assignment of another member that is unreadable."""
    return KafkaError(
        ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
        f"the metadata of another member is unreadable: {violation}",
    )
