"""Static members (KIP-345): a member that rejoins replaces and fences its predecessor."""

import pytest
from tests.coordinator.classic.harness import DELAY_MS, SESSION_MS, ClassicHarness
from tests.coordinator.environment import code_of

from barnabas.coordinator.groups.classic.group import ClassicState
from barnabas.wire.errors import ErrorCode, KafkaError


@pytest.fixture
def harness() -> ClassicHarness:
    return ClassicHarness()


def stable_static(harness: ClassicHarness, *instances: str, **terms: object) -> list[str]:
    """A stable group of static members, led by the first of them."""
    joining = [harness.join(instance=each, **terms) for each in instances]  # type: ignore[arg-type]
    harness.advance(DELAY_MS * min(len(instances), 2))
    members = [each.result().member_id for each in joining]
    assert harness.group.leader == members[0]
    return harness.synced(members)


def test_a_follower_comes_back_without_a_rebalance(harness: ClassicHarness) -> None:
    leader, old = stable_static(harness, "a", "b")
    back = harness.join(instance="b").result()
    assert (back.error_code, back.generation_id, back.leader) == (0, 1, leader)
    assert (back.members, back.skip_assignment) == ([], False)
    assert back.member_id != old
    assert harness.group.state is ClassicState.STABLE
    assert harness.sync(back.member_id, 1, instance="b").result().assignment == old.encode()
    assert harness.heartbeat(leader, 1, "a") == ErrorCode.NONE


def test_a_leader_comes_back_and_skips_its_assignment(harness: ClassicHarness) -> None:
    _, follower = stable_static(harness, "a", "b")
    back = harness.join(instance="a", version=9).result()
    assert back.leader == back.member_id
    assert back.skip_assignment
    assert {each.member_id for each in back.members} == {back.member_id, follower}


@pytest.mark.parametrize("version", [5, 8])
def test_before_v9_a_returning_leader_gets_another_leader(
    harness: ClassicHarness, version: int
) -> None:
    old, _ = stable_static(harness, "a", "b")
    back = harness.join(instance="a", version=version).result()
    assert (back.leader, back.members, back.skip_assignment) == (old, [], False)
    assert harness.group.leader == back.member_id


def test_a_replaced_static_member_is_fenced(harness: ClassicHarness) -> None:
    (old,) = stable_static(harness, "a")
    new = harness.join(instance="a").result().member_id
    assert harness.heartbeat(old, 1, "a") == ErrorCode.FENCED_INSTANCE_ID
    assert harness.heartbeat(old, 1) == ErrorCode.UNKNOWN_MEMBER_ID
    assert code_of(harness.sync(old, 1, instance="a")) == ErrorCode.FENCED_INSTANCE_ID
    assert code_of(harness.join(old, instance="a")) == ErrorCode.FENCED_INSTANCE_ID
    assert harness.leave((old, "a")).members[0].error_code == ErrorCode.FENCED_INSTANCE_ID
    with pytest.raises(KafkaError) as raised:
        harness.group.check_commit(old, "a", 1, transactional=False, api_version=9)
    assert raised.value.code == ErrorCode.FENCED_INSTANCE_ID
    assert harness.heartbeat(new, 1, "a") == ErrorCode.NONE
    harness.advance(SESSION_MS - 1)
    assert new in harness.group.members


def test_the_new_member_id_is_committed_before_the_response(harness: ClassicHarness) -> None:
    stable_static(harness, "a")
    harness.environment.log.is_committing = False
    joining = harness.join(instance="a")
    assert not joining.is_done
    (member,) = harness.written[-1].value.members
    assert member.group_instance_id == "a"
    harness.environment.log.commit()
    assert joining.result().member_id == member.member_id


