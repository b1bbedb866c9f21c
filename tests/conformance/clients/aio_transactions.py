"""Adapter for transactions of aiokafka."""

import asyncio
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from aiokafka import AIOKafkaProducer
from aiokafka.errors import ProducerFenced
from tests.conformance.clients.aio_groups import AiokafkaGroups, with_offsets
from tests.conformance.clients.client import SentRecord
from tests.conformance.clients.group_client import Committed, PartitionKey
from tests.conformance.clients.transaction_client import (
    TIMEOUT_MS,
    FencedError,
    TransactionalProducer,
    TransactionClient,
)


class AiokafkaTransactionalProducer(TransactionalProducer):
    def __init__(self, client: "AiokafkaTransactions", transactional_id: str, timeout_ms: int):
        self._client = client
        self._producer: AIOKafkaProducer = self._do(
            self._start(client.bootstrap, transactional_id, timeout_ms)
        )

    def begin(self) -> None:
        self._do(self._producer.begin_transaction())

    def send(self, topic: str, records: Sequence[SentRecord]) -> None:
        async def send_all() -> None:
            futures = [
                await self._producer.send(topic, record.value, record.key, record.partition)
                for record in records
            ]
            await asyncio.gather(*futures)

        self._do(send_all())

    def send_offsets(self, offsets: Mapping[PartitionKey, Committed], group_metadata: str) -> None:
        self._do(self._producer.send_offsets_to_transaction(with_offsets(offsets), group_metadata))

    def commit(self) -> None:
        self._do(self._producer.commit_transaction())

    def abort(self) -> None:
        self._do(self._producer.abort_transaction())

    def close(self) -> None:
        self._do(self._producer.stop())

    async def _start(
        self, bootstrap: str, transactional_id: str, timeout_ms: int
    ) -> AIOKafkaProducer:
        producer = AIOKafkaProducer(
            bootstrap_servers=bootstrap,
            transactional_id=transactional_id,
            transaction_timeout_ms=timeout_ms,
            linger_ms=1,
        )
        await producer.start()
        return producer

    def _do(self, work: Coroutine[Any, Any, Any]) -> Any:
        with translated_fencing_errors():
            return self._client._run(work)


class AiokafkaTransactions(AiokafkaGroups, TransactionClient):
    def transactional_producer(
        self, transactional_id: str, *, timeout_ms: int = TIMEOUT_MS
    ) -> TransactionalProducer:
        return AiokafkaTransactionalProducer(self, transactional_id, timeout_ms)


@contextmanager
def translated_fencing_errors() -> Iterator[None]:
    try:
        yield
    except ProducerFenced as exception:
        raise FencedError(str(exception)) from exception
