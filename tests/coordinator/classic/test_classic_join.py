"""JoinGroup: who may join, what a joiner is told, and when."""

import pytest
from tests.coordinator.classic.scene import DELAY_MS, GROUP, REBALANCE_MS, Scene
from tests.coordinator.world import code_of

from barnabas.coordinator.groups.classic.group import ClassicState
from barnabas.wire.errors import ErrorCode


@pytest.fixture
def scene() -> Scene:
    return Scene()


def test_a_dynamic_member_is_told_its_id_and_joins_with_it(scene: Scene) -> None:
    told = scene.join(version=4).result()
    assert told.error_code == ErrorCode.MEMBER_ID_REQUIRED
    assert told.member_id.startswith("client-")
    assert len(told.member_id) == len("client-") + 36
    assert told.generation_id == -1

    joining = scene.join(told.member_id, version=4)
    assert not joining.is_done
    scene.advance(DELAY_MS)
    joined = joining.result()
    assert (joined.error_code, joined.generation_id) == (0, 1)
    assert joined.leader == joined.member_id == told.member_id
    assert joined.protocol_name == "range"
    assert joined.protocol_type == "consumer"
    assert [each.member_id for each in joined.members] == [told.member_id]


@pytest.mark.parametrize("version", range(4))
def test_before_v4_a_member_joins_at_once(scene: Scene, version: int) -> None:
    joining = scene.join(version=version)
    scene.advance(DELAY_MS)
    assert joining.result().generation_id == 1
    assert joining.result().member_id in scene.group.members


def test_v0_has_one_timeout_for_session_and_rebalance(scene: Scene) -> None:
    scene.join(version=0, session_ms=7_000, rebalance_ms=-1)
    (member,) = scene.group.members.values()
    assert member.rebalance_timeout_ms == 7_000


def test_a_static_member_joins_at_once_under_its_instance_id(scene: Scene) -> None:
    joining = scene.join(instance="printer", version=5)
    scene.advance(DELAY_MS)
    assert joining.result().member_id.startswith("printer-")
    assert joining.result().members[0].group_instance_id == "printer"


def test_only_the_leader_is_told_who_the_members_are(scene: Scene) -> None:
    first, first_joins = scene.enter(topics=("a",))
    second, second_joins = scene.enter(topics=("b",))
    scene.advance(DELAY_MS * 2)
    assert first_joins.result().leader == second_joins.result().leader == first
    told = {each.member_id: each.metadata for each in first_joins.result().members}
    assert set(told) == {first, second}
    assert b"a" in told[first]
    assert b"b" in told[second]
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
def test_a_join_that_makes_no_group_is_refused(
    scene: Scene, terms: dict[str, object], code: ErrorCode
) -> None:
    refused = scene.join(**terms).result()  # type: ignore[arg-type]
    assert refused.error_code == code
    assert refused.member_id == terms.get("member_id", "")
    assert refused.protocol_name is None
    assert not scene.groups.by_id
    assert not scene.written


@pytest.mark.parametrize("version", range(10))
def test_a_refusal_can_be_written_in_every_version(scene: Scene, version: int) -> None:
    scene.join("nobody", version=version).result().write(version)


@pytest.mark.parametrize(("version", "instance"), [(0, None), (6, "printer")])
def test_a_refusal_that_waited_can_be_written_in_old_versions(
    scene: Scene, version: int, instance: str | None
) -> None:
    joining = scene.join(version=version, instance=instance)
    scene.leave((next(iter(scene.group.members)), None))
    assert joining.result().error_code == ErrorCode.UNKNOWN_MEMBER_ID
    joining.result().write(version)


@pytest.mark.parametrize(
    "terms", [{"protocol_type": "connect"}, {"protocols": ("sticky",)}, {"protocols": ()}]
)
def test_who_has_no_protocol_in_common_is_turned_away(
    scene: Scene, terms: dict[str, object]
) -> None:
    (member,) = scene.stable()
    refused = scene.join(**terms)  # type: ignore[arg-type]
    assert code_of(refused) == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert scene.heartbeat(member, 1) == ErrorCode.NONE


def test_a_member_may_not_change_to_a_protocol_the_others_lack(scene: Scene) -> None:
    first, second = scene.stable(2, protocols=("range", "sticky"))
    assert code_of(scene.join(second, protocols=("other",))) == (
        ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    )
    assert not scene.join(second, protocols=("sticky",)).is_done
    assert code_of(scene.join(first, protocols=("range",))) == (
        ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    )


def test_the_protocol_with_most_votes_among_those_all_offer_wins(scene: Scene) -> None:
    scene.enter(protocols=("a", "b", "c"))
    scene.enter(protocols=("d", "c", "b"))
    scene.enter(protocols=("c", "b"))
    scene.advance(DELAY_MS * 3)
    assert scene.group.protocol == "c"


def test_of_two_protocols_with_one_name_the_first_counts(scene: Scene) -> None:
    scene.enter(protocols=("range", "range"))
    scene.advance(DELAY_MS)
    assert scene.group.protocol == "range"
    assert scene.group.supports("consumer", {"range": b""})


# The initial delay


def test_an_empty_group_waits_for_company(scene: Scene) -> None:
    _, joining = scene.enter()
    scene.advance(DELAY_MS - 1)
    assert not joining.is_done
    scene.advance(1)
    assert joining.is_done


def test_each_who_comes_in_time_prolongs_the_wait(scene: Scene) -> None:
    _, first = scene.enter()
    scene.advance(DELAY_MS - 1)
    _, second = scene.enter()
    scene.advance(DELAY_MS)
    assert not first.is_done
    scene.advance(1)
    assert first.result().generation_id == second.result().generation_id == 1


