"""Expecting an error of a call with a short timeout, or a longer one on a slow machine."""

import re
from collections.abc import Awaitable, Callable

import pytest

from barnabas import KafkaException

TIMEOUTS_S = (0.3, 3.0, 30.0)


def expect_error(call: Callable[[float], object], words: str) -> KafkaException:
    """Calls with growing timeouts until the error matches `words`, and returns it."""
    for timeout_s in TIMEOUTS_S:
        with pytest.raises(KafkaException) as caught:
            call(timeout_s)
        if re.search(words, str(caught.value)):
            return caught.value
    raise AssertionError(f"{words!r} is not in {caught.value}")


async def async_expect_error(
    call: Callable[[float], Awaitable[object]], words: str
) -> KafkaException:
    """The twin of `expect_error` for a coroutine."""
    for timeout_s in TIMEOUTS_S:
        with pytest.raises(KafkaException) as caught:
            await call(timeout_s)
        if re.search(words, str(caught.value)):
            return caught.value
    raise AssertionError(f"{words!r} is not in {caught.value}")
