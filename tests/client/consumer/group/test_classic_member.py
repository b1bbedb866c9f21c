"""A classic member by itself: what it does about each thing that can be said to it."""

from typing import Any

import pytest
from tests.client.consumer.group.stepping import UNREACHABLE, Stepped, settings

from barnabas.client.consumer.group.assignors import SubscribedMember
from barnabas.client.consumer.group.classic_member import ClassicGroupMembership
from barnabas.client.consumer.group.classic_requests import (
    read_assignment,
    read_subscription,
    write_assignment,
    write_subscription,
)
from barnabas.client.consumer.group.membership import Assign, Lose, Revoke
from barnabas.client.errors import KafkaError
from barnabas.client.values import PartitionKey
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.classic_groups import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    JoinGroupResponseMember,
    LeaveGroupRequest,
    LeaveGroupResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)

COOPERATIVE = {"assignors": ("cooperative-sticky",)}
T0, T1 = ("t", 0), ("t", 1)


def a_member(**changed: Any) -> Stepped:
    return Stepped(ClassicGroupMembership(settings(**({"assignors": ("range",)} | changed))))


def settled(*partitions: PartitionKey, **changed: Any) -> Stepped:
    """A follower with these partitions in generation 1."""
    it = a_member(**changed)
    it.subscribe("t")
    follow(it, *partitions)
    it.complete_change()
    return it


def follow(it: Stepped, *partitions: PartitionKey, generation: int = 1) -> None:
    """Let it join, and be assigned these."""
    assert isinstance(it.request(), JoinGroupRequest)
    it.respond(joined(it, generation))
    it.respond(SyncGroupResponse(assignment=write_assignment(partitions)))


def joined(it: Stepped, generation: int = 1) -> JoinGroupResponse:
    name = it.request().protocols[0].name
    return JoinGroupResponse(
        generation_id=generation, protocol_name=name, leader="another", member_id="me"
    )


def leading(name: str, *members: SubscribedMember) -> JoinGroupResponse:
    return JoinGroupResponse(
        generation_id=1,
        protocol_name=name,
        leader=members[0].member_id,
        member_id=members[0].member_id,
        members=[
            JoinGroupResponseMember(
                member_id=each.member_id, metadata=write_subscription(each, None)
            )
            for each in members
        ],
    )


def test_a_member_joins_with_the_id_from_the_coordinator() -> None:
    it = a_member()
    it.subscribe("t")
    assert it.request().member_id == ""
    it.respond(JoinGroupResponse(error_code=ErrorCode.MEMBER_ID_REQUIRED, member_id="me"))
    assert it.request().member_id == "me"
    assert it.request().rebalance_timeout_ms == 60_000


def test_a_follower_gets_the_assignment_of_the_leader() -> None:
    it = a_member()
    it.subscribe("t")
    follow(it, T0, T1)
    assert it.complete_change() == Assign(frozenset({T0, T1}), incremental=False)
    assert (it.member.member_id, it.member.epoch) == ("me", 1)


def test_a_leader_assigns_once_it_has_metadata_of_all_topics() -> None:
    it = a_member()
    it.set_metadata(t=2)
    it.subscribe("t")
    both = [SubscribedMember("a", frozenset({"t", "u"})), SubscribedMember("b", frozenset({"u"}))]
    it.respond(leading("range", *both))
    assert not it.requests
    assert it.member.needed_topics == {"t", "u"}
    it.set_metadata(t=2, u=2)
    shares = {each.member_id: each.assignment for each in it.request().assignments}
    assert read_assignment(shares["a"]) == {T0, T1, ("u", 0)}
    assert read_assignment(shares["b"]) == {("u", 1)}


def test_a_leader_waits_a_limited_time_for_unknown_topics() -> None:
    it = a_member()
    it.set_metadata(t=2)
    it.subscribe("t")
    it.respond(leading("range", SubscribedMember("a", frozenset({"t", "nowhere"}))))
    it.wait(3_000)
    assert isinstance(it.request(), SyncGroupRequest)


def test_a_static_leader_that_rejoined_skips_the_assignment() -> None:
    it = a_member(group_instance_id="i")
    it.set_metadata(t=2)
    it.subscribe("t")
    response = leading("range", SubscribedMember("a", frozenset({"t"})))
    response.skip_assignment = True
    it.respond(response)
    assert it.request().assignments == []


