"""The clock of a broker, which a test can advance: wall clock and timers.

An idle event loop asks its selector to wait until the next timer. Instead of waiting, the selector
here advances the clock to that timer. Everything due before has been done by then.
"""

import asyncio
import selectors
import threading
import time
from collections.abc import Callable
from concurrent.futures import Executor
from typing import Any

MAX_JUMPS = 100
"""A long advance takes at most this many jumps; periodic work in between runs less often."""

TIMEOUT_S = 60.0


class BrokerClock:
    """Runs like the system clock, until it is advanced or frozen."""

    def __init__(self) -> None:
        self._wall_s = time.time() - time.monotonic()
        self._offset_s = 0.0
        self._frozen_at_s: float | None = None  # the monotonic time when it was frozen
        self._loop: ClockEventLoop | None = None  # while the broker runs
        self._advance_lock = threading.Lock()  # one thread advances at a time

    def advance(self, seconds: float) -> None:
        """Advances the clock; returns when the broker has done everything that became due.

        Clients keep using the system clock.
        """
        if seconds < 0:
            raise ValueError(f"cannot advance the clock by {seconds} s")
        done_event = threading.Event()
        with self._advance_lock:
            if not self._run_on_loop(lambda loop: loop.selector.advance(seconds, done_event)):
                self.jump(seconds)
            elif not done_event.wait(TIMEOUT_S):
                raise TimeoutError(f"the broker was not idle within {TIMEOUT_S} s")

    def freeze(self) -> None:
        """Stops the clock, so that only `advance` moves it."""
        if not self._run_on_loop(lambda _: self._freeze()):
            self._freeze()

    def resume(self) -> None:
        """Lets a frozen clock run again."""
        if not self._run_on_loop(lambda _: self._resume()):
            self._resume()

    def time(self) -> float:
        """Returns the time in seconds since 1970, like `time.time()`."""
        return self.monotonic() + self._wall_s

    # For the event loop of the broker

    @property
    def is_frozen(self) -> bool:
        return self._frozen_at_s is not None

    def time_ms(self) -> int:
        return int(self.time() * 1000)

    def monotonic(self) -> float:
        now_s = time.monotonic() if self._frozen_at_s is None else self._frozen_at_s
        return now_s + self._offset_s

    def jump(self, seconds: float) -> None:
        self._offset_s += seconds

    def attach(self, loop: "ClockEventLoop | None") -> None:
        """Sets the event loop of the running broker; None while it is stopped."""
        self._loop = loop

    def _freeze(self) -> None:
        if self._frozen_at_s is None:
            self._frozen_at_s = time.monotonic()

    def _resume(self) -> None:
        if self._frozen_at_s is not None:
            self._offset_s -= time.monotonic() - self._frozen_at_s
            self._frozen_at_s = None

    def _run_on_loop(self, action: "Callable[[ClockEventLoop], None]") -> bool:
        """Runs `action` on the event loop; returns False if there is none."""
        loop = self._loop
        if loop is None:
            return False
        done = threading.Event()

        def run() -> None:
            action(loop)
            done.set()

        loop.call_soon_threadsafe(run)
        return done.wait(TIMEOUT_S)


class ClockEventLoop(asyncio.SelectorEventLoop):
    """The event loop of a broker, on the clock of that broker."""

    def __init__(self, clock: BrokerClock) -> None:
        self._clock = clock
        self._executor_futures: set[asyncio.Future[Any]] = set()  # work in threads
        self.selector = _ClockSelector(clock, self._executor_futures)
        super().__init__(self.selector)

    def time(self) -> float:
        return self._clock.monotonic()

    def run_in_executor(  # type: ignore[override]
        self, executor: Executor | None, func: Callable[..., Any], *args: Any
    ) -> asyncio.Future[Any]:
        future = super().run_in_executor(executor, func, *args)
        self._executor_futures.add(future)
        future.add_done_callback(self._executor_futures.discard)
        return future


class _ClockSelector(selectors.DefaultSelector):
    """Waits for sockets and timers, or advances the clock instead."""

    def __init__(self, clock: BrokerClock, executor_futures: set[asyncio.Future[Any]]) -> None:
        super().__init__()
        self._clock = clock
        self._executor_futures = executor_futures
        self._remaining_s = 0.0  # still to advance
        self._min_jump_s = 0.0
        self._done_event: threading.Event | None = None  # while the clock is being advanced

    def advance(self, seconds: float, done_event: threading.Event) -> None:
        self._remaining_s = seconds
        self._min_jump_s = seconds / MAX_JUMPS
        self._done_event = done_event

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        is_idle = timeout is None or timeout > 0
        if not is_idle:
            return super().select(0)
        if self._done_event is not None and not self._executor_futures:
            if events := super().select(0):
                return events
            if self._remaining_s > 0:
                self._jump(timeout)
                return []
            self._done_event.set()
            self._done_event = None
        return super().select(None if self._clock.is_frozen else timeout)

    def _jump(self, timeout: float | None) -> None:
        step_s = self._remaining_s
        if timeout is not None:
            step_s = min(step_s, max(timeout, self._min_jump_s))
        self._remaining_s -= step_s
        self._clock.jump(step_s)
