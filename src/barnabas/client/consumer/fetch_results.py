"""What a Fetch response means for one partition: decided here for every reader of partitions.

The consumer's `Fetcher` and the `RangeReader` share these rules: which errors mean that metadata
is stale, which replica to read from, and when an offset is out of range. Nothing here sends,
waits or keeps time.
"""

import math
from collections.abc import Container
from dataclasses import dataclass

from barnabas.client.cluster import PartitionInfo
from barnabas.client.consumer._completed_fetch import scan_batches
from barnabas.client.errors import KafkaError, broker_error
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.fetch import PartitionData
from barnabas.wire.messages.leaders import LeaderIdAndEpoch

STALE_METADATA_ERRORS = frozenset(
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
"""Another broker leads the partition, or none does yet."""


@dataclass(slots=True, frozen=True)
class FetchedBatches:
    """Whole record batches, in the memory of the response."""

    batches: memoryview
    fetch_offset: int
    next_offset: int
    record_count: int
    leader_epoch: int  # of the last batch
    aborted: list[tuple[int, int]]  # producer id and first offset, in order of the offsets


@dataclass(slots=True, frozen=True)
class NoBatches:
    """The response has no records of the partition."""


@dataclass(slots=True, frozen=True)
class StaleMetadata:
    """The node is not the leader: refresh metadata, or use the leader that the node names."""

    error: KafkaError
    current_leader: LeaderIdAndEpoch  # (KIP-951); its id is -1 if the node names none


@dataclass(slots=True, frozen=True)
class FollowerFailed:
    """A follower could not serve the fetch: read from the leader."""

    error: KafkaError


@dataclass(slots=True, frozen=True)
class OffsetOutOfRange:
    """The leader does not have the fetch offset: it is before the log start or after its end."""


@dataclass(slots=True, frozen=True)
class FetchFailed:
    """An error that a retry alone does not fix."""

    error: KafkaError


FetchResult = (
    FetchedBatches | NoBatches | StaleMetadata | FollowerFailed | OffsetOutOfRange | FetchFailed
)


def read_fetch_result(data: PartitionData, fetch_offset: int, *, is_follower: bool) -> FetchResult:
    """Returns what a response says of a partition that was fetched at `fetch_offset`."""
    code = ErrorCode.of(data.error_code)
    if code in STALE_METADATA_ERRORS:
        return StaleMetadata(broker_error(code), data.current_leader)
    if code and is_follower:
        return FollowerFailed(broker_error(code))
    if code is ErrorCode.OFFSET_OUT_OF_RANGE:
        return OffsetOutOfRange()
    if code:
        return FetchFailed(broker_error(data.error_code))
    if not data.records:
        return NoBatches()
    assert isinstance(data.records, memoryview)
    size_bytes, next_offset, record_count, leader_epoch = scan_batches(data.records)
    if size_bytes == 0:
        reason = f"what was fetched at offset {fetch_offset} is not a record batch"
        return FetchFailed(KafkaError(KafkaError._BAD_MSG, reason))
    aborted = [(one.producer_id, one.first_offset) for one in data.aborted_transactions or ()]
    aborted.sort(key=lambda transaction: transaction[1])
    batches = data.records[:size_bytes]
    return FetchedBatches(batches, fetch_offset, next_offset, record_count, leader_epoch, aborted)


class ReadReplica:
    """The replica that a partition is read from.

    That is the leader of the metadata, unless a response has named a newer leader (KIP-951) or a
    replica that is closer to the client's rack (KIP-392).
    """

    __slots__ = ("_current_leader", "_preferred", "_preferred_until_s")

    def __init__(self) -> None:
        self._preferred: int | None = None
        self._preferred_until_s = 0.0
        self._current_leader: LeaderIdAndEpoch | None = None

    def select(self, leader: PartitionInfo, brokers: Container[int], now_s: float) -> int:
        """Returns the node to fetch from; only nodes in `brokers` can be reached."""
        if self._preferred is not None:
            if now_s < self._preferred_until_s and self._preferred in brokers:
                return self._preferred
            self._preferred = None
        named = self._current_leader
        if named is not None:
            if named.leader_epoch > leader.leader_epoch and named.leader_id in brokers:
                return named.leader_id
            self._current_leader = None
        return leader.leader

    def leader_epoch(self, leader: PartitionInfo | None) -> int:
        """Returns the newest known leader epoch, for the fetch request."""
        if self._current_leader is not None:
            return self._current_leader.leader_epoch
        return -1 if leader is None else leader.leader_epoch

    @property
    def has_preferred(self) -> bool:
        return self._preferred is not None

    def is_follower(self, node_id: int) -> bool:
        return self._preferred == node_id

    def prefer(self, node_id: int, until_s: float = math.inf) -> None:
        """Reads from a replica that the leader has named."""
        self._preferred = node_id
        self._preferred_until_s = until_s

    def prefer_leader(self) -> None:
        self._preferred = None

    def on_stale_metadata(self, result: StaleMetadata, leader: PartitionInfo | None) -> bool:
        """Returns whether the response names a leader that is newer than that of the metadata."""
        named = result.current_leader
        is_newer = leader is None or named.leader_epoch > leader.leader_epoch
        if named.leader_id < 0 or not is_newer:
            return False
        self._current_leader = named
        return True
