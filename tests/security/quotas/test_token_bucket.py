"""The bucket of controller mutations."""

from hypothesis import given
from hypothesis import strategies as st

from barnabas.security.quotas.rate import RateWindow
from barnabas.security.quotas.token_bucket import TokenBucket

START_MS = 1_000_000


def test_a_bucket_starts_full_and_may_be_overdrawn_once() -> None:
    bucket = TokenBucket(RateWindow(10, 1000))
    assert bucket.tokens(2, START_MS) == 20
    bucket.take(25, 2, START_MS)
    assert bucket.tokens(2, START_MS) == -5
    assert bucket.delay_ms(2, START_MS) == 2500
    assert bucket.delay_ms(2, START_MS + 2500) == 0
    assert bucket.tokens(2, START_MS + 3600_000) == 20


def test_a_new_rate_applies_at_once() -> None:
    bucket = TokenBucket(RateWindow(10, 1000))
    bucket.take(20, 2, START_MS)
    assert bucket.tokens(1, START_MS + 1000) == 1
    assert bucket.tokens(4, START_MS + 1000) == 4


@given(
    st.integers(1, 100),
    st.lists(st.tuples(st.integers(0, 5000), st.integers(1, 500)), max_size=100),
)
def test_what_is_taken_never_exceeds_the_rate_a_burst_and_one_request(
    rate: int, requests: list[tuple[int, int]]
) -> None:
    window = RateWindow(11, 1000)
    bucket = TokenBucket(window)
    now_ms, taken, largest = START_MS, 0, 0
    for pause_ms, count in requests:
        now_ms += pause_ms
        if bucket.tokens(rate, now_ms) < 0:
            delay_ms = bucket.delay_ms(rate, now_ms)
            assert bucket.tokens(rate, now_ms + delay_ms + 1) >= 0
            continue
        bucket.take(count, rate, now_ms)
        taken += count
        largest = max(largest, count)
        capacity = rate * window.length_ms / 1000
        assert taken <= capacity + rate * (now_ms - START_MS) / 1000 + largest + 1e-6
