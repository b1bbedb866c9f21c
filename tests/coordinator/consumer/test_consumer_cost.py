"""What a request costs does not grow with what it has nothing to do with. No clock is needed to
tell: who looks at all members of a group is caught at it."""

from collections.abc import Iterator
from typing import Any

import pytest
from tests.coordinator.consumer.harness import INTERVAL_MS, ConsumerHarness

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
def harness() -> ConsumerHarness:
    harness = ConsumerHarness()
    harness.stable(*(f"m{index}" for index in range(20)), partitions=40)
    harness.group.members = Untold(harness.group.members)
    return harness


def test_a_heartbeat_looks_at_no_other_member(harness: ConsumerHarness) -> None:
    epoch = harness.group.epoch
    harness.heartbeat("m3", epoch)
    harness.heartbeat("m3", epoch, topic_partitions=[])
    harness.heartbeat("m3", epoch, rack_id="r")


def test_a_join_before_the_next_assignment_looks_at_no_other_member(
    harness: ConsumerHarness,
) -> None:
    harness.group.assignment_timestamp_ms = harness.environment.clock.now_ms
    harness.join("new", "t")


def test_a_member_that_leaves_or_is_fenced_does_not_look_at_all_members(
    harness: ConsumerHarness,
) -> None:
    harness.heartbeat("m3", -1)
    harness.advance(10 * INTERVAL_MS)


def test_many_members_that_join_at_once_cost_one_assignment() -> None:
    harness = ConsumerHarness()
    harness.topic("t", 10)
    for index in range(50):
        harness.join(f"m{index}", "t")
    harness.advance(INTERVAL_MS)
    for index in range(50):
        harness.heartbeat(f"m{index}", 2)
    made = [each for each in harness.written if isinstance(each.key, AssignmentKey)]
    assert len(made) == 2
