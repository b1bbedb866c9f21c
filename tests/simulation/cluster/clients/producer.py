"""Producers of numbered records with acks=all, one batch at a time."""

import asyncio
from typing import Any

from tests.simulation.cluster.clients.client import Client, error_name
from tests.simulation.cluster.events import Acknowledged, PartitionKey
from tests.simulation.world.events import Violation

from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from barnabas.wire.messages.producer_ids import InitProducerIdRequest
from barnabas.wire.records.build import Record, build_batch

ALL_IN_SYNC = -1
TIMEOUT_MS = (300, 900)
"""The timeout of the broker, at random; the connection has a little more."""

RETRIABLE_ERRORS = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.KAFKA_STORAGE_ERROR,
    }
)


class Producer(Client):
    """Produces to one partition until it must finish; it completes its last batch."""

    def __init__(self, world: Any, name: str, key: PartitionKey, *, idempotent: bool) -> None:
        super().__init__(world, name)
        self.key = key
        self.is_idempotent = idempotent
        self.is_finishing = False
        self.is_done = False
        self.written = 0
        self._producer_id, self._producer_epoch = -1, -1
        self._sequence = 0
        self._pause_ms = self.random.choice((30, 100, 300))

    async def run(self) -> None:
        if self.is_idempotent:
            await self._get_producer_id()
        while not self.is_finishing:
            await self._write([self.next_record() for _ in range(self.random.randint(1, 4))])
            await asyncio.sleep(self.random.uniform(0, 2 * self._pause_ms) / 1000)
        self.is_done = True

    def next_record(self) -> Record:
        """Returns a record with the next number."""
        self.written += 1
        return Record(0, self.now_ms, None, f"{self.name}/{self.written}".encode(), [])

    async def _get_producer_id(self) -> None:
        while True:
            broker = self.random.choice(self.world.layout.brokers)
            try:
                response = await self.send_request(
                    broker, InitProducerIdRequest(transactional_id=None), 2_000
                )
            except OSError:
                await self.back_off()
                continue
            if response.error_code == ErrorCode.NONE:
                self._producer_id, self._producer_epoch = (
                    response.producer_id,
                    response.producer_epoch,
                )
                return
            self.world.events.note(
                self.name, f"gets no producer id: {error_name(response.error_code)}"
            )
            await self.back_off()

    async def _write(self, records: list[Record]) -> None:
        """Produces a batch, with retries until it is acknowledged."""
        while True:
            base_offset = await self._try(records)
            if base_offset is not None:
                break
            await self.back_off()
            await self.refresh_metadata()
        self._sequence += len(records)
        led = await self.find_leader(self.key)
        values = tuple(record.value for record in records)
        self.world.events.record(Acknowledged(self.name, led.topic, self.key, base_offset, values))

    async def _try(self, records: list[Record]) -> int | None:
        led = await self.find_leader(self.key)
        batch = build_batch(
            records,
            producer_id=self._producer_id,
            producer_epoch=self._producer_epoch,
            base_sequence=self._sequence if self.is_idempotent else -1,
        )
        topic_id, index = self.key
        timeout_ms = self.random.choice(TIMEOUT_MS)
        partition = PartitionProduceData(index=index, records=batch)
        request = ProduceRequest(
            acks=ALL_IN_SYNC,
            timeout_ms=timeout_ms,
            topic_data=[TopicProduceData(topic_id=topic_id, partition_data=[partition])],
        )
        try:
            response = await self.send_request(led.leader, request, timeout_ms + 200)
        except OSError:
            return None
        result = response.responses[0].partition_responses[0]
        if result.error_code == ErrorCode.NONE:
            base_offset: int = result.base_offset
            return base_offset
        if result.error_code not in RETRIABLE_ERRORS:
            self.world.events.fail(
                Violation(
                    f"{self.name} gets an error for {led.topic}-{index} from node {led.leader}: "
                    f"{error_name(result.error_code)} {result.error_message}, "
                    f"sequence {self._sequence}"
                ),
                "Acknowledgements",
            )
        return None
