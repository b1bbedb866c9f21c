"""What the user receives besides messages: errors from poll, rebalances and callbacks."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from barnabas.client.consumer.fetch_buffer import BufferedError, FetchBuffer, error_message
from barnabas.client.consumer.subscription_state import TopicPartitionState
from barnabas.client.errors import KafkaError, log_unhandled_error
from barnabas.client.settings import ConsumerSettings
from barnabas.client.values import PartitionKey, ThrottleEvent
from barnabas.wire.errors import ErrorCode

TOPIC_PROPAGATION_S = 30.0
"""How long a new topic may take to reach every broker."""

_UNKNOWN = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNKNOWN_TOPIC_ID,
    KafkaError._UNKNOWN_PARTITION,
}


class UserEvents:
    """Puts errors and callbacks into the fetch buffer, for the user's thread."""

    def __init__(
        self,
        settings: ConsumerSettings,
        buffer: FetchBuffer,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._settings = settings
        self._buffer = buffer
        self._clock = clock

    def call(self, function: Callable[..., Any], *arguments: Any) -> None:
        """Runs a callback in the user's thread."""
        self._buffer.put_event(CallbackEvent(function, arguments))

    def report(self, error: KafkaError, topic: str | None = None) -> None:
        """Returns an error that belongs to no partition from poll.

        The error of a topic has partition 0, as in librdkafka.
        """
        self._buffer.put([BufferedError(error_message(error, topic, None if topic is None else 0))])

    def report_for(self, partition: TopicPartitionState, error: KafkaError) -> None:
        """Returns an error of a partition from poll, unless it was reported before."""
        buffered = self.error_to_report(partition, error)
        if buffered is not None:
            self._buffer.put([buffered])

    def error_to_report(
        self, partition: TopicPartitionState, error: KafkaError
    ) -> BufferedError | None:
        """Returns the error to put into the buffer, or None if it must not be reported.

        An error is reported once, until the partition has another error or makes progress. An
        unknown partition is reported after a while, since it may be new.
        """
        if error.code() in _UNKNOWN:
            now_s = self._clock()
            if partition.unknown_since_s is None:
                partition.unknown_since_s = now_s
            if now_s - partition.unknown_since_s < TOPIC_PROPAGATION_S:
                return None
        if partition.reported_error_code == error.code():
            return None
        partition.reported_error_code = error.code()
        message = error_message(error, *partition.key, max(partition.fetch_offset, -1))
        return BufferedError(message, partition.progress, partition.progress.version)

    def on_connection_error(self, error: KafkaError) -> None:
        """Calls error_cb, or logs the error without one."""
        if self._settings.error_cb is not None:
            self.call(self._settings.error_cb, error)
        else:
            log_unhandled_error(self._settings, error)

    def on_throttled(self, broker_name: str, node_id: int, throttle_ms: int) -> None:
        """Calls throttle_cb."""
        if self._settings.throttle_cb is not None:
            event = ThrottleEvent(broker_name, node_id, throttle_ms / 1000)
            self.call(self._settings.throttle_cb, event)


class RebalanceType(Enum):
    """How a rebalance changes the assignment."""

    ASSIGNED = auto()
    REVOKED = auto()
    LOST = auto()


@dataclass(slots=True)
class RebalanceEvent:
    """A change of the assignment. The group waits until the user's callback has run."""

    type: RebalanceType
    partitions: tuple[PartitionKey, ...]
    is_incremental: bool
    done: "asyncio.Future[None]"
    is_applied: bool = False  # by the user's callback


@dataclass(slots=True, frozen=True)
class CallbackEvent:
    """A callback with its arguments."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