def test_a_leader_rejoins_when_a_topic_has_more_partitions() -> None:
    it = a_member(**COOPERATIVE)
    it.set_metadata(t=1)
    it.subscribe("t")
    it.respond(leading("cooperative-sticky", SubscribedMember("a", frozenset({"t"}))))
    it.respond(SyncGroupResponse(assignment=write_assignment([T0])))
    it.complete_change()
    it.set_metadata(t=1)
    assert not it.requests
    it.set_metadata(t=2)
    assert it.request().reason == "topics have changed: t"


def test_an_eager_member_revokes_all_before_it_rejoins() -> None:
    it = settled(T0, T1)
    rebalance(it)
    assert not it.requests
    assert it.complete_change() == Revoke(frozenset({T0, T1}), incremental=False)
    follow(it, T1, generation=2)
    assert it.complete_change() == Assign(frozenset({T1}), incremental=False)


def test_a_cooperative_member_joins_with_its_owned_partitions() -> None:
    it = settled(T0, T1, **COOPERATIVE)
    rebalance(it)
    offered = it.request().protocols[0].metadata
    said = read_subscription(JoinGroupResponseMember(member_id="me", metadata=offered))
    assert (said.owned, said.generation) == ({T0, T1}, 1)


def test_a_cooperative_member_revokes_what_its_assignment_lacks_and_rejoins() -> None:
    it = settled(T0, T1, **COOPERATIVE)
    rebalance(it)
    follow(it, T1, ("t", 2), generation=2)
    assert it.complete_change() == Revoke(frozenset({T0}), incremental=True)
    assert it.complete_change() == Assign(frozenset({("t", 2)}), incremental=True)
    assert isinstance(it.request(), JoinGroupRequest)


def test_a_cooperative_member_revokes_topics_that_it_unsubscribes_from() -> None:
    it = settled(T0, ("u", 0), **COOPERATIVE)
    it.subscribe("u")
    assert it.complete_change() == Revoke(frozenset({T0}), incremental=True)
    assert isinstance(it.request(), JoinGroupRequest)


def test_a_subscription_changed_during_a_join_makes_the_member_rejoin() -> None:
    it = a_member(**COOPERATIVE)
    it.subscribe("t")
    it.subscribe("t", "u")
    follow(it, T0)
    it.complete_change()
    assert isinstance(it.request(), JoinGroupRequest)


def test_heartbeats_continue_during_a_slow_assignment() -> None:
    it = a_member()
    it.subscribe("t")
    follow(it, T0)
    for _ in range(5):
        it.wait(3_000)
        assert isinstance(it.request(), HeartbeatRequest)
        it.respond(HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS))
    assert it.complete_change() == Assign(frozenset({T0}), incremental=False)
    assert it.complete_change() == Revoke(frozenset({T0}), incremental=False)
    assert isinstance(it.request(), JoinGroupRequest)


@pytest.mark.parametrize(
    ("error", "rejoins_as"),
    [(ErrorCode.UNKNOWN_MEMBER_ID, ""), (ErrorCode.ILLEGAL_GENERATION, "me")],
)
def test_an_unknown_member_loses_all_partitions_and_rejoins(
    error: ErrorCode, rejoins_as: str
) -> None:
    it = settled(T0)
    it.wait(3_000)
    it.respond(HeartbeatResponse(error_code=error))
    assert it.member.epoch == -1
    assert it.complete_change() == Lose(frozenset({T0}))
    assert it.request().member_id == rejoins_as


def test_a_fenced_static_member_is_fatal() -> None:
    it = settled(T0, group_instance_id="i")
    it.wait(3_000)
    it.respond(HeartbeatResponse(error_code=ErrorCode.FENCED_INSTANCE_ID))
    assert it.complete_change() == Lose(frozenset({T0}))
    assert it.errors == [KafkaError(ErrorCode.FENCED_INSTANCE_ID)]
    assert it.errors[0].fatal()
    it.subscribe("t")
    assert not it.requests
    assert it.member.has_left


def test_a_session_without_responses_expires() -> None:
    it = settled(T0)
    it.wait(3_000)
    it.respond(UNREACHABLE)
    it.wait(7_000)
    assert it.complete_change() == Lose(frozenset({T0}))
    joins = [each.request for each in it.requests if isinstance(each.request, JoinGroupRequest)]
    assert [each.member_id for each in joins] == [""]


