"""What the user is told besides messages: errors in poll, and his callbacks."""

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
from barnabas.client.values import ThrottleEvent, TopicPartitionTuple
from barnabas.wire.errors import ErrorCode

TOPIC_PROPAGATION_S = 30.0
"""How long it may take until every broker knows a new topic."""

_UNKNOWN = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNKNOWN_TOPIC_ID,
    KafkaError._UNKNOWN_PARTITION,
}


class UserEvents:
    """Puts them into the inbox."""

    def __init__(
        self,
        settings: ConsumerSettings,
        inbox: FetchBuffer,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._settings = settings
        self._inbox = inbox
        self._clock = clock

    def call(self, function: Callable[..., Any], *arguments: Any) -> None:
        """Have a callback called in the user's thread."""
        self._inbox.put_event(CallbackEvent(function, arguments))

    def report(self, error: KafkaError) -> None:
        """An error that is of no partition comes out of poll."""
        self._inbox.put([BufferedError(error_message(error))])

    def report_for(self, each: TopicPartitionState, error: KafkaError) -> None:
        """An error of one partition comes out of poll, unless the user knows it."""
        notice = self.error_to_report(each, error)
        if notice is not None:
            self._inbox.put([notice])

    def error_to_report(self, each: TopicPartitionState, error: KafkaError) -> BufferedError | None:
        """The same for whoever puts it into the inbox himself, in order.

        An error is told once, until something else happens; that nobody knows the partition only
        when it lasts, since it may be new.
        """
        if error.code() in _UNKNOWN:
            now_s = self._clock()
            if each.unknown_since_s is None:
                each.unknown_since_s = now_s
            if now_s - each.unknown_since_s < TOPIC_PROPAGATION_S:
                return None
        if each.reported_error_code == error.code():
            return None
        each.reported_error_code = error.code()
        message = error_message(error, *each.key, max(each.fetch_offset, -1))
        return BufferedError(message, each.progress, each.progress.version)

    def on_connection_error(self, error: KafkaError) -> None:
        """For error_cb."""
        if self._settings.error_cb is not None:
            self.call(self._settings.error_cb, error)
        else:
            log_unhandled_error(self._settings, error)

    def on_throttled(self, broker_name: str, node_id: int, throttle_ms: int) -> None:
        """For throttle_cb."""
        if self._settings.throttle_cb is not None:
            event = ThrottleEvent(broker_name, node_id, throttle_ms / 1000)
            self.call(self._settings.throttle_cb, event)


class RebalanceType(Enum):
    """What happens to partitions when a group is rebalanced."""

    ASSIGNED = auto()
    REVOKED = auto()
    LOST = auto()


@dataclass(slots=True)
class RebalanceEvent:
    """Partitions come or go. The group waits until the user has been asked."""

    type: RebalanceType
    partitions: tuple[TopicPartitionTuple, ...]
    is_incremental: bool
    done: "asyncio.Future[None]"
    is_applied: bool = False  # by the user himself, in his callback


@dataclass(slots=True, frozen=True)
class CallbackEvent:
    """A callback and what to call it with."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
