"""Readers of a compacted topic, which read the log of one replica from an offset to its end."""

import asyncio
from collections.abc import Iterator
from typing import Any

from tests.simulation.cluster.clients.client import PartitionLeader
from tests.simulation.cluster.clients.reader import Reader
from tests.simulation.cluster.events import Scanned, ScannedRecord

from barnabas.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic, PartitionData
from barnabas.wire.records.batch import iterate_batches
from barnabas.wire.records.read import read_records

MAX_BYTES = 2_000
TIMEOUT_MS = 700
READ_UNCOMMITTED, READ_COMMITTED = 0, 1


class CompactedReader(Reader):
    """Scans one partition, again and again."""

    async def run(self) -> None:
        while True:
            led = await self.find_leader(self.key)
            if not await self._scan(led):
                await self.back_off()
                await self.refresh_metadata()
            await asyncio.sleep(self.random.uniform(0.05, 0.4))

    async def _scan(self, led: PartitionLeader) -> bool:
        """Reads from one replica until there is nothing more. Returns whether it got there."""
        isolation = self.random.choice((READ_UNCOMMITTED, READ_COMMITTED))
        node_id = led.leader if self.random.random() < 0.6 else self.random.choice(led.replicas)
        start = self.random.choice((0, 0, self.random.randint(0, max(self.offset, 0))))
        offset, records = start, list[ScannedRecord]()
        while True:
            data = await self._fetch(led, node_id, offset, isolation)
            if data is None:
                return False
            records += [record for record in _visible_records(data) if record.offset >= offset]
            end = data.last_stable_offset if isolation else data.high_watermark
            if not data.records:
                break
            offset = max(header.next_offset for _, header in iterate_batches(data.records))
        self.offset = offset
        self.world.events.record(
            Scanned(
                self.name,
                f"node-{node_id}",
                led.topic,
                self.key,
                start,
                end,
                isolation == READ_COMMITTED,
                tuple(records),
            )
        )
        return True

    async def _fetch(
        self, led: PartitionLeader, node_id: int, offset: int, isolation: int
    ) -> PartitionData | None:
        topic_id, index = self.key
        partition = FetchPartition(
            partition=index,
            current_leader_epoch=led.leader_epoch,
            fetch_offset=offset,
            partition_max_bytes=MAX_BYTES,
        )
        request = FetchRequest(
            max_wait_ms=0,
            min_bytes=0,
            isolation_level=isolation,
            topics=[FetchTopic(topic_id=topic_id, partitions=[partition])],
        )
        try:
            response = await self.send_request(node_id, request, TIMEOUT_MS)
        except OSError:
            return None
        if response.error_code or not response.responses:
            return None
        data: PartitionData = response.responses[0].partitions[0]
        return None if data.error_code else data


def _visible_records(data: Any) -> Iterator[ScannedRecord]:
    """Yields the records that a consumer returns."""
    aborted = sorted(data.aborted_transactions or (), key=lambda entry: entry.first_offset)
    aborted_ids: set[int] = set()
    for position, header in iterate_batches(data.records):
        while aborted and aborted[0].first_offset <= header.last_offset:
            aborted_ids.add(aborted.pop(0).producer_id)
        if header.is_control:
            aborted_ids.discard(header.producer_id)
        elif not header.is_transactional or header.producer_id not in aborted_ids:
            for record in read_records(data.records, position):
                yield ScannedRecord(record.offset, header.leader_epoch, record.key, record.value)
