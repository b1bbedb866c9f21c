"""The followed partitions that are fetched again after a backoff."""

from heapq import heappop, heappush
from itertools import count

from barnabas.replication.replica_fetcher.followed_partition import FetchState, FollowedPartition


class DelayedPartitions:
    """A heap by the end of the backoff. An entry whose partition changed state is skipped."""

    __slots__ = ("_heap", "_numbers")

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, FollowedPartition]] = []
        self._numbers = count()

    def add(self, followed: FollowedPartition, until_ms: int) -> None:
        followed.fetch_state = FetchState.DELAYED
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
                delay[2].fetch_state = FetchState.FETCHING
                ended.append(delay[2])
        return ended


def _is_pending(delay: tuple[int, int, FollowedPartition]) -> bool:
    until_ms, _, followed = delay
    return followed.fetch_state is FetchState.DELAYED and followed.delayed_until_ms == until_ms
