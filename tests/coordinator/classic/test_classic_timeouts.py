"""What time does to a classic group: sessions, rebalances, syncs and ids that nobody uses."""

import pytest
from tests.coordinator.classic.scene import DELAY_MS, REBALANCE_MS, SESSION_MS, Scene
from tests.coordinator.world import code_of

from barnabas.coordinator.groups.classic.group import ClassicState
from barnabas.coordinator.groups.classic.join import NEW_MEMBER_TIMEOUT_MS
from barnabas.wire.errors import ErrorCode


@pytest.fixture
def scene() -> Scene:
    return Scene()


# Sessions


def test_a_silent_member_is_let_go_and_the_others_rebalance(scene: Scene) -> None:
    leader, follower = scene.stable(2)
    scene.advance(SESSION_MS - 1)
    scene.heartbeat(follower, 1)
    assert leader in scene.group.members
    scene.advance(1)
    assert leader not in scene.group.members
    assert scene.heartbeat(follower, 1) == ErrorCode.REBALANCE_IN_PROGRESS
    assert scene.join(follower).result().leader == follower


def test_heartbeats_keep_a_member_in(scene: Scene) -> None:
    (member,) = scene.stable()
    for _ in range(10):
        scene.advance(SESSION_MS - 1)
        assert scene.heartbeat(member, 1) == ErrorCode.NONE


def test_a_group_whose_members_are_all_silent_is_empty(scene: Scene) -> None:
    scene.stable(3)
    scene.advance(SESSION_MS)
    assert scene.group.state is ClassicState.EMPTY
    assert scene.written[-1].value.members == []
    assert scene.alarm_count == 0


def test_who_waits_for_others_to_join_is_not_silent(scene: Scene) -> None:
    slow, quick = scene.stable(2, rebalance_ms=5 * SESSION_MS)
    joining = scene.join(quick, topics=("other",), rebalance_ms=5 * SESSION_MS)
    for _ in range(4):
        scene.advance(SESSION_MS - 1)
        assert scene.heartbeat(slow, 1) == ErrorCode.REBALANCE_IN_PROGRESS
    assert not joining.is_done
    scene.join(slow)
    assert joining.result().generation_id == 2


def test_who_waits_for_its_assignment_is_not_silent(scene: Scene) -> None:
    leader, _ = scene.enter()
    follower, _ = scene.enter()
    scene.advance(DELAY_MS * 2)
    waiting = scene.sync(follower, 1)
    for _ in range(2):
        scene.advance(SESSION_MS - 1)
        scene.heartbeat(leader, 1)
    assert not waiting.is_done
    scene.sync(leader, 1, {follower: b"F"})
    assert waiting.result().assignment == b"F"


def test_a_session_begins_anew_with_the_answer(scene: Scene) -> None:
    leader, _ = scene.enter()
    follower, _ = scene.enter()
    scene.advance(DELAY_MS * 2)
    scene.sync(follower, 1)
    scene.advance(SESSION_MS - 1)
    scene.heartbeat(leader, 1)
    scene.advance(SESSION_MS - 1)
    scene.sync(leader, 1, {})
    scene.advance(SESSION_MS - 1)
    assert set(scene.group.members) == {leader, follower}
    scene.advance(1)
    assert not scene.group.members


def test_joining_or_syncing_again_keeps_a_member_in(scene: Scene) -> None:
    leader, follower = scene.stable(2)
    for again in (
        lambda: scene.join(follower).result(),
        lambda: scene.sync(follower, 1).result(),
        lambda: None,
    ):
        assert follower in scene.group.members
        scene.advance(SESSION_MS - 1)
        scene.heartbeat(leader, 1)
        again()
    scene.advance(1)
    assert follower not in scene.group.members


def test_a_leader_that_dies_before_its_assignment_is_followed_by_another(scene: Scene) -> None:
    leader, _ = scene.enter()
    follower, _ = scene.enter()
    scene.advance(DELAY_MS * 2)
    waiting = scene.sync(follower, 1)
    scene.advance(SESSION_MS)
    assert leader not in scene.group.members
    assert waiting.result().error_code == ErrorCode.REBALANCE_IN_PROGRESS
    assert scene.join(follower).result().leader == follower
    assert scene.sync(follower, 2, {follower: b"F"}).result().assignment == b"F"


