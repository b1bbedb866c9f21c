"""Simulated time: an event loop whose clock jumps to the next deadline, and random delays."""

import asyncio
from collections import deque
from collections.abc import Callable
from contextvars import Context
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import count
from random import Random
from typing import Any

START_MS = 1_700_000_000_000
CLOCK_RESOLUTION_S = 1e-6
MAX_TURNS_WITHOUT_TIME = 100_000
"""How often the loop may turn before time passes: more turns mean an endless loop."""


class SimulatedLoop(asyncio.BaseEventLoop):
    """An event loop without files, sockets and threads. Time passes when no callback is ready.

    It replaces asyncio's turn of the loop, which spends most of its time on what is not here.
    """

    _ready: deque[asyncio.Handle]
    _stopping: bool

    def __init__(self) -> None:
        super().__init__()
        self._now_s = 0.0
        self._timers: list[tuple[float, int, asyncio.TimerHandle]] = []
        """A heap. Timers of the same time run in the order in which they were set."""
        self._timer_numbers = count()
        self._turns = 0

    def time(self) -> float:
        return self._now_s

    @property
    def now_ms(self) -> int:
        """The wall clock."""
        return START_MS + round(self._now_s * 1000)

    @property
    def elapsed_ms(self) -> int:
        return self.now_ms - START_MS

    def run_for(self, duration_ms: float) -> None:
        """Runs callbacks until so much time has passed, or until `stop` is called."""
        end = self.call_later(duration_ms / 1000, self.stop)
        self.run_forever()
        end.cancel()

    def call_at(  # type: ignore[override]
        self,
        when: float,
        callback: Callable[..., object],
        *args: Any,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        timer = asyncio.TimerHandle(when, callback, args, self, context)
        self.add_timer(timer)
        return timer

    def add_timer(self, timer: asyncio.TimerHandle) -> None:
        heappush(self._timers, (timer.when(), next(self._timer_numbers), timer))

    def call_without_process(
        self, delay_s: float, callback: Callable[..., object], *args: Any
    ) -> asyncio.TimerHandle:
        """Calls it after a delay, as a step of no process: see `ProcessLoop`."""
        return self.call_later(delay_s, callback, *args)

    def close(self) -> None:
        self._timers.clear()
        super().close()

    def _run_once(self) -> None:
        """Runs the callbacks that are ready, after time has passed if there were none."""
        ready, timers = self._ready, self._timers
        if not ready and not self._stopping:
            self._pass_time()
        self._turns += 1
        if self._turns > MAX_TURNS_WITHOUT_TIME:
            raise RuntimeError("endless loop: callbacks run and no time passes")
        due_s = self._now_s + CLOCK_RESOLUTION_S
        while timers and timers[0][0] < due_s:
            ready.append(heappop(timers)[2])
        for _ in range(len(ready)):
            handle = ready.popleft()
            if not handle.cancelled():
                handle._run()

    def _pass_time(self) -> None:
        """Moves the clock to the next timer."""
        timers = self._timers
        while timers and timers[0][2].cancelled():
            heappop(timers)
        if not timers:
            raise RuntimeError("deadlock: no callback is scheduled")
        if timers[0][0] > self._now_s:
            self._now_s = timers[0][0]
            self._turns = 0

    def _timer_handle_cancelled(self, _: asyncio.TimerHandle) -> None:
        """A cancelled timer stays in the heap until its time."""


@dataclass(slots=True)
class Latency:
    """How long an operation takes: up to `fast_ms`, or sometimes up to `slow_ms`."""

    min_ms: float = 0.0
    fast_ms: float = 3.0
    slow_chance: float = 0.0
    slow_ms: float = 200.0
    in_whole_ms: bool = False
    """Whether events often happen at the same time, because all delays are whole milliseconds."""

    def draw_s(self, random: Random) -> float:
        max_ms = self.slow_ms if random.random() < self.slow_chance else self.fast_ms
        delay_ms = self.min_ms + random.random() * max_ms
        return (round(delay_ms) if self.in_whole_ms else delay_ms) / 1000
