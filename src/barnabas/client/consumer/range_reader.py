"""Reads bounded ranges of topic partitions: the batches from a start offset up to an end offset.

It reads ahead of the caller, within a limit of bytes. One request to each broker is in flight,
for all of its partitions that are not read to the end of their ranges; the next one is sent as
soon as the response is there. Batches are delivered as bytes: the caller decompresses and decodes
them, in a thread of its own. What responses mean is decided in `fetch_results.py`.
"""

import asyncio
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from barnabas.client.backoff import Backoff, Deadline
from barnabas.client.cluster import ClusterClient, TopicInfo
from barnabas.client.cluster.metadata import NO_LEADER
from barnabas.client.consumer.fetch_results import (
    FetchedBatches,
    FetchFailed,
    FollowerFailed,
    NoBatches,
    OffsetOutOfRange,
    ReadReplica,
    StaleMetadata,
    read_fetch_result,
)
from barnabas.client.consumer.fetch_session import (
    FINAL_EPOCH,
    PartitionFetch,
    fetch_topics,
    response_partitions,
)
from barnabas.client.consumer.offset_lookup import MAX_UNKNOWN_TOPIC_ATTEMPTS, OffsetLookup
from barnabas.client.consumer.subscription_state import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP
from barnabas.client.errors import KafkaError, KafkaException, broker_error, error_in
from barnabas.client.settings import ConsumerSettings
from barnabas.client.values import PartitionKey
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.fetch import FetchRequest, FetchResponse, PartitionData

READ_AHEAD_BYTES = 48 << 20
"""Limit of bytes that are requested, or received and not consumed; a larger batch comes alone."""

FIRST_FETCH_BYTES = 1 << 20
"""Requested of a partition before the size of its records is known."""

METADATA_ATTEMPT_MS = 1_000
"""How long one attempt to find a topic in the metadata waits."""


class TopicPartitionRange(Protocol):
    """The records of a partition from `start` on and before `end`."""

    @property
    def topic(self) -> str: ...
    @property
    def partition(self) -> int: ...
    @property
    def start(self) -> int: ...
    @property
    def end(self) -> int: ...


R = TypeVar("R", bound=TopicPartitionRange)


class RangeReadPolicy(Protocol):
    """What a reader does about records that it cannot read."""

    @property
    def timeout_ms(self) -> int:
        """How long a partition may make no progress before reading fails."""

    @property
    def timeout_setting(self) -> str:
        """The name of the setting of `timeout_ms`, for error messages."""

    def on_data_loss(self, reason: str) -> None:
        """Raises if the reader has to fail; otherwise it continues after the lost records."""


class RangeReadError(Exception):
    """A range cannot be read; the message names the partition and the reason."""


@dataclass(slots=True, frozen=True)
class FetchedRange(Generic[R]):
    """Batches of a range; the first and the last may have records outside of it."""

    range: R
    fetched: FetchedBatches


