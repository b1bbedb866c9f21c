"""Limits the bytes that all cleanings together read and write in a second."""

from collections.abc import Callable
from threading import Lock
from time import monotonic, sleep

_WINDOW_S = 0.3
_MAX_SLEEP_S = 0.5
"""A broker that stops waits for a sleep to end."""


class CleanerThrottler:
    """Sleeps in the threads of cleanings, so that their rate stays below a limit."""

    __slots__ = (
        "_clock",
        "_is_stopped",
        "_limit",
        "_lock",
        "_sleep",
        "_window_bytes",
        "_window_started_s",
        "total_bytes",
    )

    def __init__(
        self,
        limit: Callable[[], float],
        clock: Callable[[], float] = monotonic,
        sleep: Callable[[float], None] = sleep,
    ) -> None:
        self._limit = limit  # the current bytes per second
        self._is_stopped = False
        self._clock = clock
        self._sleep = sleep
        self._lock = Lock()
        self._window_started_s = clock()
        self._window_bytes = 0
        self.total_bytes = 0
        """What all cleanings have read and written since the start."""

    def on_bytes(self, count: int) -> None:
        """Counts bytes that were read or written, and sleeps if they were too many."""
        with self._lock:
            self.total_bytes += count
            self._window_bytes += count
            now_s = self._clock()
            elapsed_s = now_s - self._window_started_s
            due_s = self._window_bytes / self._limit()
            if elapsed_s < _WINDOW_S and due_s < _WINDOW_S:
                return
            delay_s = due_s - elapsed_s
            self._window_started_s = now_s + max(delay_s, 0.0)
            self._window_bytes = 0
        while delay_s > 0 and not self._is_stopped:
            pause_s = min(delay_s, _MAX_SLEEP_S)
            self._sleep(pause_s)
            delay_s -= pause_s

    def stop(self) -> None:
        """Ends the sleeps, because the broker stops."""
        self._is_stopped = True
