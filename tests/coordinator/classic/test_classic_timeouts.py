"""The timers of a classic group: sessions, rebalances, syncs and pending member ids."""

import pytest
from tests.coordinator.classic.harness import DELAY_MS, REBALANCE_MS, SESSION_MS, ClassicHarness
from tests.coordinator.environment import code_of

from barnabas.coordinator.groups.classic.group import ClassicState
from barnabas.coordinator.groups.classic.join import NEW_MEMBER_TIMEOUT_MS
from barnabas.wire.errors import ErrorCode


@pytest.fixture
def harness() -> ClassicHarness:
    return ClassicHarness()


# Sessions


def test_a_silent_member_is_removed_and_the_others_rebalance(harness: ClassicHarness) -> None:
    leader, follower = harness.stable(2)
    harness.advance(SESSION_MS - 1)
    harness.heartbeat(follower, 1)
    assert leader in harness.group.members
    harness.advance(1)
    assert leader not in harness.group.members
    assert harness.heartbeat(follower, 1) == ErrorCode.REBALANCE_IN_PROGRESS
    assert harness.join(follower).result().leader == follower


def test_heartbeats_keep_a_member_in_the_group(harness: ClassicHarness) -> None:
    (member,) = harness.stable()
    for _ in range(10):
        harness.advance(SESSION_MS - 1)
        assert harness.heartbeat(member, 1) == ErrorCode.NONE


def test_a_group_whose_members_are_all_silent_is_empty(harness: ClassicHarness) -> None:
    harness.stable(3)
    harness.advance(SESSION_MS)
    assert harness.group.state is ClassicState.EMPTY
    assert harness.written[-1].value.members == []
    assert harness.alarm_count == 0


def test_a_member_that_waits_for_joins_does_not_time_out(harness: ClassicHarness) -> None:
    slow, quick = harness.stable(2, rebalance_ms=5 * SESSION_MS)
    joining = harness.join(quick, topics=("other",), rebalance_ms=5 * SESSION_MS)
    for _ in range(4):
        harness.advance(SESSION_MS - 1)
        assert harness.heartbeat(slow, 1) == ErrorCode.REBALANCE_IN_PROGRESS
    assert not joining.is_done
    harness.join(slow)
    assert joining.result().generation_id == 2


def test_a_member_that_waits_for_its_assignment_does_not_time_out(harness: ClassicHarness) -> None:
    leader, _ = harness.enter()
    follower, _ = harness.enter()
    harness.advance(DELAY_MS * 2)
    waiting = harness.sync(follower, 1)
    for _ in range(2):
        harness.advance(SESSION_MS - 1)
        harness.heartbeat(leader, 1)
    assert not waiting.is_done
    harness.sync(leader, 1, {follower: b"F"})
    assert waiting.result().assignment == b"F"


def test_a_session_is_restarted_with_the_response(harness: ClassicHarness) -> None:
    leader, _ = harness.enter()
    follower, _ = harness.enter()
    harness.advance(DELAY_MS * 2)
    harness.sync(follower, 1)
    harness.advance(SESSION_MS - 1)
    harness.heartbeat(leader, 1)
    harness.advance(SESSION_MS - 1)
    harness.sync(leader, 1, {})
    harness.advance(SESSION_MS - 1)
    assert set(harness.group.members) == {leader, follower}
    harness.advance(1)
    assert not harness.group.members


def test_joining_or_syncing_again_restarts_the_session(harness: ClassicHarness) -> None:
    leader, follower = harness.stable(2)
    for again in (
        lambda: harness.join(follower).result(),
        lambda: harness.sync(follower, 1).result(),
        lambda: None,
    ):
        assert follower in harness.group.members
        harness.advance(SESSION_MS - 1)
        harness.heartbeat(leader, 1)
        again()
    harness.advance(1)
    assert follower not in harness.group.members


def test_a_leader_that_dies_before_its_assignment_is_followed_by_another(
    harness: ClassicHarness,
) -> None:
    leader, _ = harness.enter()
    follower, _ = harness.enter()
    harness.advance(DELAY_MS * 2)
    waiting = harness.sync(follower, 1)
    harness.advance(SESSION_MS)
    assert leader not in harness.group.members
    assert waiting.result().error_code == ErrorCode.REBALANCE_IN_PROGRESS
    assert harness.join(follower).result().leader == follower
    assert harness.sync(follower, 2, {follower: b"F"}).result().assignment == b"F"


