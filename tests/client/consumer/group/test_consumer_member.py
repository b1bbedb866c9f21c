"""A member of the consumer protocol by itself, heartbeat by heartbeat."""

from typing import Any

import pytest
from tests.client.consumer.group.stepping import UNREACHABLE, Stepped, settings, topic_id

from barnabas.client.consumer.group.consumer_member import ConsumerGroupMembership
from barnabas.client.consumer.group.membership import Assign, Lose, ResolvedSubscription, Revoke
from barnabas.client.errors import KafkaError
from barnabas.client.values import PartitionKey
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.consumer_groups import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)

T0, T1, T2 = ("t", 0), ("t", 1), ("t", 2)


def a_member(**changed: Any) -> Stepped:
    it = Stepped(ConsumerGroupMembership(settings(**changed), "me"))
    it.set_metadata(t=3, u=1)
    return it


def settled(*partitions: PartitionKey, **changed: Any) -> Stepped:
    """In epoch 1, with these partitions, which the coordinator has heard of."""
    it = a_member(**changed)
    it.subscribe("t")
    it.respond(beaten(1, *partitions))
    it.complete_change()
    it.respond(beaten(1))
    return it


def beaten(epoch: int, *partitions: PartitionKey) -> ConsumerGroupHeartbeatResponse:
    """The answer to a heartbeat; without partitions, nothing is new."""
    response = ConsumerGroupHeartbeatResponse(
        member_id="me", member_epoch=epoch, heartbeat_interval_ms=5_000
    )
    if partitions:
        response.assignment = assignment(*partitions)
    return response


def assignment(*partitions: PartitionKey) -> Assignment:
    topics = sorted({topic for topic, _ in partitions})
    return Assignment(
        topic_partitions=[
            TopicPartitions(
                topic_id=topic_id(topic),
                partitions=[index for name, index in partitions if name == topic],
            )
            for topic in topics
        ]
    )


def refused(error: ErrorCode) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(error_code=error, error_message="so it is")


def test_the_joining_heartbeat_has_all_fields() -> None:
    it = a_member(group_remote_assignor="uniform", client_rack="r", group_instance_id="i")
    it.subscribe("u", "t")
    assert it.request() == ConsumerGroupHeartbeatRequest(
        group_id="g",
        member_id="me",
        member_epoch=0,
        instance_id="i",
        rack_id="r",
        rebalance_timeout_ms=60_000,
        subscribed_topic_names=["t", "u"],
        server_assignor="uniform",
        topic_partitions=[],
    )


def test_added_partitions_are_acknowledged_at_once_and_only_once() -> None:
    it = a_member()
    it.subscribe("t")
    it.respond(beaten(1, T0, T1))
    assert it.complete_change() == Assign(frozenset({T0, T1}), incremental=True)
    assert it.request() == ConsumerGroupHeartbeatRequest(
        group_id="g",
        member_id="me",
        member_epoch=1,
        topic_partitions=assignment(T0, T1).topic_partitions,
    )
    it.respond(beaten(1))
    it.wait(4_999)
    assert not it.requests
    it.wait(1)
    assert it.request() == ConsumerGroupHeartbeatRequest(
        group_id="g", member_id="me", member_epoch=1
    )


def test_a_member_revokes_and_acknowledges_before_it_adds() -> None:
    it = settled(T0, T1)
    it.wait(5_000)
    it.respond(beaten(2, T1, T2))
    assert it.complete_change() == Revoke(frozenset({T0}), incremental=True)
    assert it.request().topic_partitions == assignment(T1).topic_partitions
    assert it.complete_change() == Assign(frozenset({T2}), incremental=True)
    it.respond(beaten(2))
    assert it.request().topic_partitions == assignment(T1, T2).topic_partitions


def test_heartbeats_continue_during_a_slow_revocation() -> None:
    it = settled(T0)
    it.wait(5_000)
    it.respond(beaten(2, T1))
    for _ in range(3):
        it.wait(5_000)
        it.respond(beaten(2))
    assert it.complete_change() == Revoke(frozenset({T0}), incremental=True)


def test_assigned_topics_without_a_name_are_added_with_metadata() -> None:
    it = a_member()
    it.subscribe("t", "new")
    it.respond(beaten(1, T0, ("new", 0)))
    assert it.member.needs_metadata
    assert it.complete_change() == Assign(frozenset({T0}), incremental=True)
    it.set_metadata(t=3, new=1)
    assert not it.member.needs_metadata
    assert it.complete_change() == Assign(frozenset({("new", 0)}), incremental=True)


