"""What the loop has for the user's thread: delivery reports and events, served by `poll`."""

import threading
from collections import deque
from collections.abc import Callable
from typing import Any

from barnabas.client.producer._accumulator import Accumulator
from barnabas.client.producer._batch import Batch

OnDelivery = Callable[[Any, Any], object]
"""Called with a KafkaError or None, and the Message."""

Event = Callable[[], object]
"""A callback of the user's with its arguments: error_cb, stats_cb, throttle_cb."""


class Outbox:
    """Filled on the loop; emptied in whatever thread of the user's serves it."""

    def __init__(self, accumulator: Accumulator, ring: Callable[[], object]) -> None:
        self._accumulator = accumulator
        self._ring = ring
        self._entries: deque[Batch | Event] = deque()

    @property
    def events(self) -> int:
        """How many events wait; batches are counted by the accumulator until they are served."""
        return sum(not isinstance(entry, Batch) for entry in list(self._entries))

    def put(self, entry: Batch | Event) -> None:
        self._entries.append(entry)
        self._ring()

    def let_go(self, batch: Batch) -> None:
        """A batch that nobody wants to hear of is over."""
        if self._accumulator.let_go(batch) or not self._accumulator.held_records:
            self._ring()

    def serve(self) -> int:
        """Run all callbacks that there are to run; how many that were.

        What a callback raises comes out of here; the next call goes on behind it.
        """
        served = 0
        while True:
            try:
                entry = self._entries.popleft()
            except IndexError:
                return served
            if not isinstance(entry, Batch):
                entry()
                served += 1
                continue
            try:
                served += entry.report()
            except BaseException:
                self._entries.appendleft(entry)
                raise
            self.let_go(entry)


class Bell:
    """Wakes threads that wait; Ctrl-C interrupts the waiting."""

    __slots__ = ("_condition", "_rings")

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._rings = 0

    @property
    def rings(self) -> int:
        """How often it has rung: to be looked at before what one would wait for."""
        return self._rings

    def ring(self) -> None:
        with self._condition:
            self._rings += 1
            self._condition.notify_all()

    def wait(self, rings: int, timeout_s: float | None) -> None:
        """Until it has rung more often than that."""
        with self._condition:
            if self._rings == rings:
                self._condition.wait(timeout_s)
