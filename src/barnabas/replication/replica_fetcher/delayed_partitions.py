"""The partitions that are to be asked for again, each after a time of its own."""

from heapq import heappop, heappush
from itertools import count

from barnabas.replication.replica_fetcher.followed_partition import Followed, Standing


class Delays:
    """A heap by when they end. One that ended otherwise stays in it until its time has come."""

    __slots__ = ("_heap", "_numbers")

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, Followed]] = []
        self._numbers = count()

    def add(self, followed: Followed, until_ms: int) -> None:
        followed.standing = Standing.DELAYED
        followed.resumes_ms = until_ms
        heappush(self._heap, (until_ms, next(self._numbers), followed))

    def next_ms(self) -> int | None:
        """When the next one ends."""
        heap = self._heap
        while heap and not _is_pending(heap[0]):
            heappop(heap)
        return heap[0][0] if heap else None

    def end(self, now_ms: int) -> list[Followed]:
        """Those whose time has come: they may be fetched again."""
        ended = []
        while self._heap and self._heap[0][0] <= now_ms:
            delay = heappop(self._heap)
            if _is_pending(delay):
                delay[2].standing = Standing.FETCHING
                ended.append(delay[2])
        return ended


def _is_pending(delay: tuple[int, int, Followed]) -> bool:
    until_ms, _, followed = delay
    return followed.standing is Standing.DELAYED and followed.resumes_ms == until_ms