def test_partitions_of_a_topic_without_metadata_are_kept() -> None:
    it = settled(T0)
    it.set_metadata(u=1)
    it.wait(5_000)
    it.respond(beaten(2, T0, T1))
    assert it.complete_change() == Assign(frozenset({T1}), incremental=True)


def test_a_new_subscription_is_sent_at_once_without_other_fields() -> None:
    it = settled(T0)
    it.subscribe("u")
    request = it.request()
    assert (request.subscribed_topic_names, request.topic_partitions) == (["u"], None)


def test_a_pattern_is_sent_to_the_coordinator_and_cleared_by_an_empty_one() -> None:
    it = a_member()
    it.member.subscribe(ResolvedSubscription(pattern="^t.*", matching=frozenset({"t"})), it.now_ms)
    it.advance()
    request = it.request()
    assert (request.subscribed_topic_names, request.subscribed_topic_regex) == ([], "^t.*")
    it.respond(beaten(1))
    it.subscribe("t")
    request = it.request()
    assert (request.subscribed_topic_names, request.subscribed_topic_regex) == (["t"], "")


def test_the_heartbeat_after_one_without_a_response_has_all_fields() -> None:
    it = settled(T0)
    it.wait(5_000)
    it.respond(UNREACHABLE)
    it.wait(120)
    request = it.request()
    assert (request.member_epoch, request.subscribed_topic_names) == (1, ["t"])
    assert request.topic_partitions == assignment(T0).topic_partitions
    assert request.rebalance_timeout_ms == 60_000


@pytest.mark.parametrize(
    "error",
    [
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.FENCED_MEMBER_EPOCH,
        ErrorCode.GROUP_ID_NOT_FOUND,
    ],
)
def test_a_fenced_member_loses_all_partitions_and_rejoins(error: ErrorCode) -> None:
    it = settled(T0)
    it.wait(5_000)
    it.respond(refused(error))
    it.wait(120)
    assert not it.requests
    assert it.complete_change() == Lose(frozenset({T0}))
    assert (it.request().member_id, it.request().member_epoch) == ("me", 0)
    assert it.request().topic_partitions == []


@pytest.mark.parametrize(
    "error",
    [
        ErrorCode.UNRELEASED_INSTANCE_ID,
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.UNSUPPORTED_ASSIGNOR,
        ErrorCode.GROUP_MAX_SIZE_REACHED,
        ErrorCode.UNSUPPORTED_VERSION,
        ErrorCode.INVALID_REGULAR_EXPRESSION,
    ],
)
def test_non_recoverable_errors_are_fatal(error: ErrorCode) -> None:
    it = a_member()
    it.subscribe("t")
    it.respond(refused(error))
    assert it.errors == [KafkaError(error)]
    assert it.errors[0].fatal()
    it.subscribe("t")
    it.wait(100_000)
    assert not it.requests


def test_an_authorization_error_is_reported_and_retried() -> None:
    it = a_member()
    it.subscribe("t")
    it.respond(refused(ErrorCode.GROUP_AUTHORIZATION_FAILED))
    assert it.errors == [KafkaError(ErrorCode.GROUP_AUTHORIZATION_FAILED)]
    assert not it.errors[0].fatal()
    it.wait(1_000)
    assert it.request().member_epoch == 0


@pytest.mark.parametrize(("instance_id", "epoch"), [(None, -1), ("i", -2)])
def test_leaving_revokes_before_the_leave_heartbeat(instance_id: str | None, epoch: int) -> None:
    it = settled(T0, group_instance_id=instance_id)
    it.leave()
    assert it.complete_change() == Revoke(frozenset({T0}), incremental=True)
    assert (it.request().member_epoch, it.request().instance_id) == (epoch, instance_id)
    assert not it.member.has_left
    it.respond(UNREACHABLE)
    assert it.member.has_left
    it.subscribe("t")
    assert it.request().member_epoch == 0


def test_a_member_that_does_not_poll_leaves_and_rejoins_at_the_next_poll() -> None:
    it = settled(T0)
    while not it.errors:
        it.wait(5_000)
        if not it.errors:
            it.respond(beaten(1))
    assert it.errors == [KafkaError(KafkaError._MAX_POLL_EXCEEDED)]
    assert it.complete_change() == Lose(frozenset({T0}))
    assert it.requests[-1].request.member_epoch == -1  # type: ignore[attr-defined]
    it.requests.clear()
    it.wait(100_000)
    assert not it.requests
    it.poll()
    assert it.request().member_epoch == 0
