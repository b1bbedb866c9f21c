"""Simulated time: an event loop whose clock jumps to the next deadline, and random delays."""

import asyncio
from collections import deque
from collections.abc import Callable
from contextvars import Context, copy_context
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

    _ready: "deque[Step]"  # type: ignore[assignment]
    _stopping: bool

    def __init__(self) -> None:
        super().__init__()
        self._now_s = 0.0
        self._timers: list[tuple[float, int, Step]] = []
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

    def call_soon(  # type: ignore[override]
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> "Step":
        step = Step(self._now_s, callback, args, context)
        self._ready.append(step)
        return step

    def call_later(  # type: ignore[override]
        self,
        delay: float,
        callback: Callable[..., object],
        *args: Any,
        context: Context | None = None,
    ) -> "Step":
        return self.call_at(self._now_s + delay, callback, *args, context=context)

    def call_at(  # type: ignore[override]
        self,
        when: float,
        callback: Callable[..., object],
        *args: Any,
        context: Context | None = None,
    ) -> "Step":
        timer = Step(when, callback, args, context)
        self.add_timer(timer)
        return timer

    def add_timer(self, timer: "Step") -> None:
        heappush(self._timers, (timer.when_s, next(self._timer_numbers), timer))

    def call_without_process(
        self, delay_s: float, callback: Callable[..., object], *args: Any
    ) -> "Step":
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
            step = ready.popleft()
            if step.is_cancelled:
                continue
            try:
                step.run()
            except (SystemExit, KeyboardInterrupt):
                raise
            except BaseException as failure:
                message = f"an exception in {step.callback}"
                self.call_exception_handler({"message": message, "exception": failure})

    def _pass_time(self) -> None:
        """Moves the clock to the next timer."""
        timers = self._timers
        while timers and timers[0][2].is_cancelled:
            heappop(timers)
        if not timers:
            raise RuntimeError("deadlock: no callback is scheduled")
        if timers[0][0] > self._now_s:
            self._now_s = timers[0][0]
            self._turns = 0


class Step:
    """A callback that the loop will run, in its context.

    It stands in for `asyncio.Handle` and `asyncio.TimerHandle`, which take longer to make and run.
    """

    __slots__ = ("args", "callback", "context", "is_cancelled", "when_s")

    def __init__(
        self,
        when_s: float,
        callback: Callable[..., object],
        args: tuple[Any, ...],
        context: Context | None,
    ) -> None:
        self.when_s = when_s
        self.callback = callback
        self.args = args
        self.context = copy_context() if context is None else context
        self.is_cancelled = False

    def run(self) -> None:
        self.context.run(self.callback, *self.args)

    def cancel(self) -> None:
        """A cancelled timer stays in the heap until its time."""
        self.is_cancelled = True

    def cancelled(self) -> bool:
        return self.is_cancelled

    def when(self) -> float:
        return self.when_s


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
