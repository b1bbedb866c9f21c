"""Waiting for a condition with a timeout."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def wait_until(
    condition: Callable[[], T], message: str = "", timeout_s: float = 60.0, *, poll_s: float = 0.05
) -> T:
    """Calls `condition` until it returns a true value, and returns that value.

    Raises TimeoutError with `message`, which says what was waited for, after `timeout_s`.
    """
    deadline_s = time.monotonic() + timeout_s
    while not (value := condition()):
        if time.monotonic() > deadline_s:
            raise TimeoutError(f"not within {timeout_s:g} s: {message or condition}")
        time.sleep(poll_s)
    return value
