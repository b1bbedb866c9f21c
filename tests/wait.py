"""Waiting for a condition in a test, with a timeout."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

from barnabas.testing.wait import wait_until

__all__ = ["async_wait_until", "wait_until"]

T = TypeVar("T")


async def async_wait_until(
    condition: Callable[[], T], message: str = "", timeout_s: float = 60.0, *, poll_s: float = 0.001
) -> T:
    """Waits like `wait_until` on an event loop, by the clock of that loop."""
    loop = asyncio.get_running_loop()
    deadline_s = loop.time() + timeout_s
    while not (value := condition()):
        if loop.time() > deadline_s:
            raise TimeoutError(f"not within {timeout_s:g} s: {message or condition}")
        await asyncio.sleep(poll_s)
    return value
