"""Deadlines, and the backoff between retries."""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass

Spread = tuple[float, float]
"""The range of random factors of a pause: clients that failed together retry apart."""

KAFKA_SPREAD: Spread = (0.8, 1.2)
FULL_SPREAD: Spread = (0.0, 1.0)


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
    """Pauses that double from `first_ms` to `max_ms`, each times a random factor (KIP-580)."""

    __slots__ = ("_first_ms", "_max_ms", "_random", "_spread", "failures")

    def __init__(
        self,
        first_ms: float,
        max_ms: float,
        *,
        failures: int = 0,
        spread: Spread = KAFKA_SPREAD,
        random: Callable[[], float] = random.random,
    ) -> None:
        self._first_ms = first_ms
        self._max_ms = max(first_ms, max_ms)
        self._spread = spread
        self._random = random
        self.failures = failures  # in a row, so far

    def next_ms(self) -> float:
        """Counts one more failure, and returns how long to wait after it."""
        pause_ms = min(self._first_ms * 2.0 ** min(self.failures, 30), self._max_ms)
        self.failures += 1
        low, high = self._spread
        return pause_ms * (low + (high - low) * self._random())

    def reset(self) -> None:
        """Starts again with the first pause, after a success."""
        self.failures = 0
