"""Readers, who read from leaders and followers whatever these let them see."""

import asyncio
from typing import Any

from tests.simulation.cluster.clients.client import Client, Led
from tests.simulation.cluster.happenings import EndTold, Key, Read

from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from barnabas.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from barnabas.wire.records.batch import iterate_batches

LATEST = -1
WAIT_MS = 300
TIMEOUT_MS = 700
MAX_BYTES = 600
"""Little, so that a reader falls behind at times."""


class Reader(Client):
    """Reads one partition from its beginning, again and again."""

    def __init__(self, world: Any, name: str, key: Key) -> None:
        super().__init__(world, name)
        self.key = key
        self.offset = 0

    async def run(self) -> None:
        is_fine = True
        while True:
            led = await self.led(self.key)
            choice = self.random.random()
            if choice < 0.2 or not is_fine:  # a new leader may not know yet what counts
                is_fine = await self._ask_for_end(led)
            else:
                is_fine = await self._read(led, led.leader if choice < 0.7 else None)
            if not is_fine:
                await self.wait_a_little()
                await self.learn()
            elif choice > 0.97:
                self.offset = 0
            await asyncio.sleep(self.random.uniform(0.02, 0.3))

    def kept(self, outcome: Any) -> Any:
        if isinstance(outcome, FetchResponse):
            for topic in outcome.responses:
                for each in topic.partitions:
                    records = each.records
                    each.records = bytes(records) if isinstance(records, memoryview) else b""
        return outcome

    async def _read(self, led: Led, node_id: int | None) -> bool:
        node_id = self.random.choice(led.replicas) if node_id is None else node_id
        topic_id, index = self.key
        partition = FetchPartition(
            partition=index,
            current_leader_epoch=led.leader_epoch,
            fetch_offset=self.offset,
            partition_max_bytes=MAX_BYTES,
        )
        request = FetchRequest(
            max_wait_ms=WAIT_MS,
            min_bytes=1,
            topics=[FetchTopic(topic_id=topic_id, partitions=[partition])],
        )
        try:
            answer = await self.ask(node_id, request, TIMEOUT_MS)
        except OSError:
            return False
        if answer.error_code or not answer.responses:
            return False
        told = answer.responses[0].partitions[0]
        if told.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            self.offset = 0  # a follower that knows less than the one before
        if told.error_code:
            return False
        for position, header in iterate_batches(told.records):
            batch = told.records[position : position + header.size_bytes]
            self.world.events.tell(
                Read(
                    self.name,
                    f"node-{node_id}",
                    led.topic,
                    self.key,
                    header.base_offset,
                    header.next_offset,
                    batch,
                )
            )
            self.offset = max(self.offset, header.next_offset)
        return True

    async def _ask_for_end(self, led: Led) -> bool:
        asked_ms = self.now_ms
        partition = ListOffsetsPartition(
            partition_index=self.key[1], current_leader_epoch=led.leader_epoch, timestamp=LATEST
        )
        request = ListOffsetsRequest(
            replica_id=-1, topics=[ListOffsetsTopic(name=led.topic, partitions=[partition])]
        )
        try:
            answer = await self.ask(led.leader, request, TIMEOUT_MS)
        except OSError:
            return False
        told = answer.topics[0].partitions[0]
        if told.error_code:
            return False
        self.world.events.tell(
            EndTold(
                self.name,
                f"node-{led.leader}",
                led.topic,
                self.key,
                led.leader_epoch,
                asked_ms,
                told.offset,
            )
        )
        return True
