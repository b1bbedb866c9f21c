"""Reads the partitions of one fetch; after a change, only the changed partition is read again.

What is not in the page cache is loaded by a thread first: the event loop never waits for a disk.

A consumer reads committed records, from the leader or, from v11 on, from any replica (KIP-392). A
follower reads all records of its leader, which learns from the fetch offsets how far it is.
"""

import os
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Mapping
from functools import partial

from barnabas.log import ColdRead, LogSlice, PositionalRead, pread_cached
from barnabas.replication import NO_EPOCH, LogReadResult, Partition
from barnabas.security.authorizer.model import ResourceType
from barnabas.server.authorization import denied
from barnabas.server.disk_reads import DiskReads
from barnabas.server.errors import error_of
from barnabas.server.fetching.fetch_permissions import (
    ConsumerPermissions,
    FetchPermissions,
    FollowerPermissions,
)
from barnabas.server.fetching.fetch_session import FIRST_VERSION_WITH_TOPIC_IDS, SessionPartition
from barnabas.server.fetching.replica_selector import RackAwareReplicaSelector
from barnabas.server.fetching.session_cache import FIRST_VERSION_WITH_REPLICA_STATE, FetchContext
from barnabas.server.request_context import RequestContext
from barnabas.wire.messages.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchRequest,
    PartitionData,
)

FIRST_VERSION_WITH_RACKS = 11

MAX_COLD_PARTITIONS = 8
"""Partitions that one fetch loads from disk. The others have no records in its response."""

MAX_LOADS = 4
"""One each for the index, the first batch and the last, and one in case the cache lost a page."""

_NO_RECORDS = b""


def create_fetch_reader(
    request: FetchRequest, fetch: FetchContext, context: RequestContext
) -> "FetchReader":
    """Returns the reader of a consumer or of a follower, by the replica id of the request."""
    if context.api_version >= FIRST_VERSION_WITH_REPLICA_STATE:
        replica_id, epoch = request.replica_state.replica_id, request.replica_state.replica_epoch
    else:
        replica_id, epoch = request.replica_id, -1
    if replica_id >= 0:
        return FollowerFetchReader(request, fetch, context, replica_id, epoch)
    return ConsumerFetchReader(request, fetch, context)