def test_a_heartbeat_without_a_response_is_retried_after_a_backoff() -> None:
    it = settled(T0)
    it.wait(3_000)
    it.respond(UNREACHABLE)
    it.wait(120)
    assert isinstance(it.request(), HeartbeatRequest)


@pytest.mark.parametrize(
    "outcome",
    [
        UNREACHABLE,
        JoinGroupResponse(error_code=ErrorCode.NOT_COORDINATOR),
        JoinGroupResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
        JoinGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS),
    ],
    ids=str,
)
def test_retriable_errors_are_retried_after_a_backoff_without_a_report(outcome: Any) -> None:
    it = a_member()
    it.subscribe("t")
    it.respond(outcome)
    assert not it.requests
    it.wait(120)
    assert isinstance(it.request(), JoinGroupRequest)
    assert not it.errors


@pytest.mark.parametrize(
    "error",
    [
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
        ErrorCode.GROUP_MAX_SIZE_REACHED,
        ErrorCode.INVALID_SESSION_TIMEOUT,
    ],
)
def test_other_errors_are_reported_and_retried(error: ErrorCode) -> None:
    it = a_member()
    it.subscribe("t")
    it.respond(JoinGroupResponse(error_code=error))
    assert it.errors == [KafkaError(error)]
    assert not it.errors[0].fatal()
    it.wait(1_000)
    assert isinstance(it.request(), JoinGroupRequest)


def test_a_rebalance_during_a_sync_makes_the_member_rejoin() -> None:
    it = a_member()
    it.subscribe("t")
    it.respond(joined(it))
    it.respond(SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS))
    it.wait(120)
    assert it.request().member_id == "me"


def test_unreadable_member_metadata_is_reported() -> None:
    it = a_member()
    it.subscribe("t")
    gibberish = JoinGroupResponseMember(member_id="b", metadata=b"\0")
    response = leading("range", SubscribedMember("a", frozenset({"t"})))
    response.members.append(gibberish)
    it.respond(response)
    assert it.errors == [KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)]


def test_a_member_that_does_not_poll_leaves_and_rejoins_at_the_next_poll() -> None:
    it = settled(T0)
    while not it.errors:
        it.wait(3_000)
        if not it.errors:
            it.respond(HeartbeatResponse())
    assert it.errors == [KafkaError(KafkaError._MAX_POLL_EXCEEDED)]
    assert it.complete_change() == Lose(frozenset({T0}))
    requests = [each.request for each in it.requests]
    assert isinstance(requests[-1], LeaveGroupRequest)
    it.requests.clear()
    it.wait(100_000)
    assert not it.requests
    it.poll()
    assert isinstance(it.request(), JoinGroupRequest)


def test_leaving_revokes_before_the_leave_heartbeat() -> None:
    it = settled(T0)
    it.leave()
    assert not it.member.has_left
    assert it.complete_change() == Revoke(frozenset({T0}), incremental=False)
    assert [each.member_id for each in it.request().members] == ["me"]
    it.respond(LeaveGroupResponse())
    assert it.member.has_left


def test_leaving_ends_without_a_response() -> None:
    it = settled()
    it.leave()
    it.respond(UNREACHABLE)
    assert it.member.has_left


def test_a_static_member_stays_in_the_group_when_it_closes() -> None:
    it = settled(T0, group_instance_id="i")
    it.leave()
    it.complete_change()
    assert not it.requests
    assert it.member.has_left


def test_leaving_does_not_wait_for_a_join_in_flight() -> None:
    it = settled(**COOPERATIVE)
    rebalance(it)
    it.leave()
    late, leave = it.requests
    assert isinstance(leave.request, LeaveGroupRequest)
    it.member.on_response(leave.request, LeaveGroupResponse(), it.now_ms)
    it.member.on_response(late.request, JoinGroupResponse(member_id="me"), it.now_ms)
    it.advance()
    assert it.member.has_left


def test_a_pattern_without_a_match_does_not_join() -> None:
    it = a_member()
    it.subscribe()
    assert not it.requests
    it.subscribe("t")
    assert isinstance(it.request(), JoinGroupRequest)


def rebalance(it: Stepped) -> None:
    it.wait(3_000)
    it.respond(HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS))
