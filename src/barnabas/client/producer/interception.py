"""Interceptors: objects of the user's that see every record on its way out and its outcome.

Each may have `on_send(record)`, which returns the record or another one, and
`on_acknowledgement(error, message)`. As in Java, what one of them raises stops no record.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from barnabas.client._message import Message
from barnabas.client.errors import KafkaError
from barnabas.client.producer.outbox import OnDelivery

log = logging.getLogger(__name__)


@dataclass(slots=True)
class ProducerRecord:
    """The arguments of `produce`, to look at and to change."""

    topic: str
    value: Any = None
    key: Any = None
    partition: int = -1
    timestamp: int = 0
    headers: Any = None


class Interception:
    """Called by `Intake.produce` with its arguments; gives them back, as they are to be sent."""

    def __init__(self, interceptors: Sequence[Any]) -> None:
        self._senders = [each.on_send for each in interceptors if hasattr(each, "on_send")]
        self._hearers = [
            each.on_acknowledgement for each in interceptors if hasattr(each, "on_acknowledgement")
        ]

    def __call__(
        self,
        topic: str,
        value: Any,
        key: Any,
        partition: int,
        timestamp: int,
        headers: Any,
        callback: OnDelivery | None,
    ) -> tuple[Any, ...]:
        record = ProducerRecord(topic, value, key, partition, timestamp, headers)
        for on_send in self._senders:
            try:
                record = on_send(record) or record
            except Exception:
                log.exception("an interceptor failed on a record for %s", topic)
        if self._hearers:
            callback = partial(self._acknowledged, callback)
        return (
            record.topic,
            record.value,
            record.key,
            record.partition,
            record.timestamp,
            record.headers,
            callback,
        )

    def _acknowledged(
        self, callback: OnDelivery | None, error: KafkaError | None, message: Message
    ) -> None:
        for on_acknowledgement in self._hearers:
            try:
                on_acknowledgement(error, message)
            except Exception:
                log.exception("an interceptor failed on the outcome of %s", message)
        if callback is not None:
            callback(error, message)
