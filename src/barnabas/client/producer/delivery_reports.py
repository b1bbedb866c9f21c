"""Delivery reports and events on their way from the loop to the user's thread, run by `poll`."""

import threading
from collections import deque
from collections.abc import Callable
from typing import Any

from barnabas.client.producer._accumulator import RecordAccumulator
from barnabas.client.producer._batch import ProducerBatch
from barnabas.client.producer.lost_records import PURGED

OnDelivery = Callable[[Any, Any], object]
"""Called with a KafkaError or None, and the Message."""

Event = Callable[[], object]
"""A callback of the user with its arguments: error_cb, stats_cb, throttle_cb."""


class DeliveryReports:
    """Filled on the loop; the callbacks run in the thread that calls `run_callbacks`."""

    def __init__(self, accumulator: RecordAccumulator, notify: Callable[[], object]) -> None:
        self._accumulator = accumulator
        self._notify = notify
        self._entries: deque[ProducerBatch | Event] = deque()
        self.has_flush_timed_out = False
        """Whether the last flush returned before all records were delivered."""

    @property
    def event_count(self) -> int:
        """The events that wait; batches are counted by the accumulator until they are reported."""
        return sum(not isinstance(entry, ProducerBatch) for entry in list(self._entries))

    @property
    def undelivered_count(self) -> int:
        """The records that are not delivered, or failed without a report so far."""
        batches = [entry for entry in list(self._entries) if isinstance(entry, ProducerBatch)]
        known = sum(
            batch.record_count
            for batch in batches
            if batch.error is None or batch.error.code() in PURGED
        )
        return max(0, self._accumulator.buffered_records - known)

    def put(self, entry: ProducerBatch | Event) -> None:
        self._entries.append(entry)
        self._notify()

    def deallocate(self, batch: ProducerBatch) -> None:
        """Releases the memory of a batch whose callbacks have run, or that has none."""
        if self._accumulator.deallocate(batch) or not self._accumulator.buffered_records:
            self._notify()

    def run_callbacks(self) -> int:
        """Runs all callbacks that wait, and returns how many.

        Raises what a callback raises; the next call continues after that callback.
        """
        count = 0
        while True:
            try:
                entry = self._entries.popleft()
            except IndexError:
                return count
            if not isinstance(entry, ProducerBatch):
                entry()
                count += 1
                continue
            try:
                count += entry.run_callbacks()
            except BaseException:
                self._entries.appendleft(entry)
                raise
            self.deallocate(entry)


class Notifier:
    """Wakes threads that wait; Ctrl-C interrupts the waiting."""

    __slots__ = ("_condition", "_count")

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._count = 0

    @property
    def count(self) -> int:
        """The number of notifications: read it before the state that you would wait for."""
        return self._count

    def notify(self) -> None:
        with self._condition:
            self._count += 1
            self._condition.notify_all()

    def wait(self, count: int, timeout_s: float | None) -> None:
        """Waits until there were more notifications than `count`."""
        with self._condition:
            if self._count == count:
                self._condition.wait(timeout_s)
