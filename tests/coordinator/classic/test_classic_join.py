"""JoinGroup: which members may join, and which responses they get and when."""

import pytest
from tests.coordinator.classic.harness import DELAY_MS, GROUP, REBALANCE_MS, ClassicHarness
from tests.coordinator.environment import code_of

from barnabas.coordinator.groups.classic.group import ClassicState
from barnabas.wire.errors import ErrorCode


@pytest.fixture
def harness() -> ClassicHarness:
    return ClassicHarness()


def test_a_dynamic_member_gets_its_id_and_joins_with_it(harness: ClassicHarness) -> None:
    response = harness.join(version=4).result()
    assert response.error_code == ErrorCode.MEMBER_ID_REQUIRED
    assert response.member_id.startswith("client-")
    assert len(response.member_id) == len("client-") + 36
    assert response.generation_id == -1

    joining = harness.join(response.member_id, version=4)
    assert not joining.is_done
    harness.advance(DELAY_MS)
    joined = joining.result()
    assert (joined.error_code, joined.generation_id) == (0, 1)
    assert joined.leader == joined.member_id == response.member_id
    assert joined.protocol_name == "range"
    assert joined.protocol_type == "consumer"
    assert [each.member_id for each in joined.members] == [response.member_id]


@pytest.mark.parametrize("version", range(4))
def test_before_v4_a_member_joins_at_once(harness: ClassicHarness, version: int) -> None:
    joining = harness.join(version=version)
    harness.advance(DELAY_MS)
    assert joining.result().generation_id == 1
    assert joining.result().member_id in harness.group.members


def test_v0_has_one_timeout_for_session_and_rebalance(harness: ClassicHarness) -> None:
    harness.join(version=0, session_ms=7_000, rebalance_ms=-1)
    (member,) = harness.group.members.values()
    assert member.rebalance_timeout_ms == 7_000


def test_a_static_member_joins_at_once_under_its_instance_id(harness: ClassicHarness) -> None:
    joining = harness.join(instance="printer", version=5)
    harness.advance(DELAY_MS)
    assert joining.result().member_id.startswith("printer-")
    assert joining.result().members[0].group_instance_id == "printer"


def test_only_the_leader_gets_the_members(harness: ClassicHarness) -> None:
    first, first_joins = harness.enter(topics=("a",))
    second, second_joins = harness.enter(topics=("b",))
    harness.advance(DELAY_MS * 2)
    assert first_joins.result().leader == second_joins.result().leader == first
    response = {each.member_id: each.metadata for each in first_joins.result().members}
    assert set(response) == {first, second}
    assert b"a" in response[first]
    assert b"b" in response[second]
    assert second_joins.result().members == []


