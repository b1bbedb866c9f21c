"""Static members (KIP-345): they come back to the place they had, and fence who is there."""

import pytest
from tests.coordinator.classic.scene import DELAY_MS, SESSION_MS, Scene
from tests.coordinator.world import code_of

from barnabas.coordinator.groups.classic.group import ClassicState
from barnabas.wire.errors import ErrorCode, KafkaError


@pytest.fixture
def scene() -> Scene:
    return Scene()


def stable_static(scene: Scene, *instances: str, **terms: object) -> list[str]:
    """A stable group of static members, the first of whom leads it."""
    joining = [scene.join(instance=each, **terms) for each in instances]  # type: ignore[arg-type]
    scene.advance(DELAY_MS * min(len(instances), 2))
    members = [each.result().member_id for each in joining]
    assert scene.group.leader == members[0]
    return scene.synced(members)


def test_a_follower_comes_back_without_a_rebalance(scene: Scene) -> None:
    leader, old = stable_static(scene, "a", "b")
    back = scene.join(instance="b").result()
    assert (back.error_code, back.generation_id, back.leader) == (0, 1, leader)
    assert (back.members, back.skip_assignment) == ([], False)
    assert back.member_id != old
    assert scene.group.state is ClassicState.STABLE
    assert scene.sync(back.member_id, 1, instance="b").result().assignment == old.encode()
    assert scene.heartbeat(leader, 1, "a") == ErrorCode.NONE


def test_a_leader_comes_back_and_skips_its_assignment(scene: Scene) -> None:
    _, follower = stable_static(scene, "a", "b")
    back = scene.join(instance="a", version=9).result()
    assert back.leader == back.member_id
    assert back.skip_assignment
    assert {each.member_id for each in back.members} == {back.member_id, follower}


@pytest.mark.parametrize("version", [5, 8])
def test_before_v9_a_leader_comes_back_as_if_another_led(scene: Scene, version: int) -> None:
    old, _ = stable_static(scene, "a", "b")
    back = scene.join(instance="a", version=version).result()
    assert (back.leader, back.members, back.skip_assignment) == (old, [], False)
    assert scene.group.leader == back.member_id


def test_who_was_replaced_is_fenced(scene: Scene) -> None:
    (old,) = stable_static(scene, "a")
    new = scene.join(instance="a").result().member_id
    assert scene.heartbeat(old, 1, "a") == ErrorCode.FENCED_INSTANCE_ID
    assert scene.heartbeat(old, 1) == ErrorCode.UNKNOWN_MEMBER_ID
    assert code_of(scene.sync(old, 1, instance="a")) == ErrorCode.FENCED_INSTANCE_ID
    assert code_of(scene.join(old, instance="a")) == ErrorCode.FENCED_INSTANCE_ID
    assert scene.leave((old, "a")).members[0].error_code == ErrorCode.FENCED_INSTANCE_ID
    with pytest.raises(KafkaError) as refused:
        scene.group.check_commit(old, "a", 1, transactional=False, api_version=9)
    assert refused.value.code == ErrorCode.FENCED_INSTANCE_ID
    assert scene.heartbeat(new, 1, "a") == ErrorCode.NONE
    scene.advance(SESSION_MS - 1)
    assert new in scene.group.members


def test_the_new_id_is_in_the_log_before_it_is_told(scene: Scene) -> None:
    stable_static(scene, "a")
    scene.world.log.committing = False
    joining = scene.join(instance="a")
    assert not joining.is_done
    (member,) = scene.written[-1].value.members
    assert member.group_instance_id == "a"
    scene.world.log.commit()
    assert joining.result().member_id == member.member_id


