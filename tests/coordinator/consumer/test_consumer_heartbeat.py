"""Members join, share, lose responses and leave: the responses to heartbeats. The numbers are those
that the real Kafka 4.3.1 gives in the same conversations."""

from typing import Any

import pytest
from tests.coordinator.consumer.harness import (
    INTERVAL_MS,
    ConsumerHarness,
    Member,
    assigned,
    report,
)

from barnabas.coordinator.groups.consumer.member import MemberState
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.consumer_groups import TopicPartitions


@pytest.fixture
def harness() -> ConsumerHarness:
    return ConsumerHarness()


JOIN: dict[str, Any] = {
    "rebalance_timeout_ms": 30_000,
    "subscribed_topic_names": ["t"],
    "topic_partitions": [],
}
SOME = [TopicPartitions(topic_id=bytes(15) + b"\1", partitions=[0])]


@pytest.mark.parametrize(
    ("epoch", "changed"),
    [
        (0, {"group": ""}),
        (0, {"group": " "}),
        (0, {"member_id": ""}),
        (0, {"member_id": " "}),
        (0, {"instance_id": ""}),
        (0, {"rack_id": ""}),
        (0, {"rebalance_timeout_ms": -1}),
        (0, {"topic_partitions": None}),
        (0, {"topic_partitions": SOME}),
        (0, {"subscribed_topic_names": None}),
        (1, {"member_id": "", "version": 0}),
        (-1, {"member_id": "", "version": 0}),
        (-2, {}),
        (-3, {}),
    ],
)
def test_an_invalid_heartbeat_is_an_error(
    harness: ConsumerHarness, epoch: int, changed: dict[str, Any]
) -> None:
    fields = {"member_id": "m", **JOIN, **changed}
    assert harness.code(fields.pop("member_id"), epoch, **fields) == ErrorCode.INVALID_REQUEST


def test_an_unsupported_assignor_is_an_error(harness: ConsumerHarness) -> None:
    code = harness.code("m", 0, **JOIN, server_assignor="sticky")
    assert code == ErrorCode.UNSUPPORTED_ASSIGNOR


@pytest.mark.parametrize("requested", [None, "range"])
def test_assignors_may_be_set_by_the_names_of_kafkas_classes(requested: str | None) -> None:
    classes = "org.apache.kafka.coordinator.group.assignor."
    listed = f"{classes}RangeAssignor, {classes}UniformAssignor"
    harness = ConsumerHarness(group_consumer_assignors=listed)
    topic_id = harness.topic("t", 2)
    response = harness.heartbeat("m", 0, **JOIN, server_assignor=requested)
    assert assigned(response) == {(topic_id, 0), (topic_id, 1)}


def test_an_invalid_regular_expression_writes_no_records(harness: ConsumerHarness) -> None:
    code = harness.code("m", 0, **JOIN, subscribed_topic_regex="[")
    assert code == ErrorCode.INVALID_REGULAR_EXPRESSION
    assert not harness.written


def test_before_v1_the_coordinator_generates_the_member_id(harness: ConsumerHarness) -> None:
    response = harness.heartbeat("", 0, **JOIN, version=0)
    assert response.member_id
    assert len(response.member_id) == 22
    assert harness.code(response.member_id, response.member_epoch, version=0) == ErrorCode.NONE


def test_an_unknown_group_can_only_be_joined(harness: ConsumerHarness) -> None:
    assert harness.code("m", 3) == ErrorCode.GROUP_ID_NOT_FOUND
    assert harness.code("m", -1) == ErrorCode.GROUP_ID_NOT_FOUND
    assert harness.code("m", 0, **JOIN) == ErrorCode.NONE


def test_the_first_member_gets_everything_at_once(harness: ConsumerHarness) -> None:
    topic_id = harness.topic("t", 4)
    response = harness.join("m", "t")
    assert (response.member_id, response.member_epoch, response.heartbeat_interval_ms) == (
        "m",
        2,
        5_000,
    )
    assert assigned(response) == {(topic_id, index) for index in range(4)}
    assert harness.group.state_name == "Stable"


