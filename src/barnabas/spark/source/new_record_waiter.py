"""Waiting for records where they are written: fetches that brokers answer when there are some.

A fetch session with each broker (KIP-227) says only what has changed since the last time, so that
nothing is sent for partitions in which nothing happens, however many they are.
"""

import asyncio
from collections import defaultdict

from barnabas.client.cluster import ClusterClient, Deadline
from barnabas.client.cluster.metadata import NO_LEADER
from barnabas.client.consumer.fetch_session import FetchSessionHandler, PartitionFetch
from barnabas.client.errors import KafkaException
from barnabas.client.settings import ConsumerSettings
from barnabas.spark.source.offsets import Offsets, SourcePartition
from barnabas.wire.errors import ErrorCode

_Wanted = dict[tuple[str, int], PartitionFetch]
"""Of partitions."""


class NewRecordWaiter:
    """Of one stream; lives on the loop."""

    def __init__(self, cluster: ClusterClient, settings: ConsumerSettings) -> None:
        self._cluster = cluster
        self._settings = settings
        self._isolation = int(settings.isolation_level == "read_committed")
        self._topics: set[str] = set()
        self._sessions: defaultdict[int, FetchSessionHandler] = defaultdict(FetchSessionHandler)
        self._parked: dict[int, asyncio.Future[dict[SourcePartition, int] | None]] = {}

    async def wait(self, ends: Offsets, timeout_ms: int) -> dict[SourcePartition, int] | None:
        """Where partitions end that have grown past these offsets; none when the time is over.

        None if a broker cannot tell: whoever waits has to look.
        """
        deadline = Deadline.after(timeout_ms)
        wanted = await self._wanted(ends, deadline)
        while wanted and not deadline.has_passed:
            for leader in wanted.keys() - self._parked.keys():
                asking = self._ask(leader, wanted[leader], deadline.remaining_ms())
                self._parked[leader] = asyncio.ensure_future(asking)
            waiting = [self._parked[leader] for leader in wanted]
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            grown: dict[SourcePartition, int] = {}
            for leader in [leader for leader in wanted if self._parked[leader].done()]:
                told = self._parked.pop(leader).result()
                if told is None:
                    await asyncio.sleep(self._settings.retry_backoff_ms / 1000)
                    return None
                # It may have been asked some time ago, and tell what is known by now.
                grown |= {each: end for each, end in told.items() if end > ends.get(each, end)}
            if grown:
                return grown
        await asyncio.sleep(deadline.remaining_ms() / 1000)
        return {} if wanted else None

    async def _wanted(self, ends: Offsets, deadline: Deadline) -> dict[int, _Wanted]:
        """What to ask each leader for: as few bytes as can be."""
        topics = {topic for topic, _ in ends}
        self._cluster.remove_topics(self._topics - topics)
        self._cluster.add_topics(topics)
        self._topics = topics
        try:
            known = {name: await self._cluster.topic(name, deadline=deadline) for name in topics}
        except KafkaException:
            return {}
        wanted: dict[int, _Wanted] = defaultdict(dict)
        for (name, index), offset in ends.items():
            leader = self._cluster.metadata.leader(name, index)
            if leader is not None and leader.leader != NO_LEADER:
                want = PartitionFetch(known[name].topic_id, offset, leader.leader_epoch, 1)
                wanted[leader.leader][name, index] = want
        return wanted

    async def _ask(
        self, leader: int, wanted: _Wanted, timeout_ms: int
    ) -> dict[SourcePartition, int] | None:
        session = self._sessions[leader]
        request = session.request(wanted)
        request.max_wait_ms = timeout_ms
        request.min_bytes = request.max_bytes = 1
        request.isolation_level = self._isolation
        timeout_ms += self._settings.request_timeout_ms
        try:
            response = await self._cluster.send_request(
                request, leader, timeout_ms=timeout_ms, purpose="news"
            )
        except KafkaException:
            session.reset()
            self._cluster.refresh()
            return None
        if not session.on_response(response):
            return None
        ends = {}
        for each, said in session.partitions(response):
            if said.error_code != ErrorCode.NONE:
                self._cluster.refresh()
                return None
            ends[SourcePartition(*each)] = (
                said.last_stable_offset if self._isolation else said.high_watermark
            )
        return ends