@pytest.mark.parametrize("is_late", [False, True])
def test_an_id_that_cannot_be_written_is_taken_back(scene: Scene, is_late: bool) -> None:
    (old,) = stable_static(scene, "a", protocols=("range", "sticky"), session_ms=60_000)
    if is_late:
        scene.world.log.committing = False
    else:
        scene.world.log.refusal = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS)
    joining = scene.join(instance="a", protocols=("range",), session_ms=50_000)
    scene.advance(5_000)
    assert joining.result().error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert joining.result().member_id == ""
    (member,) = scene.group.members.values()
    assert (member.member_id, list(member.protocols)) == (old, ["range", "sticky"])
    assert member.session_timeout_ms == 60_000
    assert scene.group.leader == old
    assert scene.group.static_members == {"a": old}
    assert scene.group.pending_join_count == 0
    assert scene.group.supports("consumer", {"sticky": b""})


def test_a_rebalance_takes_in_who_waits_for_its_id_to_be_written(scene: Scene) -> None:
    (_,) = stable_static(scene, "a")
    scene.world.log.committing = False
    joining = scene.join(instance="a")
    newcomer = scene.join(instance="b")
    assert joining.result().generation_id == newcomer.result().generation_id == 2
    scene.world.log.commit()
    assert scene.group.state is ClassicState.COMPLETING_REBALANCE


def test_the_second_of_two_who_come_back_fences_the_first(scene: Scene) -> None:
    stable_static(scene, "a")
    scene.world.log.committing = False
    first = scene.join(instance="a")
    second = scene.join(instance="a")
    assert first.result().error_code == ErrorCode.FENCED_INSTANCE_ID
    scene.world.log.commit()
    assert second.result().error_code == ErrorCode.NONE
    assert set(scene.group.members) == {second.result().member_id}


def test_another_choice_of_protocol_rebalances(scene: Scene) -> None:
    stable_static(scene, "a", protocols=("range", "sticky"))
    back = scene.join(instance="a", protocols=("sticky", "range")).result()
    assert (back.generation_id, back.protocol_name) == (2, "sticky")
    assert back.leader == back.member_id


def test_a_member_replaced_while_it_joins_is_fenced(scene: Scene) -> None:
    first = scene.join(instance="a")
    second = scene.join(instance="a")
    assert first.result().error_code == ErrorCode.FENCED_INSTANCE_ID
    scene.advance(DELAY_MS * 2)
    assert second.result().generation_id == 1
    assert len(second.result().members) == 1


def test_a_member_replaced_while_it_syncs_is_fenced_and_all_rebalance(scene: Scene) -> None:
    leader = scene.join(instance="a")
    follower = scene.join(instance="b")
    scene.advance(DELAY_MS * 2)
    old = follower.result().member_id
    waiting = scene.sync(old, 1, instance="b")
    back = scene.join(instance="b")
    assert waiting.result().error_code == ErrorCode.FENCED_INSTANCE_ID
    assert scene.group.state is ClassicState.PREPARING_REBALANCE
    again = scene.join(leader.result().member_id, instance="a")
    assert back.result().generation_id == again.result().generation_id == 2


def test_a_known_member_does_not_take_on_an_instance_id(scene: Scene) -> None:
    (member,) = scene.stable()
    assert code_of(scene.join(member, instance="a")) == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_static_member_joins_again_under_its_id(scene: Scene) -> None:
    leader, follower = stable_static(scene, "a", "b")
    assert scene.join(follower, instance="b").result().generation_id == 1
    assert not scene.join(leader, instance="a").is_done


def test_who_comes_back_before_it_synced_is_still_waited_for(scene: Scene) -> None:
    joining = [scene.join(instance=each) for each in ("a", "b")]
    scene.advance(DELAY_MS * 3)
    leader, follower = (each.result().member_id for each in joining)
    scene.sync(leader, 1, {leader: b"L", follower: b"F"}, instance="a")
    back = scene.join(instance="b").result()
    assert scene.group.unsynced == {back.member_id}
    assert scene.sync(back.member_id, 1, instance="b").result().assignment == b"F"
    assert not scene.group.unsynced
