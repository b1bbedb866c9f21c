"""Cleanings together stay below log.cleaner.io.max.bytes.per.second."""

import pytest

from barnabas.log.cleaner.throttler import CleanerThrottler


class ThrottledTime:
    """A clock that only moves by sleeping, or by hand."""

    def __init__(self, limit: float) -> None:
        self.limit = limit
        self.now_s = 0.0
        self.sleeps: list[float] = []
        self.throttler = CleanerThrottler(lambda: self.limit, lambda: self.now_s, self.sleep)

    def sleep(self, seconds: float) -> None:
        self.sleeps.append(seconds)
        self.now_s += seconds


@pytest.mark.parametrize("count", [1, 100, 999, 5000])
def test_the_rate_is_at_most_the_limit(count: int) -> None:
    time = ThrottledTime(limit=1000)
    for _ in range(50):
        time.throttler.on_bytes(count)
    unpaid_bytes = 50 * count - 1000 * time.now_s
    assert unpaid_bytes <= 300 + count  # a window of 0.3 s, and what made it too much


def test_slow_work_does_not_sleep() -> None:
    time = ThrottledTime(limit=1000)
    for _ in range(50):
        time.now_s += 0.1
        time.throttler.on_bytes(99)
    assert time.sleeps == []


def test_unused_time_is_no_credit_for_later() -> None:
    time = ThrottledTime(limit=1000)
    time.throttler.on_bytes(1)
    time.now_s += 100
    time.throttler.on_bytes(1)
    time.throttler.on_bytes(1000)
    assert sum(time.sleeps) == pytest.approx(1.0)


def test_no_limit_means_no_sleep() -> None:
    time = ThrottledTime(limit=1.7976931348623157e308)
    time.throttler.on_bytes(1 << 40)
    assert time.sleeps == []


def test_a_new_limit_holds_from_the_next_bytes_on() -> None:
    time = ThrottledTime(limit=1e9)
    time.throttler.on_bytes(1000)
    time.limit = 1000
    time.throttler.on_bytes(1000)
    assert sum(time.sleeps) == pytest.approx(2.0)


def test_a_stop_ends_a_long_sleep() -> None:
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        throttler.stop()

    throttler = CleanerThrottler(lambda: 1.0, lambda: 0.0, sleep)
    throttler.on_bytes(1000)
    assert len(slept) == 1
    assert slept[0] < 1


def test_the_bytes_are_counted_whatever_the_limit_is() -> None:
    time = ThrottledTime(limit=1000)
    for count in (1, 5000, 300):
        time.throttler.on_bytes(count)
    assert time.throttler.total_bytes == 5301