def test_a_new_member_does_not_wait_for_ever(scene: Scene) -> None:
    longer_ms = NEW_MEMBER_TIMEOUT_MS + 60_000
    (old,) = scene.stable(rebalance_ms=longer_ms)
    new, joining = scene.enter()
    for _ in range(NEW_MEMBER_TIMEOUT_MS // 5_000):
        assert not joining.is_done
        scene.heartbeat(old, 1)
        scene.advance(5_000)
    assert joining.result().error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert new not in scene.group.members


# Rebalances


def test_who_does_not_join_in_time_is_given_up(scene: Scene) -> None:
    slow, quick = scene.stable(2, rebalance_ms=8_000)
    joining = scene.join(quick, topics=("other",), rebalance_ms=6_000)
    scene.advance(5_999)
    scene.heartbeat(slow, 1)
    scene.advance(2_000)
    assert not joining.is_done
    scene.advance(1)
    assert joining.result().leader == quick
    assert scene.heartbeat(slow, 1) == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_group_that_nobody_joins_again_is_empty(scene: Scene) -> None:
    first, second = scene.stable(2, rebalance_ms=6_000, session_ms=60_000)
    scene.leave((second, None))
    scene.advance(6_000)
    assert scene.group.state is ClassicState.EMPTY
    assert scene.heartbeat(first, 1) == ErrorCode.UNKNOWN_MEMBER_ID


def test_static_members_are_not_given_up_before_their_sessions_end(scene: Scene) -> None:
    joining = scene.join(instance="printer", rebalance_ms=6_000, session_ms=20_000)
    scene.advance(DELAY_MS)
    member = joining.result().member_id
    scene.sync(member, 1, {member: b"x"})
    new, newcomer = scene.enter(rebalance_ms=6_000)
    scene.advance(6_000)
    assert newcomer.result().leader == new
    assert {each.member_id for each in newcomer.result().members} == {member, new}
    assert scene.group.unsynced == {member, new}


def test_static_members_alone_are_waited_for_until_their_sessions_end(scene: Scene) -> None:
    joining = scene.join(instance="printer", rebalance_ms=6_000, session_ms=20_000)
    scene.advance(DELAY_MS)
    member = joining.result().member_id
    scene.sync(member, 1, {})
    new, _ = scene.enter(rebalance_ms=6_000)
    scene.leave((new, None))
    scene.advance(12_000)
    assert scene.group.state is ClassicState.PREPARING_REBALANCE
    assert member in scene.group.members
    scene.advance(8_000)
    assert scene.group.state is ClassicState.EMPTY


# Syncs


def test_members_that_do_not_sync_in_time_are_given_up(scene: Scene) -> None:
    leader, _ = scene.enter(rebalance_ms=8_000)
    follower, _ = scene.enter(rebalance_ms=8_000)
    scene.advance(DELAY_MS * 2)
    scene.sync(leader, 1, {leader: b"L"})
    scene.advance(7_999)
    for member in leader, follower:
        assert scene.heartbeat(member, 1) == ErrorCode.NONE
    scene.advance(1)
    assert scene.heartbeat(follower, 1) == ErrorCode.UNKNOWN_MEMBER_ID
    assert scene.heartbeat(leader, 1) == ErrorCode.REBALANCE_IN_PROGRESS


def test_a_leader_that_does_not_sync_in_time_is_given_up(scene: Scene) -> None:
    leader, _ = scene.enter(rebalance_ms=8_000)
    follower, _ = scene.enter(rebalance_ms=8_000)
    scene.advance(DELAY_MS * 2)
    waiting = scene.sync(follower, 1)
    scene.advance(7_999)
    scene.heartbeat(leader, 1)
    scene.advance(1)
    assert waiting.result().error_code == ErrorCode.REBALANCE_IN_PROGRESS
    assert scene.group.leader == follower


def test_a_group_that_synced_waits_for_heartbeats_alone(scene: Scene) -> None:
    members = scene.stable(2)
    assert scene.alarm_count == len(members)


# Pending members


def test_a_group_left_by_all_but_a_pending_member_is_empty(scene: Scene) -> None:
    (member,) = scene.stable()
    told = scene.join().result()
    scene.leave((member, None))
    scene.advance(0)
    assert scene.group.state is ClassicState.EMPTY
    joining = scene.join(told.member_id)
    scene.advance(DELAY_MS)
    assert joining.result().generation_id == 3


def test_an_id_that_is_not_joined_with_in_time_is_forgotten(scene: Scene) -> None:
    told = scene.join(session_ms=6_000).result()
    scene.advance(6_000)
    assert not scene.group.pending
    assert code_of(scene.join(told.member_id)) == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_rebalance_does_not_wait_for_an_id_that_is_forgotten(scene: Scene) -> None:
    (old,) = scene.stable()
    scene.join(session_ms=6_000)
    again = scene.join(old)
    scene.advance(5_999)
    assert not again.is_done
    scene.advance(1)
    assert again.result().generation_id == 2


def test_an_id_that_is_forgotten_ends_the_wait_for_company(scene: Scene) -> None:
    told = scene.join(session_ms=6_000).result()
    scene.advance(5_000)
    _, joining = scene.enter()
    scene.advance(1_000)
    assert told.member_id not in scene.group.pending
    assert joining.result().generation_id == 1


def test_nothing_is_left_to_wait_for_in_an_empty_group(scene: Scene) -> None:
    members = scene.stable(3)
    scene.leave(*((member, None) for member in members))
    scene.join()
    scene.advance(max(REBALANCE_MS, SESSION_MS))
    assert scene.alarm_count == 0
    assert scene.group.state is ClassicState.EMPTY
