"""Deadlines by the hundred thousand behind one timer of the event loop.

Alarms that fall due in the same millisecond share a bucket. Setting and calling off an alarm is
a lookup in a dict, whatever their number; only a millisecond without a bucket costs a push on a
heap of milliseconds. The core, `Deadlines`, is told the time and knows no loop.
"""

import asyncio
import logging
import math
from collections.abc import Callable
from heapq import heapify, heappop, heappush

log = logging.getLogger(__name__)

_STALE_TICKS_ALLOWED = 1024


class Timer:
    """Calls back after a delay, on the loop."""

    __slots__ = ("_armed_for_ms", "_deadlines", "_handle", "_loop")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._deadlines = Deadlines()
        self._handle: asyncio.TimerHandle | None = None
        self._armed_for_ms: float = math.inf

    def __len__(self) -> int:
        return len(self._deadlines)

    def after(self, delay_ms: int, callback: Callable[[], object]) -> "Alarm":
        """An alarm that goes off no sooner than `delay_ms` from now, and once."""
        now_ms = self._loop.time() * 1000
        # Rounded up, for an alarm must not be early; but what is due now does not wait.
        deadline_ms = math.ceil(now_ms) + delay_ms if delay_ms > 0 else math.floor(now_ms)
        alarm = Alarm(deadline_ms, callback)
        self._deadlines.add(alarm)
        if alarm.deadline_ms < self._armed_for_ms:
            self._arm(alarm.deadline_ms)
        return alarm

    def cancel(self, alarm: "Alarm") -> None:
        """Calls it off; no harm if it has gone off already."""
        # The loop's timer stays as it is: waking once for nothing is cheaper than moving it.
        self._deadlines.remove(alarm)
        alarm.is_set = False

    def close(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
        self._handle = None
        self._armed_for_ms = math.inf
        self._deadlines = Deadlines()

    def _arm(self, deadline_ms: int) -> None:
        if self._handle is not None:
            self._handle.cancel()
        self._armed_for_ms = deadline_ms
        self._handle = self._loop.call_at(deadline_ms / 1000, self._ring)

    def _ring(self) -> None:
        # The loop may run a timer up to its clock's resolution early; that one is due too.
        now_ms = max(math.floor(self._loop.time() * 1000), int(self._armed_for_ms))
        self._handle = None
        self._armed_for_ms = math.inf
        for alarm in self._deadlines.due(now_ms):
            if alarm.is_set:  # one before it may have called it off
                alarm.ring()
        next_ms = self._deadlines.next_ms()
        if next_ms is not None and next_ms < self._armed_for_ms:
            self._arm(next_ms)


class Alarm:
    """One deadline."""

    __slots__ = ("_callback", "deadline_ms", "is_set")

    def __init__(self, deadline_ms: int, callback: Callable[[], object]) -> None:
        self.deadline_ms = deadline_ms
        self.is_set = True
        self._callback = callback

    def ring(self) -> None:
        self.is_set = False
        try:
            self._callback()
        except Exception:
            log.exception("an alarm went off and failed")


class Deadlines:
    """Alarms by the millisecond they are due in, given the time by the caller."""

    __slots__ = ("_buckets", "_count", "_ticks")

    def __init__(self) -> None:
        self._buckets: dict[int, dict[Alarm, None]] = {}  # none is empty
        self._ticks: list[int] = []  # heap: every key of _buckets, and some that left it
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, alarm: Alarm) -> None:
        tick = alarm.deadline_ms
        bucket = self._buckets.get(tick)
        if bucket is None:
            self._buckets[tick] = {alarm: None}
            heappush(self._ticks, tick)
        else:
            bucket[alarm] = None
        self._count += 1

    def remove(self, alarm: Alarm) -> bool:
        """Whether it was still set."""
        bucket = self._buckets.get(alarm.deadline_ms)
        if bucket is None or bucket.pop(alarm, alarm) is alarm:
            return False
        self._count -= 1
        if not bucket:
            del self._buckets[alarm.deadline_ms]
            # Far deadlines that come and go must not pile up in the heap.
            if len(self._ticks) > 2 * len(self._buckets) + _STALE_TICKS_ALLOWED:
                self._ticks = list(self._buckets)
                heapify(self._ticks)
        return True

    def due(self, now_ms: int) -> list[Alarm]:
        """Takes out every alarm whose time has come, earliest first."""
        due: list[Alarm] = []
        while self._ticks and self._ticks[0] <= now_ms:
            bucket = self._buckets.pop(heappop(self._ticks), None)
            if bucket:
                due.extend(bucket)
        self._count -= len(due)
        return due

    def next_ms(self) -> int | None:
        """When to ask `due` again; None while nothing is set."""
        while self._ticks and self._ticks[0] not in self._buckets:
            heappop(self._ticks)
        return self._ticks[0] if self._ticks else None
