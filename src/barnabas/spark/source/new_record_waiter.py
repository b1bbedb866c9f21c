"""Waits for new records with fetch requests that brokers delay until there are some.

A fetch session with each broker (KIP-227) transfers only changes, so that idle partitions cost
nothing.
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

_Fetches = dict[tuple[str, int], PartitionFetch]
"""Fetch requests by topic and partition."""


class NewRecordWaiter:
    """The fetch sessions of one stream; runs on the clients' event loop."""

    def __init__(self, cluster: ClusterClient, settings: ConsumerSettings) -> None:
        self._cluster = cluster
        self._settings = settings
        self._isolation = int(settings.isolation_level == "read_committed")
        self._topics: set[str] = set()
        self._sessions: defaultdict[int, FetchSessionHandler] = defaultdict(FetchSessionHandler)
        self._in_flight: dict[int, asyncio.Future[dict[SourcePartition, int] | None]] = {}

    async def wait(self, ends: Offsets, timeout_ms: int) -> dict[SourcePartition, int] | None:
        """Waits for records after `ends`. Returns the new ends of partitions; {} after the timeout.

        Returns None if a broker responds with an error: the caller has to look up the offsets.
        """
        deadline = Deadline.after(timeout_ms)
        fetches = await self._fetches_by_leader(ends, deadline)
        while fetches and not deadline.has_passed:
            for leader in fetches.keys() - self._in_flight.keys():
                fetch = self._fetch(leader, fetches[leader], deadline.remaining_ms())
                self._in_flight[leader] = asyncio.ensure_future(fetch)
            futures = [self._in_flight[leader] for leader in fetches]
            await asyncio.wait(futures, return_when=asyncio.FIRST_COMPLETED)
            grown: dict[SourcePartition, int] = {}
            for leader in [leader for leader in fetches if self._in_flight[leader].done()]:
                log_ends = self._in_flight.pop(leader).result()
                if log_ends is None:
                    await asyncio.sleep(self._settings.retry_backoff_ms / 1000)
                    return None
                # The request may be an older one, and the response has ends the caller knows.
                grown |= {
                    partition: end
                    for partition, end in log_ends.items()
                    if end > ends.get(partition, end)
                }
            if grown:
                return grown
        await asyncio.sleep(deadline.remaining_ms() / 1000)
        return {} if fetches else None

    async def _fetches_by_leader(self, ends: Offsets, deadline: Deadline) -> dict[int, _Fetches]:
        """Returns the fetches by leader, each for one byte."""
        topics = {topic for topic, _ in ends}
        self._cluster.remove_topics(self._topics - topics)
        self._cluster.add_topics(topics)
        self._topics = topics
        try:
            topic_metadata = {
                name: await self._cluster.topic(name, deadline=deadline) for name in topics
            }
        except KafkaException:
            return {}
        fetches: dict[int, _Fetches] = defaultdict(dict)
        for (name, index), offset in ends.items():
            leader = self._cluster.metadata.leader(name, index)
            if leader is not None and leader.leader != NO_LEADER:
                fetch = PartitionFetch(
                    topic_metadata[name].topic_id, offset, leader.leader_epoch, 1
                )
                fetches[leader.leader][name, index] = fetch
        return fetches

    async def _fetch(
        self, leader: int, fetches: _Fetches, timeout_ms: int
    ) -> dict[SourcePartition, int] | None:
        session = self._sessions[leader]
        request = session.request(fetches)
        request.max_wait_ms = timeout_ms
        request.min_bytes = request.max_bytes = 1
        request.isolation_level = self._isolation
        timeout_ms += self._settings.request_timeout_ms
        try:
            response = await self._cluster.send_request(
                request, leader, timeout_ms=timeout_ms, purpose="new-records"
            )
        except KafkaException:
            session.reset()
            self._cluster.refresh()
            return None
        if not session.on_response(response):
            return None
        ends = {}
        for key, data in session.partitions(response):
            if data.error_code != ErrorCode.NONE:
                self._cluster.refresh()
                return None
            ends[SourcePartition(*key)] = (
                data.last_stable_offset if self._isolation else data.high_watermark
            )
        return ends