def test_the_wait_for_company_ends_with_the_rebalance_timeout(scene: Scene) -> None:
    _, first = scene.enter(rebalance_ms=7_000)
    for _ in range(2):
        scene.advance(DELAY_MS - 1)
        scene.enter(rebalance_ms=7_000)
    scene.advance(2)
    assert not first.is_done
    scene.enter(rebalance_ms=7_000)
    scene.advance(1_000)
    assert len(first.result().members) == 4


def test_a_group_that_was_empty_waits_for_company_again(scene: Scene) -> None:
    (member,) = scene.stable()
    scene.leave((member, None))
    _, joining = scene.enter()
    scene.advance(DELAY_MS - 1)
    assert not joining.is_done
    scene.advance(1)
    assert joining.result().generation_id == 3


def test_without_a_delay_the_first_to_join_is_a_generation() -> None:
    scene = Scene(group_initial_rebalance_delay_ms=0)
    _, joining = scene.enter()
    scene.advance(0)
    assert joining.result().generation_id == 1


# Joining again


def test_a_newcomer_makes_all_join_again(scene: Scene) -> None:
    (old,) = scene.stable()
    _, joining = scene.enter()
    assert scene.group.state is ClassicState.PREPARING_REBALANCE
    assert scene.heartbeat(old, 1) == ErrorCode.REBALANCE_IN_PROGRESS
    again = scene.join(old)
    assert joining.result().generation_id == again.result().generation_id == 2
    assert again.result().leader == old


def test_a_follower_that_joins_a_stable_group_again_is_told_its_generation(scene: Scene) -> None:
    leader, follower = scene.stable(2)
    answer = scene.join(follower).result()
    assert (answer.generation_id, answer.leader, answer.members) == (1, leader, [])
    assert scene.group.state is ClassicState.STABLE


def test_a_follower_with_another_subscription_rebalances(scene: Scene) -> None:
    _, follower = scene.stable(2)
    assert not scene.join(follower, topics=("other",)).is_done
    assert scene.group.state is ClassicState.PREPARING_REBALANCE


def test_a_leader_that_joins_again_rebalances(scene: Scene) -> None:
    leader, _ = scene.stable(2)
    assert not scene.join(leader).is_done
    assert scene.group.state is ClassicState.PREPARING_REBALANCE


def test_who_missed_its_answer_is_told_it_again_before_the_sync(scene: Scene) -> None:
    leader, joining = scene.enter()
    follower, _ = scene.enter()
    scene.advance(DELAY_MS * 2)
    assert scene.join(leader).result().members == joining.result().members
    assert scene.join(follower).result().members == []
    assert scene.group.generation == 1


def test_a_changed_subscription_before_the_sync_rebalances(scene: Scene) -> None:
    leader, _ = scene.enter()
    follower, _ = scene.enter()
    scene.advance(DELAY_MS * 2)
    waiting = scene.sync(follower, 1)
    again = scene.join(leader, topics=("other",))
    assert waiting.result().error_code == ErrorCode.REBALANCE_IN_PROGRESS
    assert not again.is_done
    scene.join(follower)
    assert again.result().generation_id == 2


def test_who_asks_twice_waits_for_one_answer(scene: Scene) -> None:
    member_id, first = scene.enter()
    second = scene.join(member_id)
    scene.advance(DELAY_MS)
    assert first.result() == second.result()
    assert scene.group.pending_join_count == 0


def test_a_pending_member_is_waited_for(scene: Scene) -> None:
    (old,) = scene.stable()
    told = scene.join().result()
    again = scene.join(old)
    assert not again.is_done
    scene.join(told.member_id)
    assert len(again.result().members) == 2


def test_a_pending_id_is_not_for_a_static_member(scene: Scene) -> None:
    told = scene.join().result()
    refused = scene.join(told.member_id, instance="printer")
    assert code_of(refused) == ErrorCode.UNKNOWN_MEMBER_ID
    assert not scene.group.members


def test_an_unknown_member_is_not_taken_in(scene: Scene) -> None:
    scene.stable()
    assert code_of(scene.join("nobody")) == ErrorCode.UNKNOWN_MEMBER_ID


# The size limit


def test_a_full_group_takes_nobody_in() -> None:
    scene = Scene(group_max_size=2)
    first, second = scene.stable(2)
    refused = scene.join().result()
    assert (refused.error_code, refused.member_id) == (ErrorCode.GROUP_MAX_SIZE_REACHED, "")
    assert not scene.join(first).is_done
    assert scene.join(second).result().generation_id == 2


def test_members_over_the_limit_are_dropped_when_they_are_last_to_join_again() -> None:
    scene = Scene()
    first, second, third = scene.stable(3)
    scene.world.settings = type(scene.world.settings)(group_max_size=2)
    scene.lead()
    assert scene.group.state is ClassicState.PREPARING_REBALANCE
    assert scene.heartbeat(first, 1) == ErrorCode.REBALANCE_IN_PROGRESS
    joining = [scene.join(first), scene.join(third)]
    assert code_of(scene.join(second)) == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert [each.result().generation_id for each in joining] == [2, 2]
    assert scene.heartbeat(second, 1) == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_full_group_refuses_an_id_it_gave_out_before_it_was_full() -> None:
    scene = Scene(group_max_size=1)
    late = scene.join().result().member_id
    scene.enter()
    assert code_of(scene.join(late)) == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert not scene.group.pending


def test_groups_do_not_hear_of_each_other(scene: Scene) -> None:
    scene.stable()
    _, joining = scene.enter(group="other")
    scene.advance(REBALANCE_MS)
    assert joining.result().generation_id == 1
    assert scene.groups.by_id.keys() == {GROUP, "other"}
