"""Fetches the ranges of one task, ahead of whoever takes what was fetched.

One request to each broker is under way at a time, for all of its partitions that are not read to
the end of their ranges; the next one leaves as soon as the answer has come. What comes is handed
over as it is: whoever takes it decompresses and decodes, in a thread of its own.
"""

import asyncio
import queue
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass

from barnabas.client.admin.results import raise_on_error
from barnabas.client.cluster import Backoff, Deadline, TopicInfo
from barnabas.client.cluster.metadata import NO_LEADER
from barnabas.client.consumer._completed_fetch import scan_batches
from barnabas.client.consumer.offset_lookup import MAX_UNKNOWN_TOPIC_ATTEMPTS, OffsetLookup
from barnabas.client.errors import KafkaError, KafkaException, error_in, broker_error
from barnabas.spark.source.connection import Connection, SourceError
from barnabas.spark.source.loss import Loss
from barnabas.spark.source.offsets import EARLIEST, LATEST, OffsetRange, Partition
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)

AHEAD_BYTES = 48 << 20
"""What is asked for or fetched, and not taken yet, at most; a record that is larger comes alone."""

FIRST_BYTES = 1 << 20
"""Of a partition, before it is known how large its records are."""

_LOOK_MS = 1_000
"""For metadata of a topic, before that counts as an attempt."""

_ELSEWHERE = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
        ErrorCode.OFFSET_NOT_AVAILABLE,
    }
)
"""Somebody else has the partition by now, or will have it soon."""


@dataclass(slots=True, frozen=True)
class Fetched:
    """Whole batches of one partition, of which those are meant that are in the range."""

    range: OffsetRange
    batches: memoryview
    from_offset: int
    next_offset: int
    record_count: int
    aborted: list[tuple[int, int]]  # producer id and first offset, in order of the offsets


class Fetching:
    """An iterator of what answers brought; `close` ends it early."""

    def __init__(self, connection: Connection, ranges: Sequence[OffsetRange], loss: Loss) -> None:
        self._connection = connection
        self._fetched: queue.SimpleQueue[list[Fetched] | None] = queue.SimpleQueue()
        self._engine = _Engine(connection, ranges, loss, self._fetched)
        self._done: Future[None] = connection.thread.submit(self._engine.run())

    def __iter__(self) -> Iterator[list[Fetched]]:
        while (fetched := self._fetched.get()) is not None:
            size_bytes = sum(len(each.batches) for each in fetched)
            yield fetched
            self._connection.thread.call(self._engine.taken, size_bytes)
        try:
            self._done.result()
        except KafkaException as failure:
            raise SourceError(self._connection.reason(failure)) from None

    @property
    def is_idle(self) -> bool:
        """Whether the next one would have to be waited for."""
        return self._fetched.empty()

    def close(self) -> None:
        self._done.cancel()


class _Position:
    """How far one range was fetched."""

    __slots__ = ("bytes_per_offset", "offset", "range")

    def __init__(self, range: OffsetRange) -> None:  # noqa: A002 - what it is
        self.range = range
        self.offset = range.start
        self.bytes_per_offset = 0.0

    def wanted_bytes(self, most: int) -> int:
        """About what is left, so that little is fetched in vain."""
        if not self.bytes_per_offset:
            return min(most, FIRST_BYTES)
        left = (self.range.end - self.offset) * self.bytes_per_offset
        return min(most, int(left * 1.1) + 1024)


