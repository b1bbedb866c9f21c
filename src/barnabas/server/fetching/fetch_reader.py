"""What one fetch has found so far; when a partition moves, only that one is read again.

A consumer sees what counts, at the leader or, from v11 on, at any replica (KIP-392); a follower
sees all its leader has, and tells by its offsets how far it is.
"""

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable

from barnabas.log import Slice
from barnabas.replication import NO_EPOCH, FetchedPartition, Partition
from barnabas.server.errors import failure_of
from barnabas.server.fetching.fetch_session import FIRST_VERSION_WITH_TOPIC_IDS, SessionPartition
from barnabas.server.fetching.replica_selector import Nearest
from barnabas.server.fetching.session_cache import FIRST_VERSION_WITH_REPLICA_STATE, FetchContext
from barnabas.server.request_context import Call
from barnabas.wire.messages.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchRequest,
    PartitionData,
)

FIRST_VERSION_WITH_RACKS = 11

_NOTHING = b""


def begin_reading(request: FetchRequest, context: FetchContext, call: Call) -> "Reading":
    """The reading of a consumer, or of a follower, by what the request says of who asks."""
    if call.api_version >= FIRST_VERSION_WITH_REPLICA_STATE:
        replica_id, epoch = request.replica_state.replica_id, request.replica_state.replica_epoch
    else:
        replica_id, epoch = request.replica_id, -1
    if replica_id >= 0:
        return FollowerReading(request, context, call, replica_id, epoch)
    return ConsumerReading(request, context, call)


