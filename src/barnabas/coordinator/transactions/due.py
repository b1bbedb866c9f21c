"""Transactional ids that deserve a look at some time, found without looking at all of them."""

from collections.abc import Iterator
from heapq import heappop, heappush


class DueIds:
    """By id the earliest time to look at it.

    A deadline that has been put off is not moved: whoever looks finds it early and watches the id
    anew. So an id costs a push on the heap once per deadline that passes, not once per
    transaction, and there is about one entry for each id.
    """

    __slots__ = ("_earliest", "_heap")

    def __init__(self) -> None:
        self._heap: list[tuple[int, str]] = []
        self._earliest: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._earliest)

    def watch(self, transactional_id: str, due_ms: int) -> None:
        """Look at the id when `due_ms` has passed, or before."""
        known_ms = self._earliest.get(transactional_id)
        if known_ms is None or due_ms < known_ms:
            self._earliest[transactional_id] = due_ms
            heappush(self._heap, (due_ms, transactional_id))

    def passed(self, now_ms: int, limit: int) -> Iterator[str]:
        """At most `limit` ids whose time has passed; they are no longer watched."""
        while limit and self._heap and self._heap[0][0] < now_ms:
            due_ms, transactional_id = heappop(self._heap)
            if self._earliest.get(transactional_id) == due_ms:
                del self._earliest[transactional_id]
                limit -= 1
                yield transactional_id
