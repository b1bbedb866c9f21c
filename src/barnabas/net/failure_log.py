"""Logs failures of clients that anybody can cause: each once a minute, and a bounded number."""

import logging
import time
from collections.abc import Callable
from typing import Final, NamedTuple

INTERVAL_S: Final = 60.0
MAX_LINES: Final = 100
"""In an interval. Names that clients choose make each line another one."""

_MAX_REMEMBERED: Final = 1024


class _LoggedFailure(NamedTuple):
    logged_s: float
    suppressed: int
    """How often it happened since."""


class FailureLog:
    """Logs a line again only after a minute, with the number of those in between.

    It logs no more than `MAX_LINES` lines in a minute. The caller's format has the arguments.
    """

    def __init__(self, log: logging.Logger, time_s: Callable[[], float] = time.monotonic) -> None:
        self._log = log
        self._time_s = time_s
        # By the hash of the line: a client that is not authenticated decides how long the line is.
        self._logged: dict[int, _LoggedFailure] = {}
        self._began_s = time_s()
        self._lines = 0  # since then

    def warn(self, text: str, *arguments: object) -> None:
        key = hash((text, *arguments))
        now_s = self._time_s()
        before = self._logged.pop(key, None)  # the newest are last
        if before is not None and now_s - before.logged_s < INTERVAL_S:
            self._logged[key] = before._replace(suppressed=before.suppressed + 1)
            return
        if now_s - self._began_s >= INTERVAL_S:
            self._began_s, self._lines = now_s, 0
        if self._lines >= MAX_LINES:
            return
        self._lines += 1
        if len(self._logged) >= _MAX_REMEMBERED:
            del self._logged[next(iter(self._logged))]
        self._logged[key] = _LoggedFailure(now_s, 0)
        if before is not None and before.suppressed:
            text, arguments = f"{text} (%d more since)", (*arguments, before.suppressed)
        self._log.warning(text, *arguments)
