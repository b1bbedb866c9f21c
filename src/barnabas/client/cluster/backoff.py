"""How long to wait: until a deadline, and longer after each failure in a row."""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass

JITTER = 0.2


@dataclass(slots=True, frozen=True)
class Deadline:
    """A time of the loop's clock, which is the monotonic one."""

    loop_time_s: float

    @classmethod
    def after(cls, timeout_ms: float) -> "Deadline":
        """So many milliseconds from now."""
        return cls(time.monotonic() + timeout_ms / 1000)

    def remaining_ms(self) -> int:
        """Never below zero."""
        return max(0, round((self.loop_time_s - time.monotonic()) * 1000))

    @property
    def has_passed(self) -> bool:
        return time.monotonic() >= self.loop_time_s


class Backoff:
    """Pauses that double from `first_ms` to `longest_ms`, a fifth more or less each (KIP-580)."""

    __slots__ = ("_first_ms", "_longest_ms", "_random", "failures")

    def __init__(
        self, first_ms: float, longest_ms: float, random: Callable[[], float] = random.random
    ) -> None:
        self._first_ms = first_ms
        self._longest_ms = max(first_ms, longest_ms)
        self._random = random
        self.failures = 0

    def next_ms(self) -> float:
        """How long to pause after one more failure."""
        pause_ms = min(self._first_ms * 2.0 ** min(self.failures, 30), self._longest_ms)
        self.failures += 1
        return pause_ms * (1 - JITTER + 2 * JITTER * self._random())

    def reset(self) -> None:
        """It worked."""
        self.failures = 0
