"""Static members: they keep their place while they are away for a while."""

import pytest
from tests.coordinator.consumer.harness import (
    INTERVAL_MS,
    SESSION_MS,
    ConsumerHarness,
    Member,
    assigned,
    joining,
)

from barnabas.wire.errors import ErrorCode

JOIN = joining(["t"])


@pytest.fixture
def harness() -> ConsumerHarness:
    harness = ConsumerHarness()
    harness.topic("t", 4)
    return harness


@pytest.fixture
def static(harness: ConsumerHarness) -> Member:
    """A static member, alone in its group."""
    member = Member(harness, "s1", "i")
    member.join("t")
    return member


def test_an_instance_that_has_not_left_cannot_be_replaced(
    harness: ConsumerHarness, static: Member
) -> None:
    code = harness.code("s2", 0, instance_id="i", **JOIN)
    assert code == ErrorCode.UNRELEASED_INSTANCE_ID
    assert static.heartbeat().member_epoch == static.epoch


def test_a_temporary_leaver_keeps_its_partitions(harness: ConsumerHarness, static: Member) -> None:
    response = harness.heartbeat("s1", -2, instance_id="i")
    assert (response.member_id, response.member_epoch) == ("s1", -2)
    harness.advance(INTERVAL_MS)
    other = harness.join("d", "t")
    assert assigned(other) == set()
    assert harness.group.owners[next(iter(harness.group.owners))] == dict.fromkeys(range(4), "s1")


def test_a_static_replacement_has_the_partitions_at_once(
    harness: ConsumerHarness, static: Member
) -> None:
    group_epoch = harness.group.epoch
    harness.heartbeat("s1", -2, instance_id="i")
    response = harness.join("s2", "t", instance_id="i")
    assert assigned(response) == static.owned
    assert response.member_epoch == group_epoch == harness.group.epoch
    assert harness.group.members.keys() == {"s2"}
    assert harness.group.static_members == {"i": "s2"}


def test_a_successor_with_another_subscription_starts_a_rebalance(
    harness: ConsumerHarness, static: Member
) -> None:
    epoch = harness.group.epoch
    harness.topic("u", 1)
    harness.heartbeat("s1", -2, instance_id="i")
    harness.join("s2", "u", instance_id="i")
    assert harness.group.epoch == epoch + 1
    assert harness.group.subscribed_topics == {"u": 1}


def test_a_replaced_static_consumer_is_fenced(harness: ConsumerHarness, static: Member) -> None:
    harness.heartbeat("s1", -2, instance_id="i")
    harness.join("s2", "t", instance_id="i")
    assert harness.code("s1", 2, instance_id="i") == ErrorCode.FENCED_INSTANCE_ID
    assert harness.code("s1", -2, instance_id="i") == ErrorCode.FENCED_INSTANCE_ID
    assert harness.code("s1", 2) == ErrorCode.UNKNOWN_MEMBER_ID
    assert harness.code("s1", 2, instance_id="j") == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_heartbeat_of_a_temporary_leaver_is_an_error(
    harness: ConsumerHarness, static: Member
) -> None:
    harness.heartbeat("s1", -2, instance_id="i")
    assert harness.code("s1", 2, instance_id="i") == ErrorCode.FENCED_MEMBER_EPOCH


def test_a_temporary_leaver_that_does_not_return_in_time_is_fenced(
    harness: ConsumerHarness, static: Member
) -> None:
    harness.heartbeat("s1", -2, instance_id="i")
    harness.advance(SESSION_MS)
    assert harness.group.is_empty
    assert not harness.group.static_members


def test_the_session_of_a_replaced_member_ends_without_effect(
    harness: ConsumerHarness, static: Member
) -> None:
    harness.heartbeat("s1", -2, instance_id="i")
    harness.advance(SESSION_MS - 1)
    successor = Member(harness, "s2", "i")
    successor.join("t")
    harness.advance(1)
    assert successor.heartbeat().member_epoch == successor.epoch


def test_a_static_member_may_leave_permanently(harness: ConsumerHarness, static: Member) -> None:
    harness.heartbeat("s1", -1, instance_id="i")
    assert harness.group.is_empty
    assert harness.code("s2", 0, instance_id="i", **JOIN) == ErrorCode.NONE


def test_partitions_of_a_temporary_leaver_may_be_committed_by_its_successor(
    harness: ConsumerHarness, static: Member
) -> None:
    harness.heartbeat("s1", -2, instance_id="i")
    harness.join("s2", "t", instance_id="i")
    harness.join("d", "t")
    harness.advance(INTERVAL_MS)
    harness.heartbeat("s2", 2, instance_id="i")
    owned = harness.group.members["s2"].assigned
    assert {epoch for each in owned.values() for epoch in each.values()} == {0}