def test_the_response_has_an_assignment_that_changed_or_was_requested(
    harness: ConsumerHarness,
) -> None:
    topic_id = harness.topic("t", 1)
    harness.join("m", "t")
    assert harness.heartbeat("m", 2).assignment is None
    assert harness.heartbeat("m", 2, topic_partitions=report([(topic_id, 0)])).assignment is None
    full = {**JOIN, "topic_partitions": report([(topic_id, 0)])}
    assert assigned(harness.heartbeat("m", 2, **full)) == {(topic_id, 0)}
    by_regex = {**full, "subscribed_topic_names": None, "subscribed_topic_regex": ""}
    assert assigned(harness.heartbeat("m", 2, **by_regex)) == {(topic_id, 0)}


def test_a_heartbeat_without_changes_writes_no_records(harness: ConsumerHarness) -> None:
    epoch = harness.stable("m")
    before = len(harness.written)
    harness.heartbeat("m", epoch)
    harness.heartbeat("m", epoch, **{**JOIN, "topic_partitions": []})
    assert len(harness.written) == before


def test_a_second_member_waits_until_the_first_has_revoked(harness: ConsumerHarness) -> None:
    topic_id = harness.topic("t", 4)
    harness.join("a", "t")
    assert assigned(harness.join("b", "t")) == set()
    assert harness.group.state_name == "Assigning"
    harness.advance(INTERVAL_MS)

    kept = assigned(harness.heartbeat("a", 2))
    assert kept == {(topic_id, 0), (topic_id, 1)}
    assert harness.group.members["a"].state is MemberState.UNREVOKED_PARTITIONS
    response = harness.heartbeat("b", 2)
    assert (response.member_epoch, response.assignment) == (3, None)
    assert harness.group.members["b"].state is MemberState.UNRELEASED_PARTITIONS
    assert harness.group.state_name == "Reconciling"

    everything = [(topic_id, index) for index in range(4)]
    assert harness.heartbeat("a", 2, topic_partitions=report(everything)).member_epoch == 2
    assert harness.heartbeat("a", 2, topic_partitions=report(kept)).member_epoch == 3
    assert assigned(harness.heartbeat("b", 3)) == {(topic_id, 2), (topic_id, 3)}
    assert harness.group.state_name == "Stable"


def test_assignments_have_a_minimum_interval(harness: ConsumerHarness) -> None:
    harness.topic("t", 4)
    harness.join("a", "t")
    harness.join("b", "t")
    harness.advance(INTERVAL_MS - 1)
    assert harness.heartbeat("b", 2).member_epoch == 2
    harness.advance(1)
    assert harness.heartbeat("b", 2).member_epoch == 3
    assert harness.group.assignment_timestamp_ms == harness.environment.clock.now_ms


def test_a_clock_that_is_set_back_does_not_delay_the_next_assignment(
    harness: ConsumerHarness,
) -> None:
    harness.topic("t", 4)
    harness.join("a", "t")
    harness.environment.clock.now_ms -= 3_600_000
    assert harness.join("b", "t").member_epoch == 3


def test_the_interval_between_assignments_is_the_groups_own(harness: ConsumerHarness) -> None:
    harness.environment.settings.groups["g"] = {"consumer.assignment.interval.ms": 0}
    harness.topic("t", 4)
    harness.join("a", "t")
    assert harness.join("b", "t").member_epoch == 3


def test_a_member_of_a_wrong_epoch_is_fenced(harness: ConsumerHarness) -> None:
    epoch = harness.stable("m")
    assert harness.code("m", epoch + 1) == ErrorCode.FENCED_MEMBER_EPOCH
    assert harness.code("m", epoch - 1) == ErrorCode.FENCED_MEMBER_EPOCH
    assert harness.code("x", epoch) == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_member_may_retry_with_its_previous_epoch(harness: ConsumerHarness) -> None:
    topic_id = harness.topic("t", 2)
    member = Member(harness, "m")
    member.join("t")
    harness.topic("t", 3)
    harness.advance(INTERVAL_MS)
    lost = harness.heartbeat("m", member.epoch)
    assert lost.member_epoch == member.epoch + 1

    assert harness.code("m", member.epoch) == ErrorCode.FENCED_MEMBER_EPOCH
    stranger = report([(topic_id, 7)])
    assert (
        harness.code("m", member.epoch, topic_partitions=stranger) == ErrorCode.FENCED_MEMBER_EPOCH
    )
    assert member.heartbeat().member_epoch == lost.member_epoch


