"""Writes transactions to a topic as its only writer, whichever of several instances does so.

All instances use the same transactional id. Opening fences the writer of any other instance at the
broker: an instance that was paused and does not know that it was replaced can do no harm.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from barnabas.client._message import Message
from barnabas.client.errors import KafkaError, KafkaException, error_in
from barnabas.client.producer.aio import AioProducer

_MIN_TRANSACTION_TIMEOUT_MS = 1000


class RecordsTooLargeError(Exception):
    """The broker does not accept records of this size. The writer stays open."""


class TransactionalWriter:
    """Lives on one event loop. One transaction is written at a time."""

    def __init__(
        self,
        client_config: Mapping[str, Any],
        topic: str,
        transactional_id: str,
        timeout_ms: int,
    ) -> None:
        self._topic = topic
        self._timeout_s = timeout_ms / 1000
        self._config = {
            **client_config,
            "transactional.id": transactional_id,
            "transaction.timeout.ms": max(_MIN_TRANSACTION_TIMEOUT_MS, timeout_ms),
            "delivery.timeout.ms": timeout_ms,
            "request.timeout.ms": timeout_ms,
            "linger.ms": 0,
            "allow.auto.create.topics": False,  # an auto-created topic is not compacted
        }
        self._producer: AioProducer | None = None

    @property
    def is_open(self) -> bool:
        return self._producer is not None

    async def open(self) -> None:
        """Fences any other writer. Raises KafkaException."""
        await self.close()
        self._producer = AioProducer(self._config)
        await self._producer.init_transactions(self._timeout_s)

    async def write(
        self, records: Iterable[tuple[bytes, bytes | None]], partition: int
    ) -> Sequence[Message]:
        """Writes all records or none, and returns them when they are committed.

        After any error but RecordsTooLargeError it is unknown whether they were written: close
        the writer.
        """
        producer = self._producer
        assert producer is not None
        await producer.begin_transaction()
        try:
            written = await self._produce(producer, records, partition)
        except KafkaException as failure:
            if error_in(failure).code() != KafkaError.MSG_SIZE_TOO_LARGE:
                raise
            await producer.abort_transaction(self._timeout_s)
            raise RecordsTooLargeError(error_in(failure).str()) from failure
        await producer.commit_transaction(self._timeout_s)
        return written

    async def close(self) -> None:
        producer, self._producer = self._producer, None
        if producer is not None:
            await producer.purge()
            await producer.close(0)

    async def _produce(
        self,
        producer: AioProducer,
        records: Iterable[tuple[bytes, bytes | None]],
        partition: int,
    ) -> Sequence[Message]:
        deliveries = [
            await producer.produce(self._topic, value=value, key=key, partition=partition)
            for key, value in records
        ]
        return await asyncio.gather(*deliveries)