class FetchReader(ABC):
    """The results of a fetch, and whether they suffice to respond."""

    __slots__ = (
        "_available_bytes",
        "_by_id",
        "_by_key",
        "_cold_reads",
        "_context",
        "_counted_bytes",
        "_dirty",
        "_fetch",
        "_generation",
        "_max_bytes",
        "_metrics",
        "_min_bytes",
        "_pread",
        "_results",
        "_returned_bytes",
        "_selector",
        "has_errors",
        "is_complete",
    )

    def __init__(self, request: FetchRequest, fetch: FetchContext, context: RequestContext) -> None:
        self._context = context
        self._fetch = fetch
        self._dirty = fetch.dirty_partitions
        self._by_id = context.api_version >= FIRST_VERSION_WITH_TOPIC_IDS
        self._metrics = context.broker.metrics.topic
        authorizer = context.broker.authorizer
        self._generation = authorizer.generation if authorizer is not None else None
        self._max_bytes = min(request.max_bytes, context.broker.settings["fetch.max.bytes"])
        self._min_bytes = min(request.min_bytes, self._max_bytes)
        self._returned_bytes = 0
        self._available_bytes = 0
        self._counted_bytes: dict[SessionPartition, int] = {}
        self._results: dict[SessionPartition, PartitionData] = {}
        # The results so far; a session has none for partitions without changes.
        self._by_key: dict[Hashable, SessionPartition] = {}
        self._cold_reads: dict[SessionPartition, ColdRead] = {}
        self._pread: PositionalRead = pread_cached
        self._selector: RackAwareReplicaSelector | None = None
        self.has_errors = False
        self.is_complete = False
        """Whether to respond now: with enough bytes, or with a result that must not be delayed."""

    def read_all(self) -> None:
        partitions = self._fetch.partitions_to_read()
        if self._context.broker.authorizer is not None:
            partitions = self._reject_denied(partitions)
        for requested in partitions:
            if not requested.watched_keys or not self._is_unchanged(requested):
                self._read(requested)
        if self._available_bytes >= self._min_bytes or not self._fetch.partitions():
            self.is_complete = True

    @property
    def has_cold_reads(self) -> bool:
        """Whether partitions were not read, because the page cache does not have them."""
        return bool(self._cold_reads)

    async def read_cold(self, disk_reads: DiskReads) -> None:
        """Reads these partitions, after threads have loaded what is missing."""
        loads = 0
        while self._cold_reads:
            cold_reads, self._cold_reads = self._cold_reads, {}
            try:
                await disk_reads.run(partial(_load_all, list(cold_reads.values())))
                loads += 1
            except OSError:
                loads = MAX_LOADS
            if loads == MAX_LOADS:
                self._pread = os.pread  # finds the same error, or a page that was lost again
            for requested in cold_reads:
                self.read_again(requested)
        self._pread = pread_cached

    def watched_keys(self) -> Iterable[Hashable]:
        """Returns the keys whose change may complete the fetch."""
        if self._dirty is not None:
            return (self._dirty,)
        self._by_key = {
            self._keys(requested.partition)[0]: requested
            for requested in self._fetch.partitions()
            if requested.partition is not None
        }
        return self._by_key

    def on_change(self, key: Hashable, _: int) -> bool:
        """Reads what has changed; returns whether the fetch is complete."""
        requested = self._by_key.get(key)
        if requested is not None:
            self.read_again(requested)
        else:
            self.read_dirty()
        return self.is_complete or self.has_cold_reads

    def read_dirty(self) -> None:
        """Reads the partitions of a session that changed since they were read."""
        if self._dirty is not None:
            for requested in self._fetch.partitions_to_read():
                self.read_again(requested)

    def read_again(self, requested: SessionPartition) -> None:
        """Reads a partition that may have changed, instead of what was read of it before."""
        self._take_back(requested)
        self._read(requested)
        if self._available_bytes >= self._min_bytes:
            self.is_complete = True

    def continue_from(
        self,
        results: Mapping[SessionPartition, PartitionData],
        counted_bytes: Mapping[SessionPartition, int],
        *,
        max_bytes: int,
        min_bytes: int,
        generation: int | None,
        is_complete: bool,
    ) -> None:
        """Continues a fetch that has these results, instead of `read_all`.

        `generation` is that of the permissions with which it began.
        """
        self._max_bytes, self._min_bytes = max_bytes, min_bytes
        self._generation = generation
        self._results.update(results)
        self._counted_bytes.update(counted_bytes)
        self._available_bytes = sum(counted_bytes.values())
        self._returned_bytes = sum(map(_size_of, results.values()))
        self.is_complete = is_complete

    def limit_bytes(self, limit: float) -> None:
        """Makes the fetch return, and wait for, no more bytes than this."""
        self._max_bytes = min(self._max_bytes, max(int(limit), 1))
        self._min_bytes = min(self._min_bytes, self._max_bytes)

    def recheck_permissions(self) -> None:
        """Replaces the results of partitions that the client may no longer read by errors."""
        authorizer = self._context.broker.authorizer
        if authorizer is None:
            return
        if self._generation is not None and self._generation == authorizer.generation:
            return
        permissions = self._permissions()
        for requested in self._fetch.partitions():
            if not permissions.allow(requested):
                self._take_back(requested)
                self._reject(requested)

    def discard(self) -> None:
        """Takes back that the results were counted as sent."""
        for requested, result in self._results.items():
            if isinstance(result.records, LogSlice) and requested.partition is not None:
                self._count_bytes_out(requested.partition, -result.records.size_bytes)

    def results(self) -> Iterable[tuple[SessionPartition, PartitionData]]:
        return self._results.items()

    def _reject_denied(self, partitions: Iterable[SessionPartition]) -> list[SessionPartition]:
        """Returns the partitions that the client may read. The others are errors, which complete
        the fetch: nothing is read later on."""
        permissions = self._permissions()
        allowed = []
        for requested in partitions:
            if permissions.allow(requested):
                allowed.append(requested)
            else:
                self._reject(requested)
        return allowed

    def _reject(self, requested: SessionPartition) -> None:
        requested.partition = None
        requested.is_caught_up = False
        self._results[requested] = self._error_result(requested, denied(ResourceType.TOPIC))

    @abstractmethod
    def _permissions(self) -> FetchPermissions:
        """Returns what the client may read."""

    @abstractmethod
    def _fetch_partition(
        self, partition: Partition, requested: SessionPartition, max_bytes: int, at_least_one: bool
    ) -> tuple[LogReadResult, int]:
        """Reads a partition; also returns the offset up to which the reader may read."""

    @abstractmethod
    def _keys(self, partition: Partition) -> tuple[Hashable, ...]:
        """Returns the keys that changes notify; the first of them if there is more to read."""

    def _is_unchanged(self, requested: SessionPartition) -> bool:
        """Returns whether a partition of a session need not be read, by a cheap check."""
        return False

    @abstractmethod
    def _count_bytes_out(self, partition: Partition, size_bytes: int) -> None:
        """Counts bytes that will be sent, or a negative number that will not be sent after all."""

    def _is_caught_up_at_end(self, partition: Partition) -> bool:
        """Returns whether a partition, read to its end, need not be read until it changes."""
        return True

    def _read(self, requested: SessionPartition) -> None:
        returned_bytes = self._returned_bytes
        max_bytes = requested.max_bytes
        if max_bytes > self._max_bytes - returned_bytes:
            max_bytes = self._max_bytes - returned_bytes
        requested.is_caught_up = False
        try:
            partition = requested.partition
            if partition is None or partition.error_code is not None:
                partition = requested.partition = self._find(requested)
            if self._dirty is not None:
                self._dirty.watch(requested, self._keys(partition), self._context.broker.purgatory)
            if self._selector is not None and partition.is_leader:
                preferred = self._selector.select(partition, requested.fetch_offset)
                if preferred is not None:
                    self._redirect(partition, requested, preferred)
                    return
            fetched, end = self._fetch_partition(
                partition, requested, max_bytes, not returned_bytes
            )
        except ColdRead as cold:
            self._on_cold_read(requested, cold)
            return
        except Exception as failure:
            self._results[requested] = self._error_result(requested, failure)
            return
        records, high_watermark, stable_offset, start_offset, aborted, diverging = fetched
        result = self._results[requested] = PartitionData(
            partition_index=requested.index,
            high_watermark=high_watermark,
            last_stable_offset=stable_offset,
            log_start_offset=start_offset,
            aborted_transactions=None if aborted is None else aborted_transactions_of(aborted),
            records=_NO_RECORDS if records is None else records,
        )
        self._metrics(partition.topic).fetch_requests += 1
        if records is not None:
            size_bytes = records.size_bytes
            self._count_bytes_out(partition, size_bytes)
            self._returned_bytes = returned_bytes + size_bytes
            self._count_towards_minimum(requested, records.next_offset < end, size_bytes, max_bytes)
        elif diverging is not None:
            result.diverging_epoch = EpochEndOffset(
                epoch=diverging.epoch, end_offset=diverging.end_offset
            )
            self.is_complete = True
        elif requested.fetch_offset < end:
            self._count_towards_minimum(requested, True, 0, max_bytes)
        else:
            requested.is_caught_up = self._is_caught_up_at_end(partition)

    def _count_towards_minimum(
        self, requested: SessionPartition, has_more: bool, size_bytes: int, max_bytes: int
    ) -> None:
        """Counts a partition towards the minimum; one with more records counts its whole limit.

        Its complete batches may be smaller than the limit, and waiting would not change that.
        """
        counted_bytes = max(size_bytes, max_bytes) if has_more else size_bytes
        self._counted_bytes[requested] = counted_bytes
        self._available_bytes += counted_bytes

    def _take_back(self, requested: SessionPartition) -> None:
        """Subtracts what a partition has added so far."""
        previous = self._results.get(requested)
        if previous is not None and isinstance(previous.records, LogSlice) and requested.partition:
            size_bytes = previous.records.size_bytes
            self._returned_bytes -= size_bytes
            self._count_bytes_out(requested.partition, -size_bytes)
        self._available_bytes -= self._counted_bytes.pop(requested, 0)

    def _on_cold_read(self, requested: SessionPartition, cold: ColdRead) -> None:
        """Leaves the records out, until `read_cold` reads the partition again."""
        assert requested.partition is not None
        self._results[requested] = _without_records(requested.partition, requested)
        if len(self._cold_reads) < MAX_COLD_PARTITIONS:
            self._cold_reads[requested] = cold

    def _find(self, requested: SessionPartition) -> Partition:
        partitions = self._context.broker.partitions
        if self._by_id:
            return partitions.get(requested.topic_id, requested.index)
        return partitions.get_by_name(requested.topic, requested.index)

    def _redirect(self, partition: Partition, requested: SessionPartition, preferred: int) -> None:
        """Returns a closer replica to the consumer, and no records."""
        result = self._results[requested] = _without_records(partition, requested)
        result.preferred_read_replica = preferred
        self.is_complete = True

    def _error_result(self, requested: SessionPartition, failure: Exception) -> PartitionData:
        code, _ = error_of(failure, "Fetch", self._context)
        if requested.partition is not None:
            self._metrics(requested.partition.topic).failed_fetch_requests += 1
        self.has_errors = True
        self.is_complete = True
        return PartitionData(
            partition_index=requested.index,
            error_code=code,
            high_watermark=-1,
            aborted_transactions=[] if requested.partition is None else None,
            records=_NO_RECORDS,
        )