def test_a_member_that_rejoins_keeps_its_assignment(harness: ConsumerHarness) -> None:
    epoch = harness.stable("m")
    before = harness.group.members["m"].assigned
    response = harness.join("m", "t")
    assert response.member_epoch == epoch
    assert harness.group.members["m"].assigned == before


def test_another_subscription_bumps_the_group_epoch(harness: ConsumerHarness) -> None:
    epoch = harness.stable("m")
    assert (
        harness.heartbeat("m", epoch, subscribed_topic_names=["t", "u"]).member_epoch == epoch + 1
    )
    harness.heartbeat("m", epoch + 1, subscribed_topic_names=["u", "t"])
    assert harness.group.epoch == epoch + 1


def test_unsubscribed_topics_are_revoked_before_the_next_assignment(
    harness: ConsumerHarness,
) -> None:
    harness.topic("t", 1)
    harness.topic("u", 1)
    epoch = harness.join("m", "t").member_epoch
    response = harness.heartbeat("m", epoch, subscribed_topic_names=["u"])
    assert harness.group.epoch > harness.group.assignment_epoch
    assert (response.member_epoch, assigned(response)) == (epoch, set())
    assert harness.group.members["m"].state is MemberState.UNREVOKED_PARTITIONS


def test_a_change_that_is_not_of_the_subscription_is_written_without_a_new_epoch(
    harness: ConsumerHarness,
) -> None:
    epoch = harness.stable("m")
    before = len(harness.written)
    harness.heartbeat("m", epoch, rack_id="r", rebalance_timeout_ms=7_000)
    assert len(harness.written) == before + 1
    assert harness.group.members["m"].rack_id == "r"
    assert harness.group.epoch == epoch


def test_the_assignor_of_most_members_is_used(harness: ConsumerHarness) -> None:
    harness.topic("t", 4)
    harness.join("a", "t", server_assignor="range")
    assert harness.group.preferred_assignor() == "range"
    harness.join("b", "t", server_assignor="uniform")
    assert harness.group.preferred_assignor() == "uniform"
    harness.heartbeat("b", harness.group.members["b"].member_epoch, server_assignor="range")
    assert harness.group.preferred_assignor() == "range"


def test_a_full_group_accepts_only_its_members() -> None:
    harness = ConsumerHarness(**{"group.consumer.max.size": 2})
    harness.stable("a", "b")
    assert harness.code("c", 0, **JOIN) == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert harness.code("a", 0, **JOIN) == ErrorCode.NONE


def test_the_other_members_take_over_from_one_that_leaves(harness: ConsumerHarness) -> None:
    epoch = harness.stable("a", "b")
    response = harness.heartbeat("a", -1)
    assert (response.member_id, response.member_epoch, response.assignment) == ("a", -1, None)
    assert harness.code("a", epoch) == ErrorCode.UNKNOWN_MEMBER_ID
    assert harness.code("a", -1) == ErrorCode.UNKNOWN_MEMBER_ID
    harness.advance(INTERVAL_MS)
    assert len(assigned(harness.heartbeat("b", epoch))) == 4


def test_a_group_outlives_its_last_member(harness: ConsumerHarness) -> None:
    epoch = harness.stable("m")
    harness.heartbeat("m", -1)
    assert harness.group.state_name == "Empty"
    assert harness.group.epoch == epoch + 1
    harness.advance(INTERVAL_MS)
    assert harness.join("n", "t").member_epoch == epoch + 2


def test_a_heartbeat_that_cannot_be_written_changes_nothing(harness: ConsumerHarness) -> None:
    epoch = harness.stable("m")
    harness.environment.log.append_error = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS, "")
    assert harness.code("n", 0, **JOIN) == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert harness.code("m", -1) == ErrorCode.COORDINATOR_NOT_AVAILABLE
    harness.environment.log.append_error = None
    assert harness.group.members.keys() == {"m"}
    assert harness.code("m", epoch) == ErrorCode.NONE


def test_a_response_waits_until_its_records_are_committed(harness: ConsumerHarness) -> None:
    harness.topic("t", 1)
    harness.environment.log.is_committing = False
    response = harness.send("m", 0, **JOIN)
    assert not response.is_done
    harness.environment.log.commit()
    assert response.result().member_epoch == 2
