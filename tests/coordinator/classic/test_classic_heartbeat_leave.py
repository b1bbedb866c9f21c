"""Heartbeat and LeaveGroup: staying in a group, and going."""

import pytest
from tests.coordinator.classic.harness import DELAY_MS, GROUP, ClassicHarness
from tests.coordinator.environment import code_of

from barnabas.coordinator.groups import classic
from barnabas.coordinator.groups.classic.group import ClassicState
from barnabas.coordinator.groups.context import GroupClient
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.classic_groups import LeaveGroupRequest


@pytest.fixture
def harness() -> ClassicHarness:
    return ClassicHarness()


# Heartbeat


def test_a_heartbeat_succeeds_in_a_stable_group_and_before_the_sync(
    harness: ClassicHarness,
) -> None:
    member, _ = harness.enter()
    harness.advance(DELAY_MS)
    assert harness.heartbeat(member, 1) == ErrorCode.NONE
    harness.synced([member])
    assert harness.heartbeat(member, 1) == ErrorCode.NONE


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
def test_a_heartbeat_checks_group_member_and_generation(
    harness: ClassicHarness, terms: dict[str, object], code: ErrorCode
) -> None:
    (member,) = harness.stable()
    request = {"member_id": member, "generation": 1, **terms}
    assert harness.heartbeat(**request) == code  # type: ignore[arg-type]


def test_an_empty_group_has_no_members(harness: ClassicHarness) -> None:
    (member,) = harness.stable()
    harness.leave((member, None))
    assert harness.group.state is ClassicState.EMPTY
    assert harness.heartbeat(member, 1) == ErrorCode.UNKNOWN_MEMBER_ID
    assert harness.heartbeat(member, 2) == ErrorCode.UNKNOWN_MEMBER_ID
    assert code_of(harness.sync(member, 2)) == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_pending_member_has_no_heartbeat(harness: ClassicHarness) -> None:
    response = harness.join().result()
    assert harness.heartbeat(response.member_id, 0) == ErrorCode.UNKNOWN_MEMBER_ID


# LeaveGroup


def test_the_others_rebalance_when_a_member_leaves(harness: ClassicHarness) -> None:
    leader, follower = harness.stable(2)
    assert harness.leave((leader, None)).members[0].error_code == ErrorCode.NONE
    assert harness.heartbeat(follower, 1) == ErrorCode.REBALANCE_IN_PROGRESS
    assert harness.join(follower).result().leader == follower


def test_the_last_to_leave_leaves_an_empty_generation_in_the_log(harness: ClassicHarness) -> None:
    (member,) = harness.stable()
    harness.advance(1_000)
    harness.leave((member, None))
    value = harness.written[-1].value
    assert (value.generation, value.protocol_type, value.protocol) == (2, "consumer", None)
    assert (value.leader, value.members) == (None, [])
    assert value.current_state_timestamp == harness.environment.clock.now_ms


def test_a_member_that_leaves_while_it_joins_gets_unknown_member_id(
    harness: ClassicHarness,
) -> None:
    (old,) = harness.stable()
    new, joining = harness.enter()
    harness.leave((new, None))
    assert joining.result().error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert joining.result().member_id == ""
    assert harness.join(old).result().generation_id == 2


def test_a_member_that_leaves_while_it_syncs_gets_a_response(harness: ClassicHarness) -> None:
    harness.enter()
    follower, _ = harness.enter()
    harness.advance(DELAY_MS * 2)
    waiting = harness.sync(follower, 1)
    harness.leave((follower, None))
    assert waiting.result().error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_the_rebalance_completes_when_the_last_absent_member_leaves(
    harness: ClassicHarness,
) -> None:
    first, second, third = harness.stable(3)
    joining = [harness.join(first), harness.join(second)]
    harness.leave((third, None))
    assert [len(each.result().members) for each in joining] == [2, 0]


def test_the_rebalance_does_not_wait_for_a_pending_member_that_left(
    harness: ClassicHarness,
) -> None:
    (old,) = harness.stable()
    response = harness.join().result()
    harness.enter()
    again = harness.join(old)
    assert not again.is_done
    assert harness.leave((response.member_id, None)).members[0].error_code == ErrorCode.NONE
    assert again.result().generation_id == 2
    assert code_of(harness.join(response.member_id)) == ErrorCode.UNKNOWN_MEMBER_ID


def test_leaving_does_not_end_the_initial_delay(harness: ClassicHarness) -> None:
    member, _ = harness.enter()
    other, joining = harness.enter()
    harness.leave((member, None))
    assert harness.group.state is ClassicState.PREPARING_REBALANCE
    harness.leave((other, None))
    assert joining.is_done
    harness.advance(DELAY_MS * 2)
    assert harness.group.state is ClassicState.EMPTY
    assert harness.group.generation == 1


def test_each_leaving_member_gets_its_own_result(harness: ClassicHarness) -> None:
    harness.join(instance="printer")
    harness.advance(DELAY_MS)
    left = harness.leave(
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


def test_no_instance_id_is_not_an_empty_one(harness: ClassicHarness) -> None:
    harness.join(instance="")
    assert harness.leave(("", None)).members[0].error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert harness.leave(("", "")).members[0].error_code == ErrorCode.NONE


def test_members_of_an_unknown_group_are_unknown(harness: ClassicHarness) -> None:
    left = harness.leave(("a", None), ("b", "printer"))
    assert [each.error_code for each in left.members] == [ErrorCode.UNKNOWN_MEMBER_ID] * 2


def test_a_leave_without_members_is_valid(harness: ClassicHarness) -> None:
    (member,) = harness.stable()
    assert harness.leave().members == []
    assert harness.heartbeat(member, 1) == ErrorCode.NONE


def test_leaving_a_group_without_a_name_is_an_error(harness: ClassicHarness) -> None:
    raised = harness.leave(("a", None), group="")
    assert (raised.error_code, raised.members) == (ErrorCode.INVALID_GROUP_ID, [])


@pytest.mark.parametrize("version", range(3))
def test_before_v3_the_response_is_that_of_one_member(
    harness: ClassicHarness, version: int
) -> None:
    (member,) = harness.stable()
    context = harness.environment.coordinator._context(GroupClient("client", "/10.0.0.1", version))
    request = LeaveGroupRequest(group_id=GROUP, member_id=member)

    def leave() -> ErrorCode:
        return code_of(
            harness.environment.shard.write(lambda g: classic.leave(request, g, context))
        )

    assert leave() == ErrorCode.NONE
    assert leave() == ErrorCode.UNKNOWN_MEMBER_ID