@pytest.mark.parametrize("is_late", [False, True])
def test_a_static_member_keeps_its_id_if_the_new_one_cannot_be_written(
    harness: ClassicHarness, is_late: bool
) -> None:
    (old,) = stable_static(harness, "a", protocols=("range", "sticky"), session_ms=60_000)
    if is_late:
        harness.environment.log.is_committing = False
    else:
        harness.environment.log.append_error = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS)
    joining = harness.join(instance="a", protocols=("range",), session_ms=50_000)
    harness.advance(5_000)
    assert joining.result().error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert joining.result().member_id == ""
    (member,) = harness.group.members.values()
    assert (member.member_id, list(member.protocols)) == (old, ["range", "sticky"])
    assert member.session_timeout_ms == 60_000
    assert harness.group.leader == old
    assert harness.group.static_members == {"a": old}
    assert harness.group.pending_join_count == 0
    assert harness.group.supports("consumer", {"sticky": b""})


def test_a_rebalance_includes_a_static_member_whose_id_is_being_written(
    harness: ClassicHarness,
) -> None:
    (_,) = stable_static(harness, "a")
    harness.environment.log.is_committing = False
    joining = harness.join(instance="a")
    newcomer = harness.join(instance="b")
    assert joining.result().generation_id == newcomer.result().generation_id == 2
    harness.environment.log.commit()
    assert harness.group.state is ClassicState.COMPLETING_REBALANCE


def test_the_second_replacement_of_a_static_member_fences_the_first(
    harness: ClassicHarness,
) -> None:
    stable_static(harness, "a")
    harness.environment.log.is_committing = False
    first = harness.join(instance="a")
    second = harness.join(instance="a")
    assert first.result().error_code == ErrorCode.FENCED_INSTANCE_ID
    harness.environment.log.commit()
    assert second.result().error_code == ErrorCode.NONE
    assert set(harness.group.members) == {second.result().member_id}


def test_a_static_member_that_changes_the_elected_protocol_rebalances(
    harness: ClassicHarness,
) -> None:
    stable_static(harness, "a", protocols=("range", "sticky"))
    back = harness.join(instance="a", protocols=("sticky", "range")).result()
    assert (back.generation_id, back.protocol_name) == (2, "sticky")
    assert back.leader == back.member_id


def test_a_member_replaced_while_it_joins_is_fenced(harness: ClassicHarness) -> None:
    first = harness.join(instance="a")
    second = harness.join(instance="a")
    assert first.result().error_code == ErrorCode.FENCED_INSTANCE_ID
    harness.advance(DELAY_MS * 2)
    assert second.result().generation_id == 1
    assert len(second.result().members) == 1


def test_a_member_replaced_while_it_syncs_is_fenced_and_all_rebalance(
    harness: ClassicHarness,
) -> None:
    leader = harness.join(instance="a")
    follower = harness.join(instance="b")
    harness.advance(DELAY_MS * 2)
    old = follower.result().member_id
    waiting = harness.sync(old, 1, instance="b")
    back = harness.join(instance="b")
    assert waiting.result().error_code == ErrorCode.FENCED_INSTANCE_ID
    assert harness.group.state is ClassicState.PREPARING_REBALANCE
    again = harness.join(leader.result().member_id, instance="a")
    assert back.result().generation_id == again.result().generation_id == 2


def test_an_existing_member_cannot_add_an_instance_id(harness: ClassicHarness) -> None:
    (member,) = harness.stable()
    assert code_of(harness.join(member, instance="a")) == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_static_member_joins_again_under_its_id(harness: ClassicHarness) -> None:
    leader, follower = stable_static(harness, "a", "b")
    assert harness.join(follower, instance="b").result().generation_id == 1
    assert not harness.join(leader, instance="a").is_done


def test_a_static_member_replaced_before_it_synced_is_still_unsynced(
    harness: ClassicHarness,
) -> None:
    joining = [harness.join(instance=each) for each in ("a", "b")]
    harness.advance(DELAY_MS * 3)
    leader, follower = (each.result().member_id for each in joining)
    harness.sync(leader, 1, {leader: b"L", follower: b"F"}, instance="a")
    back = harness.join(instance="b").result()
    assert harness.group.unsynced == {back.member_id}
    assert harness.sync(back.member_id, 1, instance="b").result().assignment == b"F"
    assert not harness.group.unsynced
