"""One partition that this broker follows, and the state of its fetches."""

from enum import Enum, auto
from heapq import heappop, heappush
from itertools import count
from typing import NamedTuple

from barnabas.metadata.partition_index import PartitionKey
from barnabas.replication.partition import Partition

UNKNOWN_HIGH_WATERMARK = -1


class PartitionFetchState(Enum):
    """What happens next with a followed partition."""

    FETCHING = auto()
    OUT_OF_RANGE = auto()
    """Its offset is outside the leader's log: ListOffsets finds where that begins and ends."""
    DELAYED = auto()
    """The leader responded with an error or an invalid response: fetched again after a backoff."""
    FAILED = auto()
    """Not fetched before there is another leader epoch, or another disk."""


class FetchPosition(NamedTuple):
    """What a fetch says about a partition; its response is ignored once that has changed."""

    offset: int
    last_epoch: int
    log_start_offset: int


class FollowedPartition:
    """A partition and its leader's epoch. Its log has the fetch offset."""

    __slots__ = (
        "delayed_until_ms",
        "error_count",
        "fetch_state",
        "is_throttled",
        "key",
        "leader_epoch",
        "leader_high_watermark",
        "partition",
    )

    def __init__(self, partition: Partition, leader_epoch: int) -> None:
        self.partition = partition
        self.key: PartitionKey = (partition.topic_id, partition.index)
        self.leader_epoch = leader_epoch
        self.fetch_state = PartitionFetchState.FETCHING
        self.leader_high_watermark = UNKNOWN_HIGH_WATERMARK
        self.error_count = 0
        """How many errors there were in a row: the backoff grows with it."""
        self.delayed_until_ms = 0
        self.is_throttled = False
        """The quota is exceeded: it is left out of fetches for now."""

    def __repr__(self) -> str:
        state = f"{self.fetch_state.name} at epoch {self.leader_epoch}"
        return f"<FollowedPartition {self.partition!r} {state}>"

    @property
    def name(self) -> str:
        return f"{self.partition.topic}-{self.partition.index}"

    @property
    def lag(self) -> int:
        """By how many offsets this log is behind the leader's high watermark."""
        return max(self.leader_high_watermark - self.partition.log.log_end_offset, 0)

    @property
    def is_in_sync(self) -> bool:
        """Whether this log had reached the leader's high watermark at the last response."""
        return self.leader_high_watermark != UNKNOWN_HIGH_WATERMARK and self.lag == 0

    def fetch_position(self) -> FetchPosition:
        """Returns what the next fetch says. An empty log has no epoch: it cannot diverge."""
        log = self.partition.log
        return FetchPosition(log.log_end_offset, log.latest_epoch, log.log_start_offset)


class DelayedPartitions:
    """The followed partitions that are fetched again after a backoff.

    A heap by the end of the backoff. An entry whose partition changed state is skipped.
    """

    __slots__ = ("_heap", "_numbers")

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, FollowedPartition]] = []
        self._numbers = count()

    def add(self, followed: FollowedPartition, until_ms: int) -> None:
        followed.fetch_state = PartitionFetchState.DELAYED
        followed.delayed_until_ms = until_ms
        heappush(self._heap, (until_ms, next(self._numbers), followed))

    def next_due_ms(self) -> int | None:
        """Returns when the next backoff ends."""
        heap = self._heap
        while heap and not _is_pending(heap[0]):
            heappop(heap)
        return heap[0][0] if heap else None

    def take_due(self, now_ms: int) -> list[FollowedPartition]:
        """Returns the partitions whose backoff has ended: they are fetched again."""
        ended = []
        while self._heap and self._heap[0][0] <= now_ms:
            delay = heappop(self._heap)
            if _is_pending(delay):
                delay[2].fetch_state = PartitionFetchState.FETCHING
                ended.append(delay[2])
        return ended


def _is_pending(delay: tuple[int, int, FollowedPartition]) -> bool:
    until_ms, _, followed = delay
    return (
        followed.fetch_state is PartitionFetchState.DELAYED
        and followed.delayed_until_ms == until_ms
    )
