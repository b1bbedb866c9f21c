"""Logs failures of clients that anybody can cause: each once a minute, and a bounded number."""

import logging
import time
from collections.abc import Callable
from typing import Final

INTERVAL_S: Final = 60.0
_MAX_REMEMBERED: Final = 1024


class FailureLog:
    """Logs a line again only after a minute. The caller's format has the arguments."""

    def __init__(self, log: logging.Logger, time_s: Callable[[], float] = time.monotonic) -> None:
        self._log = log
        self._time_s = time_s
        self._logged_s: dict[tuple[object, ...], float] = {}

    def warn(self, text: str, *arguments: object) -> None:
        key = (text, *arguments)
        now_s = self._time_s()
        logged_s = self._logged_s.get(key)
        if logged_s is not None and now_s - logged_s < INTERVAL_S:
            return
        self._logged_s.pop(key, None)  # the newest are last
        if len(self._logged_s) >= _MAX_REMEMBERED:
            del self._logged_s[next(iter(self._logged_s))]
        self._logged_s[key] = now_s
        self._log.warning(text, *arguments)
