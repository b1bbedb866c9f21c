"""SyncGroup: the leader's assignment reaches every member of its generation, and no other."""

import pytest
from tests.coordinator.classic.scene import DELAY_MS, Scene
from tests.coordinator.world import code_of

from barnabas.coordinator.groups.classic.group import ClassicState
from barnabas.wire.errors import ErrorCode, KafkaError


@pytest.fixture
def scene() -> Scene:
    return Scene()


@pytest.fixture
def pair(scene: Scene) -> tuple[str, str]:
    """Leader and follower of a generation without an assignment."""
    leader, _ = scene.enter()
    follower, _ = scene.enter()
    scene.advance(DELAY_MS * 2)
    assert scene.group.state is ClassicState.COMPLETING_REBALANCE
    return leader, follower


def test_followers_wait_for_the_leaders_assignment(scene: Scene, pair: tuple[str, str]) -> None:
    leader, follower = pair
    waiting = scene.sync(follower, 1)
    assert not waiting.is_done
    leading = scene.sync(leader, 1, {leader: b"L", follower: b"F"})
    assert leading.result().assignment == b"L"
    assert waiting.result().assignment == b"F"
    assert waiting.result().protocol_type == "consumer"
    assert waiting.result().protocol_name == "range"
    assert scene.group.state is ClassicState.STABLE


def test_a_follower_that_syncs_late_is_given_its_assignment(
    scene: Scene, pair: tuple[str, str]
) -> None:
    leader, follower = pair
    scene.sync(leader, 1, {follower: b"F"})
    assert scene.sync(follower, 1).result().assignment == b"F"
    assert scene.sync(follower, 1).result().assignment == b"F"


def test_who_is_not_in_the_assignment_receives_nothing(scene: Scene, pair: tuple[str, str]) -> None:
    leader, follower = pair
    scene.sync(leader, 1, {leader: b"L", "nobody": b"N"})
    assert scene.sync(follower, 1).result().assignment == b""


def test_what_a_follower_hands_in_is_not_an_assignment(scene: Scene, pair: tuple[str, str]) -> None:
    leader, follower = pair
    waiting = scene.sync(follower, 1, {follower: b"mine"})
    scene.sync(leader, 1, {follower: b"F"})
    assert waiting.result().assignment == b"F"


def test_who_asks_twice_waits_for_one_answer(scene: Scene, pair: tuple[str, str]) -> None:
    leader, follower = pair
    twice = [scene.sync(follower, 1), scene.sync(follower, 1)]
    scene.sync(leader, 1, {follower: b"F"})
    assert [each.result().assignment for each in twice] == [b"F", b"F"]


def test_no_member_is_told_before_the_assignment_is_committed(
    scene: Scene, pair: tuple[str, str]
) -> None:
    leader, follower = pair
    scene.world.log.committing = False
    waiting = scene.sync(follower, 1)
    leading = scene.sync(leader, 1, {leader: b"L", follower: b"F"})
    assert not waiting.is_done
    assert not leading.is_done
    assert scene.group.state is ClassicState.COMPLETING_REBALANCE
    scene.world.log.commit()
    assert waiting.result().assignment == b"F"
    assert leading.result().assignment == b"L"


def test_a_leader_that_asks_twice_assigns_once(scene: Scene, pair: tuple[str, str]) -> None:
    leader, _ = pair
    scene.world.log.committing = False
    first = scene.sync(leader, 1, {leader: b"first"})
    second = scene.sync(leader, 1, {leader: b"second"})
    scene.world.log.commit()
    assert first.result().assignment == second.result().assignment == b"first"
    assert len([each for each in scene.written if each.value.generation == 1]) == 1


def test_an_assignment_that_cannot_be_written_rebalances(
    scene: Scene, pair: tuple[str, str]
) -> None:
    leader, follower = pair
    waiting = scene.sync(follower, 1)
    scene.world.log.refusal = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS)
    leading = scene.sync(leader, 1, {leader: b"L", follower: b"F"})
    assert leading.result().error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert waiting.result().error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert scene.group.state is ClassicState.PREPARING_REBALANCE
    assert scene.heartbeat(leader, 1) == ErrorCode.REBALANCE_IN_PROGRESS
    scene.world.log.refusal = None
    scene.join(leader)
    assert scene.join(follower).result().generation_id == 2


def test_nobody_waits_for_an_assignment_that_does_not_fit_into_a_record(scene: Scene) -> None:
    long_name = "i" * 40_000
    leader, _ = scene.enter()
    joining = scene.join(instance=long_name)
    scene.advance(DELAY_MS * 2)
    waiting = scene.sync(joining.result().member_id, 1, instance=long_name)
    scene.sync(leader, 1, {})
    assert waiting.result().error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert scene.group.state is ClassicState.PREPARING_REBALANCE


def test_an_assignment_that_is_not_committed_in_time_rebalances(
    scene: Scene, pair: tuple[str, str]
) -> None:
    leader, _ = pair
    scene.world.log.committing = False
    leading = scene.sync(leader, 1, {leader: b"L"})
    scene.advance(5_000)
    assert leading.result().error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert scene.group.state is ClassicState.PREPARING_REBALANCE


def test_an_assignment_committed_after_its_generation_ended_is_nobodys(
    scene: Scene, pair: tuple[str, str]
) -> None:
    leader, follower = pair
    scene.world.log.committing = False
    leading = scene.sync(leader, 1, {leader: b"L", follower: b"F"})
    scene.join(follower, topics=("other",))
    assert leading.result().error_code == ErrorCode.REBALANCE_IN_PROGRESS
    scene.world.log.commit()
    assert scene.group.state is ClassicState.PREPARING_REBALANCE
    assert all(not member.assignment for member in scene.group.members.values())


@pytest.mark.parametrize(
    ("terms", "code"),
    [
        ({"group": ""}, ErrorCode.INVALID_GROUP_ID),
        ({"group": "other"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"member_id": "nobody"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"member_id": ""}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"instance": "printer"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"generation": 0}, ErrorCode.ILLEGAL_GENERATION),
        ({"generation": 2}, ErrorCode.ILLEGAL_GENERATION),
        ({"protocol": "sticky"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocol_type": "connect"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocol": None}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocol_type": None}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocol": None, "protocol_type": None, "version": 4}, ErrorCode.NONE),
    ],
)
def test_a_sync_is_held_against_group_member_generation_and_protocol(
    scene: Scene, terms: dict[str, object], code: ErrorCode
) -> None:
    (member,) = scene.stable()
    asked = {"member_id": member, "generation": 1, **terms}
    assert code_of(scene.sync(**asked)) == code  # type: ignore[arg-type]


def test_nobody_syncs_while_a_rebalance_is_prepared(scene: Scene) -> None:
    leader, _ = scene.stable(2)
    scene.enter()
    assert code_of(scene.sync(leader, 1)) == ErrorCode.REBALANCE_IN_PROGRESS


def test_a_pending_member_cannot_sync(scene: Scene) -> None:
    told = scene.join().result()
    assert code_of(scene.sync(told.member_id, 0)) == ErrorCode.UNKNOWN_MEMBER_ID