@pytest.mark.parametrize(
    ("terms", "code"),
    [
        ({"group": ""}, ErrorCode.INVALID_GROUP_ID),
        ({"session_ms": 5_999}, ErrorCode.INVALID_SESSION_TIMEOUT),
        ({"session_ms": 1_800_001}, ErrorCode.INVALID_SESSION_TIMEOUT),
        ({"member_id": "nobody"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"protocols": ()}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocol_type": ""}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
    ],
)
def test_an_invalid_join_creates_no_group(
    harness: ClassicHarness, terms: dict[str, object], code: ErrorCode
) -> None:
    raised = harness.join(**terms).result()  # type: ignore[arg-type]
    assert raised.error_code == code
    assert raised.member_id == terms.get("member_id", "")
    assert raised.protocol_name is None
    assert not harness.groups.by_id
    assert not harness.written


@pytest.mark.parametrize("version", range(10))
def test_an_error_response_can_be_written_in_every_version(
    harness: ClassicHarness, version: int
) -> None:
    harness.join("nobody", version=version).result().write(version)


@pytest.mark.parametrize(("version", "instance"), [(0, None), (6, "printer")])
def test_a_pending_error_response_can_be_written_in_old_versions(
    harness: ClassicHarness, version: int, instance: str | None
) -> None:
    joining = harness.join(version=version, instance=instance)
    harness.leave((next(iter(harness.group.members)), None))
    assert joining.result().error_code == ErrorCode.UNKNOWN_MEMBER_ID
    joining.result().write(version)


@pytest.mark.parametrize(
    "terms", [{"protocol_type": "connect"}, {"protocols": ("sticky",)}, {"protocols": ()}]
)
def test_a_member_without_a_common_protocol_is_rejected(
    harness: ClassicHarness, terms: dict[str, object]
) -> None:
    (member,) = harness.stable()
    raised = harness.join(**terms)  # type: ignore[arg-type]
    assert code_of(raised) == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert harness.heartbeat(member, 1) == ErrorCode.NONE


def test_a_member_may_not_change_to_a_protocol_the_others_lack(harness: ClassicHarness) -> None:
    first, second = harness.stable(2, protocols=("range", "sticky"))
    assert code_of(harness.join(second, protocols=("other",))) == (
        ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    )
    assert not harness.join(second, protocols=("sticky",)).is_done
    assert code_of(harness.join(first, protocols=("range",))) == (
        ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    )


def test_the_protocol_with_most_votes_among_those_all_offer_wins(harness: ClassicHarness) -> None:
    harness.enter(protocols=("a", "b", "c"))
    harness.enter(protocols=("d", "c", "b"))
    harness.enter(protocols=("c", "b"))
    harness.advance(DELAY_MS * 3)
    assert harness.group.protocol == "c"


def test_of_two_protocols_with_one_name_the_first_is_used(harness: ClassicHarness) -> None:
    harness.enter(protocols=("range", "range"))
    harness.advance(DELAY_MS)
    assert harness.group.protocol == "range"
    assert harness.group.supports("consumer", {"range": b""})


# The initial delay


def test_an_empty_group_waits_for_the_initial_delay(harness: ClassicHarness) -> None:
    _, joining = harness.enter()
    harness.advance(DELAY_MS - 1)
    assert not joining.is_done
    harness.advance(1)
    assert joining.is_done


def test_each_member_that_joins_in_time_extends_the_initial_delay(harness: ClassicHarness) -> None:
    _, first = harness.enter()
    harness.advance(DELAY_MS - 1)
    _, second = harness.enter()
    harness.advance(DELAY_MS)
    assert not first.is_done
    harness.advance(1)
    assert first.result().generation_id == second.result().generation_id == 1


def test_the_initial_delay_ends_with_the_rebalance_timeout(harness: ClassicHarness) -> None:
    _, first = harness.enter(rebalance_ms=7_000)
    for _ in range(2):
        harness.advance(DELAY_MS - 1)
        harness.enter(rebalance_ms=7_000)
    harness.advance(2)
    assert not first.is_done
    harness.enter(rebalance_ms=7_000)
    harness.advance(1_000)
    assert len(first.result().members) == 4


def test_a_group_that_became_empty_has_an_initial_delay_again(harness: ClassicHarness) -> None:
    (member,) = harness.stable()
    harness.leave((member, None))
    _, joining = harness.enter()
    harness.advance(DELAY_MS - 1)
    assert not joining.is_done
    harness.advance(1)
    assert joining.result().generation_id == 3


def test_without_a_delay_the_first_member_is_a_generation() -> None:
    harness = ClassicHarness(group_initial_rebalance_delay_ms=0)
    _, joining = harness.enter()
    harness.advance(0)
    assert joining.result().generation_id == 1


# Joining again


def test_a_new_member_makes_all_members_rejoin(harness: ClassicHarness) -> None:
    (old,) = harness.stable()
    _, joining = harness.enter()
    assert harness.group.state is ClassicState.PREPARING_REBALANCE
    assert harness.heartbeat(old, 1) == ErrorCode.REBALANCE_IN_PROGRESS
    again = harness.join(old)
    assert joining.result().generation_id == again.result().generation_id == 2
    assert again.result().leader == old


def test_a_follower_that_rejoins_a_stable_group_gets_its_generation(
    harness: ClassicHarness,
) -> None:
    leader, follower = harness.stable(2)
    response = harness.join(follower).result()
    assert (response.generation_id, response.leader, response.members) == (1, leader, [])
    assert harness.group.state is ClassicState.STABLE


def test_a_follower_with_another_subscription_rebalances(harness: ClassicHarness) -> None:
    _, follower = harness.stable(2)
    assert not harness.join(follower, topics=("other",)).is_done
    assert harness.group.state is ClassicState.PREPARING_REBALANCE


def test_a_leader_that_joins_again_rebalances(harness: ClassicHarness) -> None:
    leader, _ = harness.stable(2)
    assert not harness.join(leader).is_done
    assert harness.group.state is ClassicState.PREPARING_REBALANCE


def test_a_member_that_missed_the_response_gets_it_again_before_the_sync(
    harness: ClassicHarness,
) -> None:
    leader, joining = harness.enter()
    follower, _ = harness.enter()
    harness.advance(DELAY_MS * 2)
    assert harness.join(leader).result().members == joining.result().members
    assert harness.join(follower).result().members == []
    assert harness.group.generation == 1


def test_a_changed_subscription_before_the_sync_rebalances(harness: ClassicHarness) -> None:
    leader, _ = harness.enter()
    follower, _ = harness.enter()
    harness.advance(DELAY_MS * 2)
    waiting = harness.sync(follower, 1)
    again = harness.join(leader, topics=("other",))
    assert waiting.result().error_code == ErrorCode.REBALANCE_IN_PROGRESS
    assert not again.is_done
    harness.join(follower)
    assert again.result().generation_id == 2


def test_a_repeated_request_gets_the_same_response(harness: ClassicHarness) -> None:
    member_id, first = harness.enter()
    second = harness.join(member_id)
    harness.advance(DELAY_MS)
    assert first.result() == second.result()
    assert harness.group.pending_join_count == 0


def test_a_pending_member_is_waited_for(harness: ClassicHarness) -> None:
    (old,) = harness.stable()
    response = harness.join().result()
    again = harness.join(old)
    assert not again.is_done
    harness.join(response.member_id)
    assert len(again.result().members) == 2


def test_a_pending_id_is_not_for_a_static_member(harness: ClassicHarness) -> None:
    response = harness.join().result()
    raised = harness.join(response.member_id, instance="printer")
    assert code_of(raised) == ErrorCode.UNKNOWN_MEMBER_ID
    assert not harness.group.members


def test_an_unknown_member_cannot_join(harness: ClassicHarness) -> None:
    harness.stable()
    assert code_of(harness.join("nobody")) == ErrorCode.UNKNOWN_MEMBER_ID


# The size limit


def test_a_full_group_rejects_new_members() -> None:
    harness = ClassicHarness(group_max_size=2)
    first, second = harness.stable(2)
    raised = harness.join().result()
    assert (raised.error_code, raised.member_id) == (ErrorCode.GROUP_MAX_SIZE_REACHED, "")
    assert not harness.join(first).is_done
    assert harness.join(second).result().generation_id == 2


def test_the_last_members_to_rejoin_are_rejected_above_the_limit() -> None:
    harness = ClassicHarness()
    first, second, third = harness.stable(3)
    harness.environment.settings = type(harness.environment.settings)(group_max_size=2)
    harness.lead()
    assert harness.group.state is ClassicState.PREPARING_REBALANCE
    assert harness.heartbeat(first, 1) == ErrorCode.REBALANCE_IN_PROGRESS
    joining = [harness.join(first), harness.join(third)]
    assert code_of(harness.join(second)) == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert [each.result().generation_id for each in joining] == [2, 2]
    assert harness.heartbeat(second, 1) == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_full_group_rejects_an_id_from_before_it_was_full() -> None:
    harness = ClassicHarness(group_max_size=1)
    late = harness.join().result().member_id
    harness.enter()
    assert code_of(harness.join(late)) == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert not harness.group.pending


def test_groups_are_independent(harness: ClassicHarness) -> None:
    harness.stable()
    _, joining = harness.enter(group="other")
    harness.advance(REBALANCE_MS)
    assert joining.result().generation_id == 1
    assert harness.groups.by_id.keys() == {GROUP, "other"}
