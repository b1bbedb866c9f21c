"""Static members: they keep their place while they are away for a while."""

import pytest
from tests.coordinator.consumer.scene import (
    INTERVAL_MS,
    SESSION_MS,
    Member,
    Scene,
    assigned,
    joining,
)

from barnabas.wire.errors import ErrorCode

JOIN = joining(["t"])


@pytest.fixture
def scene() -> Scene:
    scene = Scene()
    scene.topic("t", 4)
    return scene


@pytest.fixture
def static(scene: Scene) -> Member:
    """A static member, alone in its group."""
    member = Member(scene, "s1", "i")
    member.join("t")
    return member


def test_an_instance_that_has_not_left_cannot_be_replaced(scene: Scene, static: Member) -> None:
    code = scene.code("s2", 0, instance_id="i", **JOIN)
    assert code == ErrorCode.UNRELEASED_INSTANCE_ID
    assert static.beat().member_epoch == static.epoch


def test_who_leaves_for_a_while_keeps_its_partitions(scene: Scene, static: Member) -> None:
    told = scene.heartbeat("s1", -2, instance_id="i")
    assert (told.member_id, told.member_epoch) == ("s1", -2)
    scene.advance(INTERVAL_MS)
    other = scene.join("d", "t")
    assert assigned(other) == set()
    assert scene.group.owners[next(iter(scene.group.owners))] == dict.fromkeys(range(4), "s1")


def test_who_takes_its_place_has_its_partitions_at_once(scene: Scene, static: Member) -> None:
    group_epoch = scene.group.epoch
    scene.heartbeat("s1", -2, instance_id="i")
    told = scene.join("s2", "t", instance_id="i")
    assert assigned(told) == static.owned
    assert told.member_epoch == group_epoch == scene.group.epoch
    assert scene.group.members.keys() == {"s2"}
    assert scene.group.static_members == {"i": "s2"}


def test_a_successor_with_another_subscription_starts_a_rebalance(
    scene: Scene, static: Member
) -> None:
    epoch = scene.group.epoch
    scene.topic("u", 1)
    scene.heartbeat("s1", -2, instance_id="i")
    scene.join("s2", "u", instance_id="i")
    assert scene.group.epoch == epoch + 1
    assert scene.group.subscribed_topics == {"u": 1}


def test_the_one_that_was_replaced_is_fenced(scene: Scene, static: Member) -> None:
    scene.heartbeat("s1", -2, instance_id="i")
    scene.join("s2", "t", instance_id="i")
    assert scene.code("s1", 2, instance_id="i") == ErrorCode.FENCED_INSTANCE_ID
    assert scene.code("s1", -2, instance_id="i") == ErrorCode.FENCED_INSTANCE_ID
    assert scene.code("s1", 2) == ErrorCode.UNKNOWN_MEMBER_ID
    assert scene.code("s1", 2, instance_id="j") == ErrorCode.UNKNOWN_MEMBER_ID


def test_who_left_for_a_while_does_not_heartbeat(scene: Scene, static: Member) -> None:
    scene.heartbeat("s1", -2, instance_id="i")
    assert scene.code("s1", 2, instance_id="i") == ErrorCode.FENCED_MEMBER_EPOCH


def test_who_does_not_come_back_in_time_is_gone(scene: Scene, static: Member) -> None:
    scene.heartbeat("s1", -2, instance_id="i")
    scene.advance(SESSION_MS)
    assert scene.group.is_empty
    assert not scene.group.static_members


def test_the_session_of_one_that_was_replaced_ends_without_harm(
    scene: Scene, static: Member
) -> None:
    scene.heartbeat("s1", -2, instance_id="i")
    scene.advance(SESSION_MS - 1)
    successor = Member(scene, "s2", "i")
    successor.join("t")
    scene.advance(1)
    assert successor.beat().member_epoch == successor.epoch


def test_a_static_member_may_leave_for_good(scene: Scene, static: Member) -> None:
    scene.heartbeat("s1", -1, instance_id="i")
    assert scene.group.is_empty
    assert scene.code("s2", 0, instance_id="i", **JOIN) == ErrorCode.NONE


def test_what_was_held_before_leaving_may_be_committed_by_the_successor(
    scene: Scene, static: Member
) -> None:
    scene.heartbeat("s1", -2, instance_id="i")
    scene.join("s2", "t", instance_id="i")
    scene.join("d", "t")
    scene.advance(INTERVAL_MS)
    scene.heartbeat("s2", 2, instance_id="i")
    owned = scene.group.members["s2"].assigned
    assert {epoch for each in owned.values() for epoch in each.values()} == {0}