class Reading(ABC):
    """The answers of a fetch, and whether they are enough to be sent."""

    __slots__ = (
        "_by_id",
        "_call",
        "_context",
        "_counted",
        "_found",
        "_max_bytes",
        "_metrics",
        "_min_bytes",
        "_nearest",
        "_returned_bytes",
        "_stirred",
        "_there_bytes",
        "_wanted",
        "has_failed",
        "is_done",
    )

    def __init__(self, request: FetchRequest, context: FetchContext, call: Call) -> None:
        self._call = call
        self._context = context
        self._stirred = context.stirred
        self._by_id = call.api_version >= FIRST_VERSION_WITH_TOPIC_IDS
        self._metrics = call.broker.metrics.topic
        self._max_bytes = min(request.max_bytes, call.broker.settings["fetch.max.bytes"])
        self._min_bytes = min(request.min_bytes, self._max_bytes)
        self._returned_bytes = 0
        self._there_bytes = 0
        self._counted: dict[SessionPartition, int] = {}
        self._found: dict[SessionPartition, PartitionData] = {}
        # The answers so far; none for partitions that have no news for the session.
        self._wanted: dict[Hashable, SessionPartition] = {}
        self._nearest: Nearest | None = None  # whom to ask for a replica that is nearer
        self.has_failed = False
        self.is_done = False
        """Whether to answer now: with the bytes asked for, or with what must not wait."""

    def read_all(self) -> None:
        for wanted in self._context.unread():
            if not wanted.watched or not self._has_no_news(wanted):
                self._read(wanted)
        if self._there_bytes >= self._min_bytes or not self._context.partitions():
            self.is_done = True

    def watched(self) -> Iterable[Hashable]:
        """Where to wait for more."""
        if self._stirred is not None:
            return (self._stirred,)
        self._wanted = {
            self._keys(wanted.partition)[0]: wanted
            for wanted in self._context.partitions()
            if wanted.partition is not None
        }
        return self._wanted

    def take_note(self, key: Hashable, _: int) -> bool:
        """Whether, with what has moved, it is enough."""
        wanted = self._wanted.get(key)
        if wanted is not None:
            self._read_again(wanted)
        else:
            self.read_stirred()
        return self.is_done

    def read_stirred(self) -> None:
        """Of a session, what has moved since it was last read."""
        if self._stirred is not None:
            for wanted in self._context.unread():
                self._read_again(wanted)

    def answers(self) -> Iterable[tuple[SessionPartition, PartitionData]]:
        return self._found.items()

    @abstractmethod
    def _fetch(
        self, partition: Partition, wanted: SessionPartition, max_bytes: int, at_least_one: bool
    ) -> tuple[FetchedPartition, int]:
        """What the reader may have of a partition, and where it must stop for now."""

    @abstractmethod
    def _keys(self, partition: Partition) -> tuple[Hashable, ...]:
        """What is poked when there is news for the reader; the first, when there is more."""

    def _has_no_news(self, wanted: SessionPartition) -> bool:
        """Whether a look tells that a session's partition need not be read."""
        return False

    @abstractmethod
    def _count_out(self, partition: Partition, size_bytes: int) -> None:
        """So much of the partition will be sent, or will not be after all."""

    def _is_settled(self, partition: Partition) -> bool:
        """Whether the reader need not come back unless there is news."""
        return True

    def _read(self, wanted: SessionPartition) -> None:
        returned_bytes = self._returned_bytes
        max_bytes = wanted.max_bytes
        if max_bytes > self._max_bytes - returned_bytes:
            max_bytes = self._max_bytes - returned_bytes
        wanted.is_at_rest = False
        try:
            partition = wanted.partition
            if partition is None or partition.failure is not None:
                partition = wanted.partition = self._find(wanted)
            if self._stirred is not None:
                self._stirred.watch(wanted, self._keys(partition), self._call.broker.purgatory)
            if self._nearest is not None and partition.is_leader:
                preferred = self._nearest.replica(partition, wanted.fetch_offset)
                if preferred is not None:
                    self._send_away(partition, wanted, preferred)
                    return
            fetched, end = self._fetch(partition, wanted, max_bytes, not returned_bytes)
        except Exception as failure:
            self._found[wanted] = self._refused(wanted, failure)
            return
        records, high_watermark, stable_offset, start_offset, aborted, diverging = fetched
        answer = self._found[wanted] = PartitionData(
            partition_index=wanted.index,
            high_watermark=high_watermark,
            last_stable_offset=stable_offset,
            log_start_offset=start_offset,
            aborted_transactions=None if aborted is None else _aborted(aborted),
            records=_NOTHING if records is None else records,
        )
        self._metrics(partition.topic).fetch_requests += 1
        if records is not None:
            size_bytes = records.size_bytes
            self._count_out(partition, size_bytes)
            self._returned_bytes = returned_bytes + size_bytes
            self._count(wanted, records.next_offset < end, size_bytes, max_bytes)
        elif diverging is not None:
            answer.diverging_epoch = EpochEndOffset(
                epoch=diverging.epoch, end_offset=diverging.end_offset
            )
            self.is_done = True
        elif wanted.fetch_offset < end:
            self._count(wanted, True, 0, max_bytes)
        else:
            wanted.is_at_rest = self._is_settled(partition)

    def _count(
        self, wanted: SessionPartition, has_more: bool, size_bytes: int, max_bytes: int
    ) -> None:
        """Towards the minimum, a partition with more than its limit lets through counts that much.

        Whole batches may come to less; waiting would not bring them any nearer to it.
        """
        counted = max(size_bytes, max_bytes) if has_more else size_bytes
        self._counted[wanted] = counted
        self._there_bytes += counted

    def _read_again(self, wanted: SessionPartition) -> None:
        before = self._found.get(wanted)
        if before is not None and isinstance(before.records, Slice) and wanted.partition:
            size_bytes = before.records.size_bytes
            self._returned_bytes -= size_bytes
            self._count_out(wanted.partition, -size_bytes)
        self._there_bytes -= self._counted.pop(wanted, 0)
        self._read(wanted)
        if self._there_bytes >= self._min_bytes:
            self.is_done = True

    def _find(self, wanted: SessionPartition) -> Partition:
        partitions = self._call.broker.partitions
        if self._by_id:
            return partitions.get(wanted.topic_id, wanted.index)
        return partitions.by_name(wanted.topic, wanted.index)

    def _send_away(self, partition: Partition, wanted: SessionPartition, preferred: int) -> None:
        """Another replica is nearer to the reader: it is told, and gets nothing here."""
        self._found[wanted] = PartitionData(
            partition_index=wanted.index,
            high_watermark=partition.high_watermark,
            last_stable_offset=partition.last_stable_offset,
            log_start_offset=partition.log.start_offset,
            preferred_read_replica=preferred,
            records=_NOTHING,
        )
        self.is_done = True

    def _refused(self, wanted: SessionPartition, failure: Exception) -> PartitionData:
        code, _ = failure_of(failure, "Fetch", self._call)
        if wanted.partition is not None:
            self._metrics(wanted.partition.topic).failed_fetch_requests += 1
        self.has_failed = True
        self.is_done = True
        return PartitionData(
            partition_index=wanted.index,
            error_code=code,
            high_watermark=-1,
            aborted_transactions=[] if wanted.partition is None else None,
            records=_NOTHING,
        )


