"""What the user is told besides messages: errors in poll, and his callbacks."""

import time
from collections.abc import Callable
from typing import Any

from barnabas.client.consumer.assigned import Assigned
from barnabas.client.consumer.events import Call
from barnabas.client.consumer.inbox import Inbox, Notice, message_of
from barnabas.client.errors import KafkaError, log_unhandled_error
from barnabas.client.settings import ConsumerSettings
from barnabas.client.values import ThrottleEvent
from barnabas.wire.errors import ErrorCode

PROPAGATION_S = 30.0
"""How long it may take until every broker knows a new topic."""

_UNKNOWN = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNKNOWN_TOPIC_ID,
    KafkaError._UNKNOWN_PARTITION,
}


class News:
    """Puts them into the inbox."""

    def __init__(
        self,
        settings: ConsumerSettings,
        inbox: Inbox,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._settings = settings
        self._inbox = inbox
        self._clock = clock

    def call(self, function: Callable[..., Any], *arguments: Any) -> None:
        """Have a callback called in the user's thread."""
        self._inbox.put_event(Call(function, arguments))

    def tell(self, error: KafkaError) -> None:
        """An error that is of no partition comes out of poll."""
        self._inbox.put([Notice(message_of(error))])

    def tell_of(self, each: Assigned, error: KafkaError) -> None:
        """An error of one partition comes out of poll, unless the user knows it."""
        notice = self.notice(each, error)
        if notice is not None:
            self._inbox.put([notice])

    def notice(self, each: Assigned, error: KafkaError) -> Notice | None:
        """The same for whoever puts it into the inbox himself, in order.

        An error is told once, until something else happens; that nobody knows the partition only
        when it lasts, since it may be new.
        """
        if error.code() in _UNKNOWN:
            now_s = self._clock()
            if each.unknown_since_s is None:
                each.unknown_since_s = now_s
            if now_s - each.unknown_since_s < PROPAGATION_S:
                return None
        if each.told_code == error.code():
            return None
        each.told_code = error.code()
        message = message_of(error, *each.key, max(each.fetch_offset, -1))
        return Notice(message, each.progress, each.progress.version)

    def of_connections(self, error: KafkaError) -> None:
        """For error_cb."""
        if self._settings.error_cb is not None:
            self.call(self._settings.error_cb, error)
        else:
            log_unhandled_error(self._settings, error)

    def throttled(self, broker_name: str, node_id: int, throttle_ms: int) -> None:
        """For throttle_cb."""
        if self._settings.throttle_cb is not None:
            event = ThrottleEvent(broker_name, node_id, throttle_ms / 1000)
            self.call(self._settings.throttle_cb, event)
