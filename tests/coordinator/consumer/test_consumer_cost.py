"""What a request costs does not grow with what it has nothing to do with. No clock is needed to
tell: who looks at all members of a group is caught at it."""

from collections.abc import Iterator
from typing import Any

import pytest
from tests.coordinator.consumer.scene import INTERVAL_MS, Scene

from barnabas.coordinator.groups.consumer.member import ConsumerMember
from barnabas.wire.messages.group_records import (
    ConsumerGroupTargetAssignmentMetadataKey as AssignmentKey,
)


class Untold(dict[str, ConsumerMember]):
    """Members that can be found, and not gone through."""

    def __iter__(self) -> Iterator[str]:
        raise AssertionError("somebody goes through all members")

    def keys(self) -> Any:
        return iter(self)

    items = values = keys


@pytest.fixture
def scene() -> Scene:
    scene = Scene()
    scene.stable(*(f"m{index}" for index in range(20)), partitions=40)
    scene.group.members = Untold(scene.group.members)
    return scene


def test_a_heartbeat_looks_at_no_other_member(scene: Scene) -> None:
    epoch = scene.group.epoch
    scene.heartbeat("m3", epoch)
    scene.heartbeat("m3", epoch, topic_partitions=[])
    scene.heartbeat("m3", epoch, rack_id="r")


def test_neither_does_a_join_that_waits_for_the_next_assignment(scene: Scene) -> None:
    scene.group.assignment_timestamp_ms = scene.world.clock.now_ms
    scene.join("new", "t")


def test_nor_does_a_member_that_leaves_or_is_thrown_out(scene: Scene) -> None:
    scene.heartbeat("m3", -1)
    scene.advance(10 * INTERVAL_MS)


def test_many_who_join_at_once_cost_one_assignment() -> None:
    scene = Scene()
    scene.topic("t", 10)
    for index in range(50):
        scene.join(f"m{index}", "t")
    scene.advance(INTERVAL_MS)
    for index in range(50):
        scene.heartbeat(f"m{index}", 2)
    made = [each for each in scene.written if isinstance(each.key, AssignmentKey)]
    assert len(made) == 2
