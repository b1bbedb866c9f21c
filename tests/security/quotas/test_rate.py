"""Rates over samples, and the delays that follow from them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.security.quotas.rate import RateWindow, SampledRate

START_MS = 1_000_000
WINDOW = RateWindow(11, 1000)

windows = st.builds(RateWindow, st.integers(2, 20), st.integers(10, 3000))
steps = st.lists(st.tuples(st.integers(0, 4000), st.integers(0, 10_000)), min_size=1)


def test_a_first_burst_counts_as_if_the_earlier_samples_were_empty() -> None:
    rate = SampledRate(WINDOW)
    rate.record(2000, START_MS)
    assert rate.per_second(START_MS) == 200
    assert rate.measured_ms(START_MS) == 10_000
    assert rate.measured_ms(START_MS + 500) == 10_500
    # 200 is 100 % above the bound: the client waits as long as was measured.
    assert rate.delay_ms(100, START_MS) == 10_000
    assert rate.delay_ms(200, START_MS) == 0


def test_a_steady_rate_is_measured_exactly() -> None:
    rate = SampledRate(WINDOW)
    for second in range(30):
        rate.record(500, START_MS + second * 1000)
    now_ms = START_MS + 29_999
    assert rate.per_second(now_ms) == pytest.approx(500, rel=0.01)
    assert rate.average(now_ms) == 500


@given(windows, steps)
def test_the_rate_is_the_sum_of_the_live_samples_over_the_measured_time(
    window: RateWindow, steps: list[tuple[int, int]]
) -> None:
    rate = SampledRate(window)
    samples: list[list[int]] = []  # start, last event, sum
    now_ms = START_MS
    for pause_ms, value in steps:
        now_ms += pause_ms
        rate.record(value, now_ms)
        samples = [each for each in samples if now_ms - each[1] < window.samples * window.sample_ms]
        if not samples or now_ms - samples[-1][0] >= window.sample_ms:
            samples.append([now_ms, now_ms, 0])
        samples[-1][1] = now_ms
        samples[-1][2] += value
    elapsed_ms = now_ms - samples[0][0]
    missing = max(window.samples - 1 - elapsed_ms // window.sample_ms, 0)
    measured_ms = elapsed_ms + missing * window.sample_ms
    total = sum(value for *_, value in samples)
    assert rate.measured_ms(now_ms) == measured_ms
    assert measured_ms >= (window.samples - 1) * window.sample_ms
    assert rate.per_second(now_ms) == pytest.approx(1000 * total / measured_ms)


@given(windows, steps)
def test_a_value_that_is_taken_back_does_not_count(
    window: RateWindow, steps: list[tuple[int, int]]
) -> None:
    rate, same = SampledRate(window), SampledRate(window)
    now_ms = START_MS
    for pause_ms, value in steps:
        now_ms += pause_ms
        rate.record(value, now_ms)
        same.record(value, now_ms)
    rate.record(777, now_ms)
    rate.record(-777, now_ms)
    assert rate.per_second(now_ms) == pytest.approx(same.per_second(now_ms))


@given(windows, steps)
def test_an_idle_client_is_forgotten_after_the_window(
    window: RateWindow, steps: list[tuple[int, int]]
) -> None:
    rate = SampledRate(window)
    now_ms = START_MS
    for pause_ms, value in steps:
        now_ms += pause_ms
        rate.record(value, now_ms)
    now_ms += window.length_ms
    assert rate.per_second(now_ms) == 0
    assert rate.delay_ms(1, now_ms) == 0


@given(windows, st.integers(1, 10_000), st.lists(st.integers(1, 20_000), min_size=5, max_size=200))
def test_a_client_that_waits_stays_at_its_bound_in_the_long_run(
    window: RateWindow, bound: int, values: list[int]
) -> None:
    """It may send a window in advance, and the last value whatever its size."""
    rate = SampledRate(window)
    now_ms, sent = START_MS, 0
    for value in values:
        elapsed_ms = now_ms - START_MS
        # A second window, because a sample ends up to one sample after its first value.
        advance = bound * (2 * window.length_ms) / 1000
        assert sent <= bound * elapsed_ms / 1000 + advance + max(values)
        rate.record(value, now_ms)
        sent += value
        now_ms += rate.delay_ms(bound, now_ms)


def test_a_bound_of_zero_lets_nothing_through() -> None:
    rate = SampledRate(WINDOW)
    rate.record(1, START_MS)
    assert rate.delay_ms(0, START_MS) == WINDOW.length_ms