class ConsumerFetchReader(FetchReader):
    """The fetch of a consumer."""

    __slots__ = ("_isolation", "_only_leader")

    def __init__(self, request: FetchRequest, fetch: FetchContext, context: RequestContext) -> None:
        super().__init__(request, fetch, context)
        self._isolation = request.isolation_level
        self._only_leader = context.api_version < FIRST_VERSION_WITH_RACKS
        self._selector = RackAwareReplicaSelector.for_rack(request.rack_id, context)

    def _permissions(self) -> FetchPermissions:
        return ConsumerPermissions(self._context)

    def _fetch_partition(
        self, partition: Partition, requested: SessionPartition, max_bytes: int, at_least_one: bool
    ) -> tuple[LogReadResult, int]:
        isolation = self._isolation
        fetched = partition.fetch(
            requested.fetch_offset,
            max_bytes,
            isolation=isolation,
            at_least_one=at_least_one,
            only_leader=self._only_leader,
            leader_epoch=requested.current_leader_epoch,
            last_fetched_epoch=requested.last_fetched_epoch,
            pread=self._pread,
        )
        return fetched, fetched.last_stable_offset if isolation else fetched.high_watermark

    def _keys(self, partition: Partition) -> tuple[Hashable, ...]:
        return (partition,)

    def _is_unchanged(self, requested: SessionPartition) -> bool:
        """Returns whether the consumer is at the high watermark, as it mostly is."""
        partition, offset = requested.partition, requested.fetch_offset
        requested.is_caught_up = (
            partition is not None
            and partition.is_leader
            and partition.high_watermark == offset
            and requested.current_leader_epoch in (partition.leader_epoch, NO_EPOCH)
            and requested.last_fetched_epoch == NO_EPOCH
            and self._selector is None
            and not requested.has_changed(offset, partition.log.log_start_offset)
        )
        return requested.is_caught_up

    def _count_bytes_out(self, partition: Partition, size_bytes: int) -> None:
        self._metrics(partition.topic).bytes_out += size_bytes


