"""Simulated time: an event loop whose clock jumps to the next deadline, and random delays."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

START_MS = 1_700_000_000_000
MAX_TURNS_WITHOUT_TIME = 100_000
"""How often the loop may turn before time passes: more turns mean an endless loop."""


class SimulatedLoop(asyncio.BaseEventLoop):
    """An event loop without files, sockets and threads. Time passes when no callback is ready."""

    def __init__(self) -> None:
        super().__init__()
        self._clock_resolution = 1e-6
        self._selector = _ClockSelector()

    def time(self) -> float:
        return self._selector.now_s

    @property
    def now_ms(self) -> int:
        """The wall clock."""
        return START_MS + round(self.time() * 1000)

    @property
    def elapsed_ms(self) -> int:
        return self.now_ms - START_MS

    def run_for(self, duration_ms: float) -> None:
        """Runs callbacks until so much time has passed, or until `stop` is called."""
        end = self.call_later(duration_ms / 1000, self.stop)
        self.run_forever()
        end.cancel()

    def call_without_process(
        self, delay_s: float, callback: Callable[..., object], *args: Any
    ) -> asyncio.TimerHandle:
        """Calls it after a delay, as a step of no process: see `ProcessLoop`."""
        return self.call_later(delay_s, callback, *args)

    def _process_events(self, _: Sequence[object]) -> None:
        """There are no events of files or sockets."""


class _ClockSelector:
    """Moves the clock where a real selector would wait for sockets."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self._turns = 0

    def select(self, timeout_s: float | None) -> list[object]:
        if timeout_s is None:
            raise RuntimeError("deadlock: no callback is scheduled")
        if timeout_s > 0:
            self.now_s += timeout_s
            self._turns = 0
        self._turns += 1
        if self._turns > MAX_TURNS_WITHOUT_TIME:
            raise RuntimeError("endless loop: callbacks run and no time passes")
        return []


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
