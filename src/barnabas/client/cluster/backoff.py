"""Deadlines, and the backoff between retries."""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass

JITTER = 0.2


@dataclass(slots=True, frozen=True)
class Deadline:
    """A point of time on the monotonic clock, which asyncio's loops use too."""

    loop_time_s: float

    @classmethod
    def after(cls, timeout_ms: float) -> "Deadline":
        """Returns the deadline that many milliseconds from now."""
        return cls(time.monotonic() + timeout_ms / 1000)

    def remaining_ms(self) -> int:
        """Returns the time until the deadline, never below zero."""
        return max(0, round((self.loop_time_s - time.monotonic()) * 1000))

    @property
    def has_passed(self) -> bool:
        return time.monotonic() >= self.loop_time_s


class Backoff:
    """Pauses that double from `first_ms` to `max_ms`, each 20 % longer or shorter (KIP-580)."""

    __slots__ = ("_first_ms", "_max_ms", "_random", "failures")

    def __init__(
        self,
        first_ms: float,
        max_ms: float,
        *,
        failures: int = 0,
        random: Callable[[], float] = random.random,
    ) -> None:
        self._first_ms = first_ms
        self._max_ms = max(first_ms, max_ms)
        self._random = random
        self.failures = failures  # in a row, so far

    def next_ms(self) -> float:
        """Counts one more failure, and returns how long to wait after it."""
        pause_ms = min(self._first_ms * 2.0 ** min(self.failures, 30), self._max_ms)
        self.failures += 1
        return pause_ms * (1 - JITTER + 2 * JITTER * self._random())

    def reset(self) -> None:
        """Starts again with the first pause, after a success."""
        self.failures = 0