class ConsumerReading(Reading):
    """A consumer's fetch."""

    __slots__ = ("_isolation", "_only_leader")

    def __init__(self, request: FetchRequest, context: FetchContext, call: Call) -> None:
        super().__init__(request, context, call)
        self._isolation = request.isolation_level
        self._only_leader = call.api_version < FIRST_VERSION_WITH_RACKS
        self._nearest = Nearest.to(request.rack_id, call)

    def _fetch(
        self, partition: Partition, wanted: SessionPartition, max_bytes: int, at_least_one: bool
    ) -> tuple[FetchedPartition, int]:
        isolation = self._isolation
        fetched = partition.fetch(
            wanted.fetch_offset,
            max_bytes,
            isolation=isolation,
            at_least_one=at_least_one,
            only_leader=self._only_leader,
            leader_epoch=wanted.current_leader_epoch,
            last_fetched_epoch=wanted.last_fetched_epoch,
        )
        return fetched, fetched.last_stable_offset if isolation else fetched.high_watermark

    def _keys(self, partition: Partition) -> tuple[Hashable, ...]:
        return (partition,)

    def _has_no_news(self, wanted: SessionPartition) -> bool:
        """Whether the reader has come to the end of what counts, as it does again and again."""
        partition, offset = wanted.partition, wanted.fetch_offset
        wanted.is_at_rest = (
            partition is not None
            and partition.is_leader
            and partition.high_watermark == offset
            and wanted.current_leader_epoch in (partition.leader_epoch, NO_EPOCH)
            and wanted.last_fetched_epoch == NO_EPOCH
            and self._nearest is None
            and not wanted.is_news(offset, partition.log.start_offset)
        )
        return wanted.is_at_rest

    def _count_out(self, partition: Partition, size_bytes: int) -> None:
        self._metrics(partition.topic).bytes_out += size_bytes


class FollowerReading(Reading):
    """The fetch of a broker that follows this one."""

    __slots__ = ("_now_ms", "_replica_epoch", "_replica_id", "_throttle")

    def __init__(
        self,
        request: FetchRequest,
        context: FetchContext,
        call: Call,
        replica_id: int,
        replica_epoch: int,
    ) -> None:
        super().__init__(request, context, call)
        self._replica_id = replica_id
        self._replica_epoch = replica_epoch
        self._now_ms = call.now_ms
        self._throttle = call.broker.partitions.throttle

    def _read_again(self, wanted: SessionPartition) -> None:
        super()._read_again(wanted)
        # Records that were deleted are deleted everywhere before long: nobody waits for that.
        if self._found[wanted].log_start_offset > wanted.answered_start_offset >= 0:
            self.is_done = True

    def _fetch(
        self, partition: Partition, wanted: SessionPartition, max_bytes: int, at_least_one: bool
    ) -> tuple[FetchedPartition, int]:
        is_held_back = bool(self._throttle) and self._must_hold_back(partition)
        if is_held_back:
            max_bytes, at_least_one = 0, False
        fetched = partition.fetch_as_follower(
            self._replica_id,
            self._replica_epoch,
            wanted.fetch_offset,
            max_bytes,
            at_least_one=at_least_one,
            leader_epoch=wanted.current_leader_epoch,
            last_fetched_epoch=wanted.last_fetched_epoch,
            start_offset=wanted.log_start_offset,
            now_ms=self._now_ms,
        )
        # What is held back does not count as being there, or the follower would come at once.
        return fetched, wanted.fetch_offset if is_held_back else partition.log.end_offset

    def _keys(self, partition: Partition) -> tuple[Hashable, ...]:
        """How much counts is told with the next records; nobody fetches for that alone."""
        return (partition.log, partition)

    def _count_out(self, partition: Partition, size_bytes: int) -> None:
        if self._throttle:
            self._throttle.record(partition.topic, partition.index, size_bytes, self._now_ms)

    def _is_settled(self, partition: Partition) -> bool:
        return partition.has_in_sync(self._replica_id)

    def _must_hold_back(self, partition: Partition) -> bool:
        return not partition.has_in_sync(self._replica_id) and self._throttle.holds_back(
            partition.topic, partition.index, self._now_ms
        )


def _aborted(transactions: list[tuple[int, int]]) -> list[AbortedTransaction]:
    return [
        AbortedTransaction(producer_id=producer_id, first_offset=first_offset)
        for producer_id, first_offset in transactions
    ]
