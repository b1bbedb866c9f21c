"""Why a member is not served, and which of that passes by itself."""

from typing import Any

from barnabas.client.errors import KafkaError, broker_error
from barnabas.wire.errors import ErrorCode
from barnabas.wire.schema import Message

COORDINATOR_MOVED = frozenset({ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE})
_PASSING = COORDINATOR_MOVED | {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.NETWORK_EXCEPTION,
}


def response_error(response: Message) -> KafkaError:
    """The error of a response that has one: which request failed, and why."""
    answer: Any = response
    error = broker_error(answer.error_code, getattr(answer, "error_message", None))
    what = type(response).__name__.removesuffix("Response")
    return KafkaError(error.code(), f"{what} failed: {error.str()}", retriable=error.retriable())


def is_retriable(error: KafkaError) -> bool:
    """Whether trying again is all there is to do: nobody answered, or not its coordinator.

    What no broker has said is of the network, and its own listeners are told.
    """
    return error.code() < ErrorCode.UNKNOWN_SERVER_ERROR or error.code() in _PASSING


def max_poll_exceeded_error(interval_ms: int) -> KafkaError:
    return KafkaError(
        KafkaError._MAX_POLL_EXCEEDED,
        f"Application maximum poll interval ({interval_ms}ms) exceeded: its partitions go to other "
        "members until it polls again (raise max.poll.interval.ms if messages take that long)",
    )


def inconsistent_protocol_error(violation: Exception) -> KafkaError:
    """A member of another make said something that its leader or its followers cannot read."""
    return KafkaError(
        ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
        f"what another member said cannot be understood: {violation}",
    )