def test_a_new_member_times_out(harness: ClassicHarness) -> None:
    longer_ms = NEW_MEMBER_TIMEOUT_MS + 60_000
    (old,) = harness.stable(rebalance_ms=longer_ms)
    new, joining = harness.enter()
    for _ in range(NEW_MEMBER_TIMEOUT_MS // 5_000):
        assert not joining.is_done
        harness.heartbeat(old, 1)
        harness.advance(5_000)
    assert joining.result().error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert new not in harness.group.members


# Rebalances


def test_a_member_that_does_not_join_in_time_is_removed(harness: ClassicHarness) -> None:
    slow, quick = harness.stable(2, rebalance_ms=8_000)
    joining = harness.join(quick, topics=("other",), rebalance_ms=6_000)
    harness.advance(5_999)
    harness.heartbeat(slow, 1)
    harness.advance(2_000)
    assert not joining.is_done
    harness.advance(1)
    assert joining.result().leader == quick
    assert harness.heartbeat(slow, 1) == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_group_without_rejoining_members_becomes_empty(harness: ClassicHarness) -> None:
    first, second = harness.stable(2, rebalance_ms=6_000, session_ms=60_000)
    harness.leave((second, None))
    harness.advance(6_000)
    assert harness.group.state is ClassicState.EMPTY
    assert harness.heartbeat(first, 1) == ErrorCode.UNKNOWN_MEMBER_ID


def test_static_members_are_not_removed_before_their_sessions_end(harness: ClassicHarness) -> None:
    joining = harness.join(instance="printer", rebalance_ms=6_000, session_ms=20_000)
    harness.advance(DELAY_MS)
    member = joining.result().member_id
    harness.sync(member, 1, {member: b"x"})
    new, newcomer = harness.enter(rebalance_ms=6_000)
    harness.advance(6_000)
    assert newcomer.result().leader == new
    assert {each.member_id for each in newcomer.result().members} == {member, new}
    assert harness.group.unsynced == {member, new}


def test_a_group_of_static_members_waits_until_their_sessions_end(harness: ClassicHarness) -> None:
    joining = harness.join(instance="printer", rebalance_ms=6_000, session_ms=20_000)
    harness.advance(DELAY_MS)
    member = joining.result().member_id
    harness.sync(member, 1, {})
    new, _ = harness.enter(rebalance_ms=6_000)
    harness.leave((new, None))
    harness.advance(12_000)
    assert harness.group.state is ClassicState.PREPARING_REBALANCE
    assert member in harness.group.members
    harness.advance(8_000)
    assert harness.group.state is ClassicState.EMPTY


# Syncs


def test_members_that_do_not_sync_in_time_are_removed(harness: ClassicHarness) -> None:
    leader, _ = harness.enter(rebalance_ms=8_000)
    follower, _ = harness.enter(rebalance_ms=8_000)
    harness.advance(DELAY_MS * 2)
    harness.sync(leader, 1, {leader: b"L"})
    harness.advance(7_999)
    for member in leader, follower:
        assert harness.heartbeat(member, 1) == ErrorCode.NONE
    harness.advance(1)
    assert harness.heartbeat(follower, 1) == ErrorCode.UNKNOWN_MEMBER_ID
    assert harness.heartbeat(leader, 1) == ErrorCode.REBALANCE_IN_PROGRESS


def test_a_leader_that_does_not_sync_in_time_is_removed(harness: ClassicHarness) -> None:
    leader, _ = harness.enter(rebalance_ms=8_000)
    follower, _ = harness.enter(rebalance_ms=8_000)
    harness.advance(DELAY_MS * 2)
    waiting = harness.sync(follower, 1)
    harness.advance(7_999)
    harness.heartbeat(leader, 1)
    harness.advance(1)
    assert waiting.result().error_code == ErrorCode.REBALANCE_IN_PROGRESS
    assert harness.group.leader == follower


def test_a_stable_group_has_only_session_timers(harness: ClassicHarness) -> None:
    members = harness.stable(2)
    assert harness.alarm_count == len(members)


# Pending members


def test_a_group_left_by_all_but_a_pending_member_is_empty(harness: ClassicHarness) -> None:
    (member,) = harness.stable()
    response = harness.join().result()
    harness.leave((member, None))
    harness.advance(0)
    assert harness.group.state is ClassicState.EMPTY
    joining = harness.join(response.member_id)
    harness.advance(DELAY_MS)
    assert joining.result().generation_id == 3


def test_a_pending_id_that_does_not_join_in_time_expires(harness: ClassicHarness) -> None:
    response = harness.join(session_ms=6_000).result()
    harness.advance(6_000)
    assert not harness.group.pending
    assert code_of(harness.join(response.member_id)) == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_rebalance_does_not_wait_for_an_expired_pending_id(harness: ClassicHarness) -> None:
    (old,) = harness.stable()
    harness.join(session_ms=6_000)
    again = harness.join(old)
    harness.advance(5_999)
    assert not again.is_done
    harness.advance(1)
    assert again.result().generation_id == 2


def test_an_expired_pending_id_ends_the_initial_delay(harness: ClassicHarness) -> None:
    response = harness.join(session_ms=6_000).result()
    harness.advance(5_000)
    _, joining = harness.enter()
    harness.advance(1_000)
    assert response.member_id not in harness.group.pending
    assert joining.result().generation_id == 1


def test_an_empty_group_has_no_timers(harness: ClassicHarness) -> None:
    members = harness.stable(3)
    harness.leave(*((member, None) for member in members))
    harness.join()
    harness.advance(max(REBALANCE_MS, SESSION_MS))
    assert harness.alarm_count == 0
    assert harness.group.state is ClassicState.EMPTY
