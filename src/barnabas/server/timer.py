"""A timer for hundreds of thousands of tasks, on one timer of the event loop.

Tasks that are due in the same millisecond share a bucket. To add or cancel a task is a lookup in
a dict, whatever their number; only the first task of a millisecond is a push on a heap. To postpone
a task only sets its deadline: it moves to another bucket when its own is due. The core,
`TimerQueue`, takes the time as an argument and uses no loop.
"""

import asyncio
import logging
import math
from collections.abc import Callable
from heapq import heapify, heappop, heappush

log = logging.getLogger(__name__)

_MAX_STALE_TICKS = 1024
_NO_TICK = -1


class Timer:
    """Runs tasks on the loop after a delay."""

    __slots__ = ("_handle", "_loop", "_queue", "_scheduled_ms")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._queue = TimerQueue()
        self._handle: asyncio.TimerHandle | None = None
        self._scheduled_ms: float = math.inf

    def __len__(self) -> int:
        return len(self._queue)

    def call_after(self, delay_ms: int, callback: Callable[[], object]) -> "TimerTask":
        """Calls `callback` once, no sooner than in `delay_ms`."""
        return self._add(TimerTask(self._deadline_ms(delay_ms), callback))

    def restart(self, task: "TimerTask", delay_ms: int) -> "TimerTask":
        """Has the callback of a task that is pending called in `delay_ms` instead.

        Returns the task that replaces it, mostly itself. To postpone a task, as heartbeats do, does
        not change the queue.
        """
        deadline_ms = self._deadline_ms(delay_ms)
        if self._queue.postpone(task, deadline_ms):
            return task
        self.cancel(task)
        return self._add(TimerTask(deadline_ms, task.callback))

    def cancel(self, task: "TimerTask") -> None:
        """Cancels a task; does nothing if it has run already."""
        # The loop's timer stays as it is: waking once for nothing is cheaper than moving it.
        self._queue.remove(task)
        task.is_pending = False

    def close(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
        self._handle = None
        self._scheduled_ms = math.inf
        self._queue = TimerQueue()

    def _deadline_ms(self, delay_ms: int) -> int:
        now_ms = self._loop.time() * 1000
        # Rounded up, because a task must not run early; but a task without delay does not wait.
        return math.ceil(now_ms) + delay_ms if delay_ms > 0 else math.floor(now_ms)

    def _add(self, task: "TimerTask") -> "TimerTask":
        self._queue.add(task)
        if task.deadline_ms < self._scheduled_ms:
            self._schedule(task.deadline_ms)
        return task

    def _schedule(self, deadline_ms: int) -> None:
        if self._handle is not None:
            self._handle.cancel()
        self._scheduled_ms = deadline_ms
        self._handle = self._loop.call_at(deadline_ms / 1000, self._run_due)

    def _run_due(self) -> None:
        # The loop may call this up to its clock's resolution too early.
        now_ms = max(math.floor(self._loop.time() * 1000), int(self._scheduled_ms))
        self._handle = None
        self._scheduled_ms = math.inf
        for task in self._queue.pop_due(now_ms):
            if task.is_pending:  # an earlier task may have cancelled it
                task.run()
        next_ms = self._queue.next_deadline_ms()
        if next_ms is not None and next_ms < self._scheduled_ms:
            self._schedule(next_ms)


class TimerTask:
    """A callback with a deadline."""

    __slots__ = ("callback", "deadline_ms", "is_pending", "tick")

    def __init__(self, deadline_ms: int, callback: Callable[[], object]) -> None:
        self.deadline_ms = deadline_ms
        self.is_pending = True
        self.tick = _NO_TICK
        """The bucket of a queue that it is in. It is earlier than the deadline of a task that was
        postponed."""
        self.callback = callback

    def run(self) -> None:
        self.is_pending = False
        try:
            self.callback()
        except Exception:
            log.exception("A timer task failed")


class TimerQueue:
    """Tasks by the millisecond in which they are due."""

    __slots__ = ("_buckets", "_count", "_ticks")

    def __init__(self) -> None:
        self._buckets: dict[int, dict[TimerTask, None]] = {}  # none is empty
        self._ticks: list[int] = []  # a heap of all keys of _buckets, and of some that were removed
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, task: TimerTask) -> None:
        tick = task.tick = task.deadline_ms
        bucket = self._buckets.get(tick)
        if bucket is None:
            self._buckets[tick] = {task: None}
            heappush(self._ticks, tick)
        else:
            bucket[task] = None
        self._count += 1

    def remove(self, task: TimerTask) -> bool:
        """Returns whether the task was in the queue."""
        tick = task.tick
        bucket = self._buckets.get(tick)
        if bucket is None or bucket.pop(task, task) is task:
            return False
        self._count -= 1
        task.tick = _NO_TICK
        if not bucket:
            del self._buckets[tick]
            # Cancelled tasks with distant deadlines must not accumulate in the heap.
            if len(self._ticks) > 2 * len(self._buckets) + _MAX_STALE_TICKS:
                self._ticks = list(self._buckets)
                heapify(self._ticks)
        return True

    def postpone(self, task: TimerTask, deadline_ms: int) -> bool:
        """Sets the deadline of a task. Returns False, and does nothing, if the task is not in the
        queue, or if it would be due before its bucket is."""
        if task.tick == _NO_TICK or deadline_ms < task.tick:
            return False
        task.deadline_ms = deadline_ms
        return True

    def pop_due(self, now_ms: int) -> list[TimerTask]:
        """Removes and returns the tasks that are due, earliest first."""
        due: list[TimerTask] = []
        while self._ticks and self._ticks[0] <= now_ms:
            tick = heappop(self._ticks)
            for task in self._buckets.pop(tick, ()):
                self._count -= 1
                if task.deadline_ms > tick:
                    self.add(task)  # it was postponed
                else:
                    task.tick = _NO_TICK
                    due.append(task)
        return due

    def next_deadline_ms(self) -> int | None:
        """Returns when to call `pop_due` again, or None if the queue is empty."""
        while self._ticks and self._ticks[0] not in self._buckets:
            heappop(self._ticks)
        return self._ticks[0] if self._ticks else None
