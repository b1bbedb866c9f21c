"""Time limits: of heartbeats and of revocations, with the settings in force at the moment."""

import pytest
from tests.coordinator.consumer.scene import (
    INTERVAL_MS,
    REBALANCE_MS,
    SESSION_MS,
    Member,
    Scene,
)

from barnabas.coordinator.groups.consumer.member import MemberState
from barnabas.coordinator.timers import RETRY_MS
from barnabas.wire.errors import ErrorCode, KafkaError


@pytest.fixture
def scene() -> Scene:
    return Scene()


def revoking(scene: Scene) -> Member:
    """A member that has to give something back."""
    scene.topic("t", 4)
    member = Member(scene, "a")
    member.join("t")
    scene.join("b", "t")
    scene.advance(INTERVAL_MS)
    scene.heartbeat("a", member.epoch)
    assert scene.group.members["a"].state is MemberState.UNREVOKED_PARTITIONS
    return member


def test_a_member_that_is_not_heard_of_is_thrown_out(scene: Scene) -> None:
    epoch = scene.stable("m")
    scene.advance(SESSION_MS - 1)
    assert "m" in scene.group.members
    scene.advance(1)
    assert scene.group.is_empty
    assert scene.group.epoch == epoch + 1
    assert scene.code("m", epoch) == ErrorCode.UNKNOWN_MEMBER_ID
    assert ("session", "g", "m") not in scene.groups.timers


def test_each_heartbeat_gives_a_member_its_time_anew(scene: Scene) -> None:
    epoch = scene.stable("m")
    for _ in range(3):
        scene.advance(SESSION_MS - 1)
        scene.heartbeat("m", epoch)
    assert "m" in scene.group.members


def test_the_settings_of_the_group_count_as_soon_as_they_change(scene: Scene) -> None:
    epoch = scene.stable("m")
    scene.world.settings.groups["g"] = {
        "consumer.session.timeout.ms": 50_000,
        "consumer.heartbeat.interval.ms": 7_000,
    }
    assert scene.heartbeat("m", epoch).heartbeat_interval_ms == 7_000
    scene.advance(49_999)
    assert "m" in scene.group.members
    scene.advance(1)
    assert scene.group.is_empty


def test_a_member_that_does_not_revoke_in_time_is_thrown_out(scene: Scene) -> None:
    member = revoking(scene)
    for _ in range(2):
        scene.advance(REBALANCE_MS // 2 - 1)
        member.owned = {(topic, p) for topic in scene.group.owners for p in range(4)}
        member.beat()
    scene.advance(2)
    assert scene.group.members.keys() == {"b"}


def test_a_member_that_revoked_has_no_limit_any_more(scene: Scene) -> None:
    member = revoking(scene)
    member.owned = {(topic, p) for topic in scene.group.owners for p in range(2)}
    member.beat()
    assert ("rebalance", "g", "a") not in scene.groups.timers


def test_what_could_not_be_written_is_tried_again(scene: Scene) -> None:
    scene.stable("m")
    scene.world.log.refusal = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS, "")
    scene.advance(SESSION_MS)
    assert "m" in scene.group.members
    scene.world.log.refusal = None
    scene.advance(RETRY_MS)
    assert scene.group.is_empty


def test_a_leave_that_could_not_be_written_leaves_the_session_running(scene: Scene) -> None:
    scene.stable("m")
    scene.world.log.refusal = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS, "")
    assert scene.code("m", -1) == ErrorCode.COORDINATOR_NOT_AVAILABLE
    scene.world.log.refusal = None
    scene.advance(SESSION_MS)
    assert scene.group.is_empty


def test_a_step_that_could_not_be_written_leaves_the_limit_of_the_revocation(scene: Scene) -> None:
    member = revoking(scene)
    scene.world.log.refusal = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS, "")
    assert scene.code("a", member.epoch, topic_partitions=[]) != ErrorCode.NONE
    assert ("rebalance", "g", "a") in scene.groups.timers


def test_after_a_failover_members_have_their_full_time(scene: Scene) -> None:
    epoch = scene.stable("m", "n")
    scene.advance(SESSION_MS - 1)
    scene.lead()
    scene.advance(SESSION_MS - 1)
    scene.heartbeat("m", epoch)
    scene.advance(1)
    assert scene.group.members.keys() == {"m"}


def test_after_a_failover_a_revocation_still_has_its_limit(scene: Scene) -> None:
    revoking(scene)
    scene.lead()
    assert ("rebalance", "g", "a") in scene.groups.timers
    assert ("rebalance", "g", "b") not in scene.groups.timers


def test_nothing_rings_once_another_leads(scene: Scene) -> None:
    scene.stable("m")
    group = scene.group
    scene.world.runtime.close()
    scene.advance(10 * SESSION_MS)
    assert "m" in group.members
