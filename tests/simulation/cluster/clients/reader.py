"""Readers, which fetch from leaders and followers."""

import asyncio
from typing import Any

from tests.simulation.cluster.clients.client import Client, PartitionLeader
from tests.simulation.cluster.events import LatestOffset, PartitionKey, Read

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
"""Small, so that a reader falls behind sometimes."""


class Reader(Client):
    """Reads one partition from its start, again and again."""

    def __init__(self, world: Any, name: str, key: PartitionKey) -> None:
        super().__init__(world, name)
        self.key = key
        self.offset = 0

    async def run(self) -> None:
        has_succeeded = True
        while True:
            led = await self.find_leader(self.key)
            choice = self.random.random()
            if choice < 0.2 or not has_succeeded:  # the high watermark of a new leader may be stale
                has_succeeded = await self._fetch_latest_offset(led)
            else:
                has_succeeded = await self._read(led, led.leader if choice < 0.7 else None)
            if not has_succeeded:
                await self.back_off()
                await self.refresh_metadata()
            elif choice > 0.97:
                self.offset = 0
            await asyncio.sleep(self.random.uniform(0.02, 0.3))

    def copy_response(self, outcome: Any) -> Any:
        if isinstance(outcome, FetchResponse):
            for topic in outcome.responses:
                for partition in topic.partitions:
                    records = partition.records
                    partition.records = bytes(records) if isinstance(records, memoryview) else b""
        return outcome

    async def _read(self, led: PartitionLeader, node_id: int | None) -> bool:
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
            response = await self.send_request(node_id, request, TIMEOUT_MS)
        except OSError:
            return False
        if response.error_code or not response.responses:
            return False
        partition_response = response.responses[0].partitions[0]
        if partition_response.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            self.offset = 0  # the high watermark of this follower is older
        if partition_response.error_code:
            return False
        for position, header in iterate_batches(partition_response.records):
            batch = partition_response.records[position : position + header.size_bytes]
            self.world.events.record(
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

    async def _fetch_latest_offset(self, led: PartitionLeader) -> bool:
        requested_ms = self.now_ms
        partition = ListOffsetsPartition(
            partition_index=self.key[1], current_leader_epoch=led.leader_epoch, timestamp=LATEST
        )
        request = ListOffsetsRequest(
            replica_id=-1, topics=[ListOffsetsTopic(name=led.topic, partitions=[partition])]
        )
        try:
            response = await self.send_request(led.leader, request, TIMEOUT_MS)
        except OSError:
            return False
        partition_response = response.topics[0].partitions[0]
        if partition_response.error_code:
            return False
        self.world.events.record(
            LatestOffset(
                self.name,
                f"node-{led.leader}",
                led.topic,
                self.key,
                led.leader_epoch,
                requested_ms,
                partition_response.offset,
            )
        )
        return True
