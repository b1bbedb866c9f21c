"""Time that jumps to the next event."""

import heapq
from collections.abc import Callable


class Clock:
    """The events to come, in order of time and then of scheduling."""

    def __init__(self) -> None:
        self.now_ms = 0
        self._events: list[tuple[int, int, Callable[[], None]]] = []
        self._scheduled = 0

    def later(self, delay_ms: int, event: Callable[[], None]) -> None:
        self._scheduled += 1
        heapq.heappush(self._events, (self.now_ms + delay_ms, self._scheduled, event))

    def run_until(self, end_ms: int) -> None:
        while self._events and self._events[0][0] <= end_ms:
            self.now_ms, _, event = heapq.heappop(self._events)
            event()
        self.now_ms = end_ms
