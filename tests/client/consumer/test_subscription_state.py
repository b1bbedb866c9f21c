"""A partition is fetched from where it should be, and from nowhere before that is known."""

import pytest

from barnabas.client.consumer.subscription_state import (
    AutoOffsetResetStrategy,
    FetchState,
    TopicPartitionState,
)
from barnabas.client.values import (
    OFFSET_BEGINNING,
    OFFSET_END,
    OFFSET_INVALID,
    OFFSET_STORED,
)


def assigned(policy: str = "latest") -> TopicPartitionState:
    return TopicPartitionState("t", 0, AutoOffsetResetStrategy(policy))


@pytest.mark.parametrize(
    ("offset", "state"),
    [
        (OFFSET_STORED, FetchState.INITIALIZING),
        (OFFSET_INVALID, FetchState.INITIALIZING),
        (OFFSET_BEGINNING, FetchState.AWAIT_RESET),
        (OFFSET_END, FetchState.AWAIT_RESET),
        (17, FetchState.FETCHING),
    ],
)
def test_the_first_state_depends_on_the_offset(offset: int, state: FetchState) -> None:
    each = assigned()
    each.seek(offset)
    assert each.state is state
    assert each.is_fetchable(0.0) is (state is FetchState.FETCHING)


def test_an_offset_with_an_epoch_is_validated_first() -> None:
    each = assigned()
    each.seek(17, 3)
    assert each.state is FetchState.AWAIT_VALIDATION


@pytest.mark.parametrize(("policy", "timestamp"), [("earliest", -2), ("latest", -1)])
def test_without_a_committed_offset_the_position_is_reset(policy: str, timestamp: int) -> None:
    each = assigned(policy)
    each.seek(OFFSET_STORED)
    assert each.request_reset()
    assert (each.state, each.reset_timestamp) == (FetchState.AWAIT_RESET, timestamp)
    each.set_position(40)
    assert (each.state, each.fetch_offset) == (FetchState.FETCHING, 40)


def test_without_a_reset_policy_the_user_has_to_seek() -> None:
    each = assigned("none")
    each.seek(OFFSET_STORED)
    assert not each.request_reset()
    assert each.state is FetchState.STOPPED
    each.seek(5)
    assert each.state is FetchState.FETCHING


def test_a_reset_duration_is_subtracted_from_now() -> None:
    assert AutoOffsetResetStrategy("by_duration:PT1H").timestamp(10_000.0) == 6_400_000
    assert AutoOffsetResetStrategy("by_duration:P1DT2M0.5S").timestamp(100_000.0) == 13_479_500
    with pytest.raises(ValueError, match="by_duration"):
        AutoOffsetResetStrategy("by_duration:yesterday").timestamp(0)


def test_a_seek_makes_fetches_stale() -> None:
    each = assigned()
    each.seek(5)
    before = each.progress.version
    each.on_fetched(10, 0, 5, 500)
    each.seek(3)
    assert each.progress.version == each.progress.live_version == before + 1
    assert (each.fetch_offset, each.queued_records) == (3, 0)


def test_a_paused_partition_is_neither_fetched_nor_delivered() -> None:
    each = assigned()
    each.seek(5)
    each.pause()
    assert not each.is_fetchable(0.0)
    assert each.progress.live_version == -1
    each.seek(7)
    assert each.progress.live_version == -1, "seeking does not resume"
    each.resume()
    assert each.progress.live_version == each.progress.version
    assert each.is_fetchable(0.0)


def test_a_partition_in_flight_is_fetched_again_only_after_a_seek() -> None:
    each = assigned()
    each.seek(5)
    each.in_flight_version = each.progress.version
    assert not each.is_fetchable(0.0)
    each.seek(6)
    assert each.is_fetchable(0.0)


def test_a_new_leader_validates_the_position() -> None:
    each = assigned()
    each.seek(5)
    each.on_leader_epoch(2)
    assert each.state is FetchState.FETCHING, "nothing was read that it could lack"
    each.on_fetched(10, 2, 5, 500)
    each.on_leader_epoch(2)
    assert each.state is FetchState.FETCHING
    each.on_leader_epoch(3)
    assert each.state is FetchState.AWAIT_VALIDATION


def test_the_lag_is_from_the_position_to_the_last_stable_offset() -> None:
    each = assigned()
    assert each.lag == -1
    each.seek(5)
    each.high_watermark, each.last_stable_offset = 20, 15
    assert each.lag == 10
    each.progress.position = 12
    assert each.lag == 3


def test_a_revoked_partition_delivers_nothing() -> None:
    each = assigned()
    each.seek(5)
    each.revoke()
    assert each.progress.live_version == -1
    assert not each.is_fetchable(0.0)


def test_a_seek_resets_the_position_but_not_the_offset_to_commit() -> None:
    each = TopicPartitionState("t", 0, AutoOffsetResetStrategy("earliest"))
    each.seek(0)
    each.progress.position = 6
    each.seek(2)
    assert each.position() is None
    consumed = each.offset_to_commit()
    assert consumed is not None
    assert consumed.offset == 6
    each.progress.position = 3
    consumed = each.offset_to_commit()
    assert consumed is not None
    assert consumed.offset == 3
