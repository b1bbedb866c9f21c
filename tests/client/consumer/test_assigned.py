"""A partition is fetched from where it should be, and from nowhere before that is known."""

import pytest

from barnabas.client.consumer.assigned import Assigned, State
from barnabas.client.consumer.reset import Reset
from barnabas.client.values import (
    OFFSET_BEGINNING,
    OFFSET_END,
    OFFSET_INVALID,
    OFFSET_STORED,
)


def assigned(policy: str = "latest") -> Assigned:
    return Assigned("t", 0, Reset(policy))


@pytest.mark.parametrize(
    ("offset", "state"),
    [
        (OFFSET_STORED, State.COMMITTED),
        (OFFSET_INVALID, State.COMMITTED),
        (OFFSET_BEGINNING, State.SEARCHED),
        (OFFSET_END, State.SEARCHED),
        (17, State.FETCHED),
    ],
)
def test_what_is_asked_first_depends_on_the_offset(offset: int, state: State) -> None:
    each = assigned()
    each.begin(offset)
    assert each.state is state
    assert each.may_be_fetched(0.0) is (state is State.FETCHED)


def test_an_offset_with_an_epoch_is_validated_first() -> None:
    each = assigned()
    each.begin(17, 3)
    assert each.state is State.VALIDATED


@pytest.mark.parametrize(("policy", "timestamp"), [("earliest", -2), ("latest", -1)])
def test_without_an_offset_the_policy_decides(policy: str, timestamp: int) -> None:
    each = assigned(policy)
    each.begin(OFFSET_STORED)
    assert each.start_over()
    assert (each.state, each.search_timestamp) == (State.SEARCHED, timestamp)
    each.found(40)
    assert (each.state, each.fetch_offset) == (State.FETCHED, 40)


def test_without_a_policy_the_user_has_to_seek() -> None:
    each = assigned("none")
    each.begin(OFFSET_STORED)
    assert not each.start_over()
    assert each.state is State.STUCK
    each.begin(5)
    assert each.state is State.FETCHED


def test_a_duration_counts_back_from_now() -> None:
    assert Reset("by_duration:PT1H").timestamp(10_000.0) == 6_400_000
    assert Reset("by_duration:P1DT2M0.5S").timestamp(100_000.0) == 13_479_500
    with pytest.raises(ValueError, match="by_duration"):
        Reset("by_duration:yesterday").timestamp(0)


def test_seeking_makes_what_was_fetched_stale() -> None:
    each = assigned()
    each.begin(5)
    before = each.progress.version
    each.advance(10, 0, 5, 500)
    each.begin(3)
    assert each.progress.version == each.progress.live == before + 1
    assert (each.fetch_offset, each.queued_records) == (3, 0)


def test_what_is_paused_is_neither_fetched_nor_delivered() -> None:
    each = assigned()
    each.begin(5)
    each.pause()
    assert not each.may_be_fetched(0.0)
    assert each.progress.live == -1
    each.begin(7)
    assert each.progress.live == -1, "seeking does not resume"
    each.resume()
    assert each.progress.live == each.progress.version
    assert each.may_be_fetched(0.0)


def test_a_partition_under_way_is_not_fetched_twice_unless_it_was_sought() -> None:
    each = assigned()
    each.begin(5)
    each.flight_version = each.progress.version
    assert not each.may_be_fetched(0.0)
    each.begin(6)
    assert each.may_be_fetched(0.0)


def test_a_new_leader_is_asked_whether_it_has_what_was_read() -> None:
    each = assigned()
    each.begin(5)
    each.led_by(2)
    assert each.state is State.FETCHED, "nothing was read that it could lack"
    each.advance(10, 2, 5, 500)
    each.led_by(2)
    assert each.state is State.FETCHED
    each.led_by(3)
    assert each.state is State.VALIDATED


def test_the_lag_counts_from_the_position_to_the_last_stable_offset() -> None:
    each = assigned()
    assert each.lag == -1
    each.begin(5)
    each.high_watermark, each.last_stable_offset = 20, 15
    assert each.lag == 10
    each.progress.position = 12
    assert each.lag == 3


def test_what_is_given_up_delivers_nothing() -> None:
    each = assigned()
    each.begin(5)
    each.give_up()
    assert each.progress.live == -1
    assert not each.may_be_fetched(0.0)


def test_seeking_forgets_the_position_and_not_what_is_to_be_committed() -> None:
    each = Assigned("t", 0, Reset("earliest"))
    each.begin(0)
    each.progress.position = 6
    each.begin(2)
    assert each.delivered() is None
    consumed = each.consumed()
    assert consumed is not None
    assert consumed.offset == 6
    each.progress.position = 3
    consumed = each.consumed()
    assert consumed is not None
    assert consumed.offset == 3