class FollowerFetchReader(FetchReader):
    """The fetch of a follower."""

    __slots__ = ("_now_ms", "_replica_epoch", "_replica_id", "_throttle")

    def __init__(
        self,
        request: FetchRequest,
        fetch: FetchContext,
        context: RequestContext,
        replica_id: int,
        replica_epoch: int,
    ) -> None:
        super().__init__(request, fetch, context)
        self._replica_id = replica_id
        self._replica_epoch = replica_epoch
        self._now_ms = context.now_ms
        self._throttle = context.broker.partitions.throttle

    def _permissions(self) -> FetchPermissions:
        return FollowerPermissions(self._context)

    def read_again(self, requested: SessionPartition) -> None:
        super().read_again(requested)
        # The followers delete deleted records soon: a new log start offset is not delayed.
        if self._results[requested].log_start_offset > requested.returned_log_start_offset >= 0:
            self.is_complete = True

    def _fetch_partition(
        self, partition: Partition, requested: SessionPartition, max_bytes: int, at_least_one: bool
    ) -> tuple[LogReadResult, int]:
        is_throttled = bool(self._throttle) and self._is_throttled(partition)
        if is_throttled:
            max_bytes, at_least_one = 0, False
        fetched = partition.fetch_as_follower(
            self._replica_id,
            self._replica_epoch,
            requested.fetch_offset,
            max_bytes,
            at_least_one=at_least_one,
            leader_epoch=requested.current_leader_epoch,
            last_fetched_epoch=requested.last_fetched_epoch,
            log_start_offset=requested.log_start_offset,
            now_ms=self._now_ms,
            pread=self._pread,
        )
        # Throttled records do not count as available, or the follower would fetch again at once.
        return fetched, requested.fetch_offset if is_throttled else partition.log.log_end_offset

    def _keys(self, partition: Partition) -> tuple[Hashable, ...]:
        """Returns the log first: the high watermark alone does not complete a follower's fetch."""
        return (partition.log, partition)

    def _count_bytes_out(self, partition: Partition, size_bytes: int) -> None:
        if self._throttle:
            self._throttle.record(partition.topic, partition.index, size_bytes, self._now_ms)

    def _is_caught_up_at_end(self, partition: Partition) -> bool:
        """Only if the controller says that the follower is in sync: if it rejects a change of the
        ISR, the next fetch submits another."""
        return partition.state is not None and self._replica_id in partition.state.isr

    def _is_throttled(self, partition: Partition) -> bool:
        return not partition.is_in_sync(self._replica_id) and self._throttle.is_over_quota(
            partition.topic, partition.index, self._now_ms
        )


def _size_of(result: PartitionData) -> int:
    return result.records.size_bytes if isinstance(result.records, LogSlice) else 0


def _without_records(partition: Partition, requested: SessionPartition) -> PartitionData:
    return PartitionData(
        partition_index=requested.index,
        high_watermark=partition.high_watermark,
        last_stable_offset=partition.last_stable_offset,
        log_start_offset=partition.log.log_start_offset,
        records=_NO_RECORDS,
    )


def _load_all(cold_reads: Iterable[ColdRead]) -> None:
    for cold in cold_reads:
        cold.load()


def aborted_transactions_of(transactions: list[tuple[int, int]]) -> list[AbortedTransaction]:
    return [
        AbortedTransaction(producer_id=producer_id, first_offset=first_offset)
        for producer_id, first_offset in transactions
    ]
