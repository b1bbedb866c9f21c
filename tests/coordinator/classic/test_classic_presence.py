"""Heartbeat and LeaveGroup: staying in a group, and going."""

import pytest
from tests.coordinator.classic.scene import DELAY_MS, GROUP, Scene
from tests.coordinator.world import code_of

from barnabas.coordinator.groups import classic
from barnabas.coordinator.groups.classic.group import ClassicState
from barnabas.coordinator.groups.context import GroupClient
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.leave_group import LeaveGroupRequest


@pytest.fixture
def scene() -> Scene:
    return Scene()


# Heartbeat


def test_a_heartbeat_is_well_in_a_stable_group_and_before_the_sync(scene: Scene) -> None:
    member, _ = scene.enter()
    scene.advance(DELAY_MS)
    assert scene.heartbeat(member, 1) == ErrorCode.NONE
    scene.synced([member])
    assert scene.heartbeat(member, 1) == ErrorCode.NONE


@pytest.mark.parametrize(
    ("terms", "code"),
    [
        ({"group": ""}, ErrorCode.INVALID_GROUP_ID),
        ({"group": "other"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"member_id": "nobody"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"instance": "printer"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"generation": 0}, ErrorCode.ILLEGAL_GENERATION),
        ({"generation": -1}, ErrorCode.ILLEGAL_GENERATION),
        ({"generation": 2}, ErrorCode.ILLEGAL_GENERATION),
    ],
)
def test_a_heartbeat_is_held_against_group_member_and_generation(
    scene: Scene, terms: dict[str, object], code: ErrorCode
) -> None:
    (member,) = scene.stable()
    asked = {"member_id": member, "generation": 1, **terms}
    assert scene.heartbeat(**asked) == code  # type: ignore[arg-type]


def test_nobody_is_a_member_of_an_empty_group(scene: Scene) -> None:
    (member,) = scene.stable()
    scene.leave((member, None))
    assert scene.group.state is ClassicState.EMPTY
    assert scene.heartbeat(member, 1) == ErrorCode.UNKNOWN_MEMBER_ID
    assert scene.heartbeat(member, 2) == ErrorCode.UNKNOWN_MEMBER_ID
    assert code_of(scene.sync(member, 2)) == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_pending_member_has_no_heartbeat(scene: Scene) -> None:
    told = scene.join().result()
    assert scene.heartbeat(told.member_id, 0) == ErrorCode.UNKNOWN_MEMBER_ID


# LeaveGroup


def test_the_others_rebalance_when_a_member_leaves(scene: Scene) -> None:
    leader, follower = scene.stable(2)
    assert scene.leave((leader, None)).members[0].error_code == ErrorCode.NONE
    assert scene.heartbeat(follower, 1) == ErrorCode.REBALANCE_IN_PROGRESS
    assert scene.join(follower).result().leader == follower


def test_the_last_to_leave_leaves_an_empty_generation_in_the_log(scene: Scene) -> None:
    (member,) = scene.stable()
    scene.advance(1_000)
    scene.leave((member, None))
    value = scene.written[-1].value
    assert (value.generation, value.protocol_type, value.protocol) == (2, "consumer", None)
    assert (value.leader, value.members) == (None, [])
    assert value.current_state_timestamp == scene.world.clock.now_ms


def test_who_leaves_while_it_joins_is_told_to_join_anew(scene: Scene) -> None:
    (old,) = scene.stable()
    new, joining = scene.enter()
    scene.leave((new, None))
    assert joining.result().error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert joining.result().member_id == ""
    assert scene.join(old).result().generation_id == 2


def test_who_leaves_while_it_waits_for_its_assignment_is_answered(scene: Scene) -> None:
    scene.enter()
    follower, _ = scene.enter()
    scene.advance(DELAY_MS * 2)
    waiting = scene.sync(follower, 1)
    scene.leave((follower, None))
    assert waiting.result().error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_the_last_one_waited_for_leaves_and_the_others_go_on(scene: Scene) -> None:
    first, second, third = scene.stable(3)
    joining = [scene.join(first), scene.join(second)]
    scene.leave((third, None))
    assert [len(each.result().members) for each in joining] == [2, 0]


def test_a_pending_member_that_leaves_is_waited_for_no_longer(scene: Scene) -> None:
    (old,) = scene.stable()
    told = scene.join().result()
    scene.enter()
    again = scene.join(old)
    assert not again.is_done
    assert scene.leave((told.member_id, None)).members[0].error_code == ErrorCode.NONE
    assert again.result().generation_id == 2
    assert code_of(scene.join(told.member_id)) == ErrorCode.UNKNOWN_MEMBER_ID


def test_leaving_does_not_end_the_wait_for_company(scene: Scene) -> None:
    member, _ = scene.enter()
    other, joining = scene.enter()
    scene.leave((member, None))
    assert scene.group.state is ClassicState.PREPARING_REBALANCE
    scene.leave((other, None))
    assert joining.is_done
    scene.advance(DELAY_MS * 2)
    assert scene.group.state is ClassicState.EMPTY
    assert scene.group.generation == 1


def test_each_of_several_who_leave_is_told_how_it_went(scene: Scene) -> None:
    scene.join(instance="printer")
    scene.advance(DELAY_MS)
    left = scene.leave(
        ("nobody", None), ("nobody", "printer"), ("", "fax"), ("", None), ("", "printer"),
        ("", "printer"),
    )  # fmt: skip
    assert left.error_code == ErrorCode.NONE
    assert [each.error_code for each in left.members] == [
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_MEMBER_ID,
    ]
    assert (left.members[4].member_id, left.members[4].group_instance_id) == ("", "printer")


def test_no_instance_id_is_not_an_empty_one(scene: Scene) -> None:
    scene.join(instance="")
    assert scene.leave(("", None)).members[0].error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert scene.leave(("", "")).members[0].error_code == ErrorCode.NONE


def test_members_of_an_unknown_group_are_unknown(scene: Scene) -> None:
    left = scene.leave(("a", None), ("b", "printer"))
    assert [each.error_code for each in left.members] == [ErrorCode.UNKNOWN_MEMBER_ID] * 2


def test_nobody_needs_to_leave(scene: Scene) -> None:
    (member,) = scene.stable()
    assert scene.leave().members == []
    assert scene.heartbeat(member, 1) == ErrorCode.NONE


def test_a_group_to_leave_has_a_name(scene: Scene) -> None:
    refused = scene.leave(("a", None), group="")
    assert (refused.error_code, refused.members) == (ErrorCode.INVALID_GROUP_ID, [])


@pytest.mark.parametrize("version", range(3))
def test_before_v3_one_member_leaves_and_the_answer_is_its_own(scene: Scene, version: int) -> None:
    (member,) = scene.stable()
    context = scene.world.coordinator._context(GroupClient("client", "/10.0.0.1", version))
    request = LeaveGroupRequest(group_id=GROUP, member_id=member)

    def leave() -> ErrorCode:
        return code_of(scene.world.shard.write(lambda g: classic.leave(request, g, context)))

    assert leave() == ErrorCode.NONE
    assert leave() == ErrorCode.UNKNOWN_MEMBER_ID
