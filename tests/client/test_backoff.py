"""Backoffs grow, and deadlines pass."""

from barnabas.client.backoff import FULL_SPREAD, Backoff, Deadline


def test_pauses_double_from_the_first_to_the_maximum() -> None:
    backoff = Backoff(100, 1_000, random=lambda: 0.5)
    assert [backoff.next_ms() for _ in range(6)] == [100, 200, 400, 800, 1_000, 1_000]
    backoff.reset()
    assert backoff.next_ms() == 100


def test_pauses_vary_by_twenty_percent() -> None:
    assert round(Backoff(100, 1_000, random=lambda: 0.0).next_ms()) == 80
    assert round(Backoff(100, 1_000, random=lambda: 1.0).next_ms()) == 120


def test_pauses_may_be_spread_from_zero_to_their_length() -> None:
    assert Backoff(100, 1_000, spread=FULL_SPREAD, random=lambda: 0.0).next_ms() == 0
    assert Backoff(100, 1_000, spread=FULL_SPREAD, random=lambda: 1.0).next_ms() == 100


def test_a_maximum_below_the_first_pause_has_no_effect() -> None:
    assert Backoff(100, 10, random=lambda: 0.5).next_ms() == 100


def test_many_failures_in_a_row_do_not_overflow() -> None:
    backoff = Backoff(100, 1_000, random=lambda: 0.5)
    backoff.failures = 100_000
    assert backoff.next_ms() == 1_000


def test_a_deadline_that_has_passed_has_no_remaining_time() -> None:
    assert Deadline.after(-5).has_passed
    assert Deadline.after(-5).remaining_ms() == 0
    assert not Deadline.after(60_000).has_passed
    assert 59_000 < Deadline.after(60_000).remaining_ms() <= 60_000
