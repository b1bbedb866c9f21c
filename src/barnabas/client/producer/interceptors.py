"""Interceptors: objects of the user that see every record before it is sent, and its outcome.

An interceptor may have `on_send(record)`, which returns the record or another one, and
`on_acknowledgement(error, message)`. As in Java, an exception of an interceptor stops no record.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from barnabas.client._message import Message
from barnabas.client.errors import KafkaError
from barnabas.client.producer.delivery_reports import OnDelivery

log = logging.getLogger(__name__)


@dataclass(slots=True)
class ProducerRecord:
    """The arguments of `produce`, which an interceptor may change."""

    topic: str
    value: Any = None
    key: Any = None
    partition: int = -1
    timestamp: int = 0
    headers: Any = None


class ProducerInterceptors:
    """Called by `ProducerBase` with the arguments of `produce`; returns those to use instead."""

    def __init__(self, interceptors: Sequence[Any]) -> None:
        self._on_send = [user.on_send for user in interceptors if hasattr(user, "on_send")]
        self._on_acknowledgement = [
            user.on_acknowledgement for user in interceptors if hasattr(user, "on_acknowledgement")
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
        for on_send in self._on_send:
            try:
                record = on_send(record) or record
            except Exception:
                log.exception("An interceptor failed on a record for topic %s", topic)
        if self._on_acknowledgement:
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
        for on_acknowledgement in self._on_acknowledgement:
            try:
                on_acknowledgement(error, message)
            except Exception:
                log.exception("An interceptor failed on the acknowledgement of %s", message)
        if callback is not None:
            callback(error, message)