class _Engine:
    """Lives on the loop."""

    def __init__(
        self,
        connection: Connection,
        ranges: Sequence[OffsetRange],
        loss: Loss,
        fetched: "queue.SimpleQueue[list[Fetched] | None]",
    ) -> None:
        self._cluster = connection.cluster
        self._settings = connection.settings
        self._isolation = int(self._settings.isolation_level == "read_committed")
        self._loss = loss
        self._fetched = fetched
        self._received: list[Fetched] = []  # in the answer that is looked at
        self._ahead_bytes = 0
        self._room = asyncio.Event()
        self._gone: set[str] = set()  # topics: who wants them would be told so for ever
        self._left: dict[Partition, deque[_Position]] = {}
        for each in ranges:
            self._left.setdefault(each.place, deque()).append(_Position(each))
        self._looks: Counter[Partition] = Counter()  # in vain
        self._rack = self._settings.client_rack
        self._nearer: dict[Partition, int] = {}  # followers that leaders sent us to (KIP-392)
        self._patience = Deadline.after(0)
        self._progressed()

    async def run(self) -> None:
        """Until every range is read to its end; None follows the last that was fetched."""
        backoff = Backoff(self._settings.retry_backoff_ms, self._settings.retry_backoff_max_ms)
        try:
            while self._left:
                before = len(self._left), self._patience
                homes = await self._homes()
                await self._fetch_from_all(homes)
                if self._left and before == (len(self._left), self._patience):
                    await asyncio.sleep(backoff.next_ms() / 1000)
                else:
                    backoff.reset()
        finally:
            self._fetched.put(None)
            self._cluster.remove_topics(self._gone)

    def taken(self, size_bytes: int) -> None:
        """There is room for so much more."""
        self._ahead_bytes -= size_bytes
        self._room.set()

    def _progressed(self) -> None:
        self._patience = Deadline.after(self._loss.patience_ms)

    async def _homes(self) -> dict[int, list[Partition]]:
        """Partitions by their leaders, as far as they have some; those that are gone are left."""
        names = {topic for topic, _ in self._left}
        self._cluster.add_topics(names)  # all at once: one by one, each would be a request
        deadline = Deadline.after(min(_LOOK_MS, self._patience.remaining_ms()))
        topics = {name: await self._topic(name, deadline) for name in names}
        homes: dict[int, list[Partition]] = {}
        for key in list(self._left):
            name, index = key
            known = topics[name]
            if known is None or (not known.error and index < len(known.partitions)):
                del self._looks[key]
                leader = NO_LEADER if known is None else known.partitions[index].leader
                if leader == NO_LEADER:
                    self._require_patience(key, "it has no leader that answers")
                else:
                    homes.setdefault(self._nearer.get(key, leader), []).append(key)
                continue
            self._looks[key] += 1
            if self._looks[key] >= MAX_UNKNOWN_TOPIC_ATTEMPTS:
                self._gone.add(name)
                self._loss.tell(f"{key} does not exist any more.")
                del self._left[key]
        if not homes:
            self._cluster.refresh()
        return homes

    async def _topic(self, name: str, deadline: Deadline) -> TopicInfo | None:
        """As it is known, with an error if it is unknown; None if nobody tells."""
        try:
            return await self._cluster.topic(name, deadline=deadline)
        except KafkaException as failure:
            error = error_in(failure)
            if error.code() == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                return TopicInfo(name, error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            if not error.retriable() or self._patience.has_passed:
                raise
            return None

    async def _fetch_from_all(self, homes: dict[int, list[Partition]]) -> None:
        """From all leaders at the same time; the first failure ends it."""
        fetching = [asyncio.ensure_future(self._fetch_from(*each)) for each in homes.items()]
        try:
            await asyncio.gather(*fetching)
        finally:
            for each in fetching:
                each.cancel()

    async def _fetch_from(self, node_id: int, partitions: list[Partition]) -> None:
        """As long as the broker answers for them."""
        wanted = dict.fromkeys(partitions)
        while wanted := {key: None for key in wanted if self._cluster.metadata.leader(*key)}:
            try:
                response = await self._ask(self._request(wanted), node_id)
            except KafkaException as failure:
                key, error = next(iter(wanted)), error_in(failure)
                if not error.retriable():
                    raise SourceError(f"{key}: {error.str()}") from None
                self._require_patience(key, error.str())
                self._leave(wanted)
                return
            for key, said in self._answers(response):
                if not await self._look_at(key, said):
                    del wanted[key]
            self._hand_over()

    async def _ask(self, request: FetchRequest, node_id: int) -> FetchResponse:
        """Once there is room for the answer."""
        asked = (each.partition_max_bytes for topic in request.topics for each in topic.partitions)
        most = min(sum(asked), request.max_bytes)
        while self._ahead_bytes and self._ahead_bytes + most > AHEAD_BYTES:
            self._room.clear()
            await self._room.wait()
            self._progressed()  # it was not the brokers that took so long
        self._ahead_bytes += most
        try:
            response: FetchResponse = await self._cluster.send_request(request, node_id, purpose="fetch")
            raise_on_error(response.error_code)
            return response
        finally:
            self.taken(most)

    def _leave(self, partitions: Iterable[Partition]) -> None:
        """Their broker has failed: ask who leads them, and if it did not, stay with leaders."""
        self._cluster.refresh()
        for key in partitions:
            if self._nearer.pop(key, None) is not None:
                self._rack = ""

    def _request(self, partitions: Iterable[Partition]) -> FetchRequest:
        topics: dict[str, FetchTopic] = {}
        for key in partitions:
            name, index = key
            known = self._cluster.metadata.topics[name]
            topic = topics.setdefault(
                name, FetchTopic(topic=name, topic_id=known.topic_id, partitions=[])
            )
            position = self._left[key][0]
            topic.partitions.append(
                FetchPartition(
                    partition=index,
                    current_leader_epoch=known.partitions[index].leader_epoch,
                    fetch_offset=position.offset,
                    partition_max_bytes=position.wanted_bytes(
                        self._settings.max_partition_fetch_bytes
                    ),
                )
            )
        return FetchRequest(
            max_wait_ms=self._settings.fetch_max_wait_ms,
            min_bytes=self._settings.fetch_min_bytes,
            max_bytes=self._settings.fetch_max_bytes,
            isolation_level=self._isolation,
            session_epoch=-1,
            topics=list(topics.values()),
            rack_id=self._rack,
        )

    def _answers(self, response: FetchResponse) -> Iterator[tuple[Partition, PartitionData]]:
        names = self._cluster.metadata.topic_names
        for topic in response.responses:
            name = topic.topic or names.get(topic.topic_id)  # none: it was created anew since
            if name is not None:
                for each in topic.partitions:
                    yield Partition(name, each.partition_index), each

    async def _look_at(self, key: Partition, said: PartitionData) -> bool:
        """Whether there is more to fetch of it from the same broker."""
        code = ErrorCode.of(said.error_code)
        is_follower = key in self._nearer
        if code in _ELSEWHERE or (code and is_follower):
            self._require_patience(key, broker_error(code).str())
            self._leave([key])
            return False
        if code is ErrorCode.OFFSET_OUT_OF_RANGE:
            return await self._out_of_range(key)
        if code is not ErrorCode.NONE:
            raise SourceError(f"{key}: {broker_error(code).str()}")
        if said.preferred_read_replica >= 0 and self._rack and not is_follower:
            self._nearer[key] = said.preferred_read_replica
            self._progressed()
            return False
        position = self._left[key][0]
        if said.records:
            self._receive(key, position, said)
        else:
            self._require_more(key, position, said)
        return self._advance(key)

    def _hand_over(self) -> None:
        if self._received:
            self._fetched.put(self._received)
            self._received = []

    def _receive(self, key: Partition, position: _Position, said: PartitionData) -> None:
        assert isinstance(said.records, memoryview)
        size, next_offset, records, _ = scan_batches(said.records)
        if size == 0:
            raise SourceError(
                f"{key}: what was fetched at offset {position.offset} is no record batch."
            )
        aborted = sorted(
            ((one.producer_id, one.first_offset) for one in said.aborted_transactions or ()),
            key=lambda one: one[1],
        )
        batches = said.records[:size]
        self._received.append(
            Fetched(position.range, batches, position.offset, next_offset, records, aborted)
        )
        self._ahead_bytes += size
        position.bytes_per_offset = size / max(1, next_offset - position.offset)
        position.offset = next_offset
        self._progressed()

    def _require_more(self, key: Partition, position: _Position, said: PartitionData) -> None:
        """Nothing came: the log may end before the range does, for now or for good."""
        end = said.last_stable_offset if self._isolation else said.high_watermark
        if position.offset < end:  # there was no room for it in the answer
            self._require_patience(key, f"nothing comes, although it ends at offset {end}")
            return
        if not self._patience.has_passed:
            return  # it may still come
        self._loss.tell(
            f"{key} ends at offset {end}, before {position.range.end}, where the"
            f" range to read ends."
        )
        position.offset = position.range.end

    async def _out_of_range(self, key: Partition) -> bool:
        """The log begins later, or ends sooner, than what was asked for."""
        first, end = await asyncio.gather(self._edge(key, EARLIEST), self._edge(key, LATEST))
        position = self._left[key][0]
        if first <= position.offset <= end:  # who said so was not, or not yet, the leader
            self._require_patience(key, broker_error(ErrorCode.OFFSET_OUT_OF_RANGE).str())
            self._leave([key])
            return False
        position.offset = self._loss.goes_on_at(position.range, position.offset, first, end)
        return self._advance(key)

    async def _edge(self, key: Partition, which: int) -> int:
        offsets = OffsetLookup(self._cluster, self._settings)
        outcome = (await offsets.list_offsets({key: which}, self._patience))[key]
        if isinstance(outcome, KafkaError):
            raise SourceError(f"{key}: {outcome.str()}")
        return outcome.offset

    def _advance(self, key: Partition) -> bool:
        """Go on with the next range of the partition where one is read."""
        positions = self._left[key]
        while positions and positions[0].offset >= positions[0].range.end:
            positions.popleft()
        if not positions:
            del self._left[key]
        return bool(positions)

    def _require_patience(self, key: Partition, reason: str) -> None:
        if self._patience.has_passed:
            raise SourceError(
                f"{key} could not be read for {self._loss.patience_ms} ms"
                f" (kafkaConsumer.pollTimeoutMs): {reason}"
            )
