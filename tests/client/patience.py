"""A call that is given little time, so that a test is quick, and more where a machine is slow."""

import re
from collections.abc import Awaitable, Callable

import pytest

from barnabas import KafkaException

TIMES_S = (0.3, 3.0, 30.0)


def refused(call: Callable[[float], object], words: str) -> KafkaException:
    """What the call, given so many seconds, fails with; it may find out why later than in time."""
    for timeout_s in TIMES_S:
        with pytest.raises(KafkaException) as caught:
            call(timeout_s)
        if re.search(words, str(caught.value)):
            return caught.value
    raise AssertionError(f"{words!r} is not in {caught.value}")


async def awaited_refusal(call: Callable[[float], Awaitable[object]], words: str) -> KafkaException:
    """The same of a call on the test's own loop."""
    for timeout_s in TIMES_S:
        with pytest.raises(KafkaException) as caught:
            await call(timeout_s)
        if re.search(words, str(caught.value)):
            return caught.value
    raise AssertionError(f"{words!r} is not in {caught.value}")
