"""Producers of numbered records, with acks=all: one batch at a time for each partition."""

import asyncio
from typing import Any

from tests.simulation.cluster.clients.client import Client, name_of
from tests.simulation.cluster.events import Acknowledged, Key
from tests.simulation.coordinator.events import Violation

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
"""How long the broker may take, at random; the connection is given a little more."""

TRIED_AGAIN = frozenset(
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
    """Writes to one partition until it is told to finish; what it began, it ends."""

    def __init__(self, world: Any, name: str, key: Key, *, idempotent: bool) -> None:
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
            await self._get_identity()
        while not self.is_finishing:
            count = self.random.randint(1, 4)
            values = tuple(
                f"{self.name}/{self.written + number}".encode() for number in range(count)
            )
            self.written += count
            await self._write(values)
            await asyncio.sleep(self.random.uniform(0, 2 * self._pause_ms) / 1000)
        self.is_done = True

    async def _get_identity(self) -> None:
        while True:
            broker = self.random.choice(self.world.layout.brokers)
            try:
                told = await self.ask(broker, InitProducerIdRequest(transactional_id=None), 2_000)
            except OSError:
                await self.wait_a_little()
                continue
            if told.error_code == ErrorCode.NONE:
                self._producer_id, self._producer_epoch = told.producer_id, told.producer_epoch
                return
            self.world.events.note(self.name, f"has no identity: {name_of(told.error_code)}")
            await self.wait_a_little()

    async def _write(self, values: tuple[bytes, ...]) -> None:
        """Until it is acknowledged, however often it must be tried."""
        records = [Record(0, self.now_ms, None, value, []) for value in values]
        while True:
            base_offset = await self._try(records)
            if base_offset is not None:
                break
            await self.wait_a_little()
            await self.learn()
        self._sequence += len(values)
        led = await self.led(self.key)
        self.world.events.tell(Acknowledged(self.name, led.topic, self.key, base_offset, values))

    async def _try(self, records: list[Record]) -> int | None:
        led = await self.led(self.key)
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
            answer = await self.ask(led.leader, request, timeout_ms + 200)
        except OSError:
            return None
        told = answer.responses[0].partition_responses[0]
        if told.error_code == ErrorCode.NONE:
            base_offset: int = told.base_offset
            return base_offset
        if told.error_code not in TRIED_AGAIN:
            self.world.events.fail(
                Violation(
                    f"{self.name} was refused in {led.topic}-{index} by node {led.leader}: "
                    f"{name_of(told.error_code)} {told.error_message}, sequence {self._sequence}"
                ),
                "Acknowledgements",
            )
        return None