class RangeReader(Generic[R]):
    """Reads ranges and delivers what each response brought; lives on the loop of the cluster."""

    def __init__(
        self,
        cluster: ClusterClient,
        settings: ConsumerSettings,
        ranges: Sequence[R],
        policy: RangeReadPolicy,
        deliver: Callable[[list[FetchedRange[R]]], None],
    ) -> None:
        self._cluster = cluster
        self._settings = settings
        self._policy = policy
        self._deliver = deliver
        self._isolation = int(settings.isolation_level == "read_committed")
        self._offsets = OffsetLookup(cluster, settings)
        self._unread: dict[PartitionKey, _PartitionRanges[R]] = {}
        for each in ranges:
            key = each.topic, each.partition
            self._unread.setdefault(key, _PartitionRanges()).add(each)
        self._received: list[FetchedRange[R]] = []  # of the response in hand
        self._ahead_bytes = 0
        self._space_freed = asyncio.Event()
        self._deleted_topics: set[str] = set()
        self._failed_attempts: Counter[PartitionKey] = Counter()  # to find its topic
        self._rack = settings.client_rack
        self._deadline = Deadline.after(0)  # of the next progress
        self._on_progress()

    async def run(self) -> None:
        """Reads every range to its end. Raises RangeReadError or KafkaException if it cannot."""
        backoff = Backoff(self._settings.retry_backoff_ms, self._settings.retry_backoff_max_ms)
        try:
            while self._unread:
                before = len(self._unread), self._deadline
                await self._fetch_from_nodes(await self._group_by_node())
                if self._unread and before == (len(self._unread), self._deadline):
                    await asyncio.sleep(backoff.next_ms() / 1000)
                else:
                    backoff.reset()
        finally:
            self._cluster.remove_topics(self._deleted_topics)

    def on_consumed(self, size_bytes: int) -> None:
        """The caller has consumed batches of this size: more can be read ahead."""
        self._ahead_bytes -= size_bytes
        self._space_freed.set()

    # Nodes

    async def _group_by_node(self) -> dict[int, list[PartitionKey]]:
        """Returns the unread partitions that have a leader by the node to read from."""
        names = {topic for topic, _ in self._unread}
        self._cluster.add_topics(names)  # at once: one by one, each would be a request
        deadline = Deadline.after(min(METADATA_ATTEMPT_MS, self._deadline.remaining_ms()))
        topics = {name: await self._find_topic(name, deadline) for name in names}
        by_node: dict[int, list[PartitionKey]] = {}
        for key in list(self._unread):
            name, index = key
            topic = topics[name]
            if topic is not None and (topic.error or index >= len(topic.partitions)):
                self._on_unknown_partition(key)
                continue
            del self._failed_attempts[key]
            leader = None if topic is None else topic.partitions[index]
            if leader is None or leader.leader == NO_LEADER:
                self._require_time(key, "it has no leader that responds")
                continue
            brokers, replica = self._cluster.metadata.brokers, self._unread[key].read_replica
            by_node.setdefault(replica.select(leader, brokers, time.monotonic()), []).append(key)
        if not by_node:
            self._cluster.refresh()
        return by_node

    async def _find_topic(self, name: str, deadline: Deadline) -> TopicInfo | None:
        """Returns the topic, with an error if it is unknown; None if no broker responds."""
        try:
            return await self._cluster.topic(name, deadline=deadline)
        except KafkaException as failure:
            error = error_in(failure)
            if error.code() == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                return TopicInfo(name, error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            if not error.retriable() or self._deadline.has_passed:
                raise
            return None

    def _on_unknown_partition(self, key: PartitionKey) -> None:
        self._failed_attempts[key] += 1
        if self._failed_attempts[key] >= MAX_UNKNOWN_TOPIC_ATTEMPTS:
            self._deleted_topics.add(key[0])
            self._policy.on_data_loss(f"{_name_of(key)} does not exist any more.")
            del self._unread[key]

    # Requests

    async def _fetch_from_nodes(self, by_node: dict[int, list[PartitionKey]]) -> None:
        """Fetches from all nodes at once; the first failure ends it."""
        fetches = [asyncio.ensure_future(self._fetch_from(*entry)) for entry in by_node.items()]
        try:
            await asyncio.gather(*fetches)
        finally:
            for fetch in fetches:
                fetch.cancel()

    async def _fetch_from(self, node_id: int, partitions: list[PartitionKey]) -> None:
        """Fetches partitions from a node until they are read, or have to be read elsewhere."""
        unread = dict.fromkeys(partitions)
        while unread := {key: None for key in unread if self._cluster.metadata.leader(*key)}:
            try:
                response = await self._send(self._request(unread), node_id)
            except KafkaException as failure:
                key, error = next(iter(unread)), error_in(failure)
                if not error.retriable():
                    raise RangeReadError(f"{_name_of(key)}: {error.str()}") from None
                self._require_time(key, error.str())
                self._read_from_leader(unread)
                return
            names = self._cluster.metadata.topic_names  # lacks a topic that was created anew
            for key, data in response_partitions(response, names):
                if not await self._on_partition_response(key, data, node_id):
                    del unread[key]
            if self._received:
                self._deliver(self._received)
                self._received = []

    async def _send(self, request: FetchRequest, node_id: int) -> FetchResponse:
        """Sends a fetch once there is space for its response."""
        limits = (each.partition_max_bytes for topic in request.topics for each in topic.partitions)
        max_bytes = min(sum(limits), request.max_bytes)
        while self._ahead_bytes and self._ahead_bytes + max_bytes > READ_AHEAD_BYTES:
            self._space_freed.clear()
            await self._space_freed.wait()
            self._on_progress()  # the wait was for the caller, not for brokers
        self._ahead_bytes += max_bytes
        try:
            response: FetchResponse = await self._cluster.send_request(
                request, node_id, purpose="fetch"
            )
        finally:
            self.on_consumed(max_bytes)
        if response.error_code:
            raise KafkaException(broker_error(response.error_code))
        return response

    def _request(self, partitions: Iterable[PartitionKey]) -> FetchRequest:
        settings, metadata = self._settings, self._cluster.metadata
        fetches = {}
        for key in partitions:
            ranges = self._unread[key]
            fetches[key] = PartitionFetch(
                metadata.topics[key[0]].topic_id,
                ranges.offset,
                ranges.read_replica.leader_epoch(metadata.leader(*key)),
                ranges.fetch_bytes(settings.max_partition_fetch_bytes),
            )
        return FetchRequest(
            max_wait_ms=settings.fetch_max_wait_ms,
            min_bytes=settings.fetch_min_bytes,
            max_bytes=settings.fetch_max_bytes,
            isolation_level=self._isolation,
            session_epoch=FINAL_EPOCH,
            topics=fetch_topics(fetches),
            rack_id=self._rack,
        )

    # Responses

    async def _on_partition_response(
        self, key: PartitionKey, data: PartitionData, node_id: int
    ) -> bool:
        """Returns whether there is more to fetch of the partition from the same node."""
        ranges = self._unread[key]
        replica = ranges.read_replica
        is_follower = replica.is_follower(node_id)
        match read_fetch_result(data, ranges.offset, is_follower=is_follower):
            case StaleMetadata(error) as stale:
                self._require_time(key, error.str())
                self._read_from_leader([key])
                replica.on_stale_metadata(stale, self._cluster.metadata.leader(*key))
                return False
            case FollowerFailed(error):
                self._require_time(key, error.str())
                self._read_from_leader([key])
                return False
            case OffsetOutOfRange():
                return await self._on_offset_out_of_range(key)
            case FetchFailed(error):
                raise RangeReadError(f"{_name_of(key)}: {error.str()}")
            case FetchedBatches() | NoBatches() if (
                data.preferred_read_replica >= 0 and self._rack and not is_follower
            ):
                replica.prefer(data.preferred_read_replica)
                self._on_progress()
                return False
            case FetchedBatches() as fetched:
                self._received.append(FetchedRange(ranges.current, fetched))
                self._ahead_bytes += len(fetched.batches)
                ranges.on_fetched(fetched)
                self._on_progress()
            case NoBatches():
                self._on_no_batches(key, data)
        return self._advance(key)

    def _read_from_leader(self, partitions: Iterable[PartitionKey]) -> None:
        """Their node has failed: look for leaders, and after a follower's failure stay there."""
        self._cluster.refresh()
        for key in partitions:
            replica = self._unread[key].read_replica
            if replica.has_preferred:
                replica.prefer_leader()
                self._rack = ""

    def _on_no_batches(self, key: PartitionKey, data: PartitionData) -> None:
        """The log may end before the range does, for now or for good."""
        ranges = self._unread[key]
        end_offset = data.last_stable_offset if self._isolation else data.high_watermark
        if ranges.offset < end_offset:  # the response had no space for it
            self._require_time(key, f"no records come, although it ends at offset {end_offset}")
            return
        if not self._deadline.has_passed:
            return  # records may still come
        self._policy.on_data_loss(
            f"{_name_of(key)} ends at offset {end_offset}, before {ranges.current.end}, where the"
            f" range to read ends."
        )
        ranges.offset = ranges.current.end

    async def _on_offset_out_of_range(self, key: PartitionKey) -> bool:
        """The log starts after the fetch offset, or ends before it."""
        first_offset, end_offset = await asyncio.gather(
            self._find_offset(key, EARLIEST_TIMESTAMP), self._find_offset(key, LATEST_TIMESTAMP)
        )
        ranges = self._unread[key]
        if first_offset <= ranges.offset <= end_offset:  # the sender was not yet the leader
            self._require_time(key, broker_error(ErrorCode.OFFSET_OUT_OF_RANGE).str())
            self._read_from_leader([key])
            return False
        if ranges.offset > end_offset:
            self._policy.on_data_loss(
                f"{_name_of(key)} ends at offset {end_offset}, before {ranges.offset}, the next"
                f" offset to read."
            )
            ranges.offset = ranges.current.end
        else:
            next_offset = min(first_offset, ranges.current.end)
            self._policy.on_data_loss(
                f"{_name_of(key)} begins at offset {first_offset}: those from {ranges.offset} to"
                f" {next_offset} are gone."
            )
            ranges.offset = next_offset
        return self._advance(key)

    async def _find_offset(self, key: PartitionKey, timestamp: int) -> int:
        outcome = (await self._offsets.list_offsets({key: timestamp}, self._deadline))[key]
        if isinstance(outcome, KafkaError):
            raise RangeReadError(f"{_name_of(key)}: {outcome.str()}")
        return outcome.offset

    def _advance(self, key: PartitionKey) -> bool:
        """Continues with the next range of the partition; returns False after the last."""
        if self._unread[key].skip_read_ranges():
            return True
        del self._unread[key]
        return False

    # Time

    def _on_progress(self) -> None:
        self._deadline = Deadline.after(self._policy.timeout_ms)

    def _require_time(self, key: PartitionKey, reason: str) -> None:
        """Raises RangeReadError if there was no progress for too long."""
        if self._deadline.has_passed:
            raise RangeReadError(
                f"{_name_of(key)} could not be read for {self._policy.timeout_ms} ms"
                f" ({self._policy.timeout_setting}): {reason}"
            )


class _PartitionRanges(Generic[R]):
    """The ranges of one partition that are not read yet; the first of them is read."""

    __slots__ = ("_bytes_per_offset", "_ranges", "offset", "read_replica")

    def __init__(self) -> None:
        self._ranges: deque[R] = deque()
        self._bytes_per_offset = 0.0
        self.offset = 0
        self.read_replica = ReadReplica()

    @property
    def current(self) -> R:
        return self._ranges[0]

    def add(self, added: R) -> None:
        if not self._ranges:
            self.offset = added.start
        self._ranges.append(added)

    def fetch_bytes(self, max_bytes: int) -> int:
        """Returns about the size of the rest of the range, so that little is fetched in vain."""
        if not self._bytes_per_offset:
            return min(max_bytes, FIRST_FETCH_BYTES)
        remaining = (self.current.end - self.offset) * self._bytes_per_offset
        return min(max_bytes, int(remaining * 1.1) + 1024)

    def on_fetched(self, fetched: FetchedBatches) -> None:
        size_bytes, offsets = len(fetched.batches), fetched.next_offset - self.offset
        self._bytes_per_offset = size_bytes / max(1, offsets)
        self.offset = fetched.next_offset

    def skip_read_ranges(self) -> bool:
        """Moves to the first range that is not read; returns False if there is none."""
        while self._ranges and self.offset >= self.current.end:
            self._ranges.popleft()
            if self._ranges:
                self.offset = self.current.start
                self._bytes_per_offset = 0.0
        return bool(self._ranges)


def _name_of(key: PartitionKey) -> str:
    return f"{key[0]} [{key[1]}]"
