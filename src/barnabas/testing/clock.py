"""The time of one broker, which a test can move: its wall clock and all its timers.

A loop asks its selector to wait when it has nothing to do before the next timer. So it is there
that time is moved: instead of waiting, the clock jumps to that timer. What was due before has
been done by then, and so has what it led to.
"""

import asyncio
import selectors
import threading
import time
from collections.abc import Callable
from concurrent.futures import Executor
from typing import Any

MOST_JUMPS = 100
"""A long way is gone in so many jumps: of what repeats more often, rounds are left out."""

PATIENCE_S = 60.0


class Clock:
    """Goes as the machine's clock does, until it is moved ahead or stopped."""

    def __init__(self) -> None:
        self._wall_s = time.time() - time.monotonic()
        self._ahead_s = 0.0
        self._stopped_s: float | None = None  # when the machine's monotonic clock said so
        self._loop: Loop | None = None  # while the broker runs
        self._moving = threading.Lock()  # by one thread at a time

    def advance(self, seconds: float) -> None:
        """Let so much time pass at once; returns when the broker has done all that became due.

        Clients do not live by this clock: to them, the broker's time flies.
        """
        if seconds < 0:
            raise ValueError(f"time does not go back, as {seconds} s would have it")
        arrived = threading.Event()
        with self._moving:
            if not self._tell(lambda loop: loop.waiting.move(seconds, arrived)):
                self.jump(seconds)
            elif not arrived.wait(PATIENCE_S):
                raise TimeoutError(f"the broker found no rest within {PATIENCE_S} s")

    def freeze(self) -> None:
        """Stop the clock: no time passes any more, but by `advance`."""
        if not self._tell(lambda _: self._stop()):
            self._stop()

    def resume(self) -> None:
        """Let the clock go on from where it stands."""
        if not self._tell(lambda _: self._go_on()):
            self._go_on()

    def time(self) -> float:
        """In seconds since 1970, as `time.time()`."""
        return self.monotonic() + self._wall_s

    # For the broker's own loop

    @property
    def is_frozen(self) -> bool:
        return self._stopped_s is not None

    def time_ms(self) -> int:
        return int(self.time() * 1000)

    def monotonic(self) -> float:
        now_s = time.monotonic() if self._stopped_s is None else self._stopped_s
        return now_s + self._ahead_s

    def jump(self, seconds: float) -> None:
        self._ahead_s += seconds

    def drive(self, loop: "Loop | None") -> None:
        """Whose time it is from now on; nobody's while the broker is stopped."""
        self._loop = loop

    def _stop(self) -> None:
        if self._stopped_s is None:
            self._stopped_s = time.monotonic()

    def _go_on(self) -> None:
        if self._stopped_s is not None:
            self._ahead_s -= time.monotonic() - self._stopped_s
            self._stopped_s = None

    def _tell(self, order: "Callable[[Loop], None]") -> bool:
        """Carry it out where the time is looked at; False if that is nowhere."""
        loop = self._loop
        if loop is None:
            return False
        done = threading.Event()

        def carry_out() -> None:
            order(loop)
            done.set()

        loop.call_soon_threadsafe(carry_out)
        return done.wait(PATIENCE_S)


class Loop(asyncio.SelectorEventLoop):
    """The loop of one broker, by that broker's clock."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._under_way: set[asyncio.Future[Any]] = set()  # work that threads do
        self.waiting = _Waiting(clock, self._under_way)
        super().__init__(self.waiting)

    def time(self) -> float:
        return self._clock.monotonic()

    def run_in_executor(  # type: ignore[override]
        self, executor: Executor | None, func: Callable[..., Any], *args: Any
    ) -> asyncio.Future[Any]:
        future = super().run_in_executor(executor, func, *args)
        self._under_way.add(future)
        future.add_done_callback(self._under_way.discard)
        return future


class _Waiting(selectors.DefaultSelector):
    """Waits for sockets and timers, or moves the clock instead."""

    def __init__(self, clock: Clock, under_way: set[asyncio.Future[Any]]) -> None:
        super().__init__()
        self._clock = clock
        self._under_way = under_way
        self._left_s = 0.0  # of the way to go
        self._least_jump_s = 0.0
        self._arrived: threading.Event | None = None  # while the clock is being moved

    def move(self, seconds: float, arrived: threading.Event) -> None:
        self._left_s = seconds
        self._least_jump_s = seconds / MOST_JUMPS
        self._arrived = arrived

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        is_idle = timeout is None or timeout > 0
        if not is_idle:
            return super().select(0)
        if self._arrived is not None and not self._under_way:
            if events := super().select(0):
                return events
            if self._left_s > 0:
                self._jump(timeout)
                return []
            self._arrived.set()
            self._arrived = None
        return super().select(None if self._clock.is_frozen else timeout)

    def _jump(self, timeout: float | None) -> None:
        step_s = self._left_s
        if timeout is not None:
            step_s = min(step_s, max(timeout, self._least_jump_s))
        self._left_s -= step_s
        self._clock.jump(step_s)
