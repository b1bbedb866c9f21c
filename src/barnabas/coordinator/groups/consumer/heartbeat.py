"""ConsumerGroupHeartbeat (key 68): a member says what it has and wants, and learns its part.

Epoch 0 joins, -1 leaves, -2 is a static member that leaves for a while; any other must be the
member's own. Fields that did not change since the last heartbeat are left out. From v1 on members
make up their ids themselves, and may subscribe by regular expression.
"""

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from barnabas.coordinator.decision import Decision
from barnabas.coordinator.groups.classic.group import ClassicGroup
from barnabas.coordinator.groups.context import GroupClient
from barnabas.coordinator.groups.consumer import migration, sessions
from barnabas.coordinator.groups.consumer.member_update import advance
from barnabas.coordinator.groups.consumer.group import ConsumerGroup
from barnabas.coordinator.groups.consumer.membership import check_epoch, joining_member, known_member
from barnabas.coordinator.groups.consumer.leave import leave
from barnabas.coordinator.groups.consumer.member import (
    JOINING,
    LEAVING,
    LEFT_FOR_A_WHILE,
    ConsumerMember,
    OwnedPartitions,
)
from barnabas.coordinator.groups.consumer.target_assignment import supported_assignors
from barnabas.coordinator.groups.consumer.group import Subscriptions
from barnabas.coordinator.records import CoordinatorRecord
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from barnabas.wire.uuid import random_uuid, to_text

if TYPE_CHECKING:
    from barnabas.coordinator.groups.state import GroupCoordinatorState

FIRST_VERSION_WITH_IDS_BY_CLIENTS = 1


def heartbeat(
    groups: "GroupCoordinatorState", request: ConsumerGroupHeartbeatRequest, client: GroupClient
) -> Decision[ConsumerGroupHeartbeatResponse]:
    _check(groups, request, client)
    group_id = request.group_id
    if request.member_epoch < 0:
        return leave(groups, known_group(groups, group_id), request)
    into: list[CoordinatorRecord] = []
    group, old = _speaker(groups, request, into)
    new = _with_news(old, request, client)
    member = advance(groups, group, old, new, request.topic_partitions, into)
    sessions.start_session(groups, group_id, member.member_id)
    response = ConsumerGroupHeartbeatResponse(
        member_id=member.member_id,
        member_epoch=member.member_epoch,
        heartbeat_interval_ms=groups.settings.group(group_id)["consumer.heartbeat.interval.ms"],
    )
    if _is_full(request) or (member is not old and member.assigned != old.assigned):
        response.assignment = _assignment(member.assigned)
    if not into:
        return Decision(response)
    resume = partial(sessions.resume, groups, group_id, [member.member_id])
    return Decision(response, into, refused=resume)


def known_group(groups: "GroupCoordinatorState", group_id: str) -> ConsumerGroup:
    """The consumer group of that id; KafkaError if there is none, or it is one of another kind."""
    group = groups.by_id.get(group_id)
    if isinstance(group, ConsumerGroup):
        return group
    reason = "is not a consumer group" if group is not None else "is not known here"
    raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} {reason}.")


def _speaker(
    groups: "GroupCoordinatorState", request: ConsumerGroupHeartbeatRequest, into: list[CoordinatorRecord]
) -> tuple[ConsumerGroup, ConsumerMember]:
    """The member that speaks and its group, as they were up to now."""
    member_id, instance_id = request.member_id, request.instance_id
    if request.member_epoch != JOINING:
        group = known_group(groups, request.group_id)
        member = known_member(group, member_id, instance_id)
        check_epoch(member, request.member_epoch, request.topic_partitions)
        return group, member
    group = _group_to_join(groups, request.group_id, into)
    limit = groups.settings.broker("group.consumer.max.size")
    if len(group.members) >= limit and member_id not in group.members:
        raise KafkaError(
            ErrorCode.GROUP_MAX_SIZE_REACHED,
            f"Group {request.group_id} is full: it may have {limit} members.",
        )
    member_id = member_id or to_text(random_uuid())
    return group, joining_member(group, member_id, instance_id, into)


def _group_to_join(groups: "GroupCoordinatorState", group_id: str, into: list[CoordinatorRecord]) -> ConsumerGroup:
    group = groups.by_id.get(group_id)
    if group is None:
        return ConsumerGroup(group_id, Subscriptions())
    if isinstance(group, ClassicGroup):
        return migration.upgrade(groups, group, into)
    return known_group(groups, group_id)


def _with_news(
    member: ConsumerMember, request: ConsumerGroupHeartbeatRequest, client: GroupClient
) -> ConsumerMember:
    """The member with what the heartbeat says of it; itself, if that is nothing new."""
    news: dict[str, Any] = {}
    if client.client_id != member.client_id:
        news["client_id"] = client.client_id
    if client.host != member.client_host:
        news["client_host"] = client.host
    if request.instance_id is not None and request.instance_id != member.instance_id:
        news["instance_id"] = request.instance_id
    if request.rack_id is not None:
        news["rack_id"] = request.rack_id
    if request.rebalance_timeout_ms != -1:
        news["rebalance_timeout_ms"] = request.rebalance_timeout_ms
    if request.server_assignor is not None:
        news["server_assignor"] = request.server_assignor
    if request.subscribed_topic_names is not None:
        news["subscribed_topic_names"] = frozenset(request.subscribed_topic_names)
    if request.subscribed_topic_regex is not None:
        news["subscribed_topic_regex"] = request.subscribed_topic_regex
    if member.classic is not None:
        news["classic"] = None
    if not news:
        return member
    updated = replace(member, **news)
    return member if updated == member else updated


def _is_full(request: ConsumerGroupHeartbeatRequest) -> bool:
    """Whether the member says all that there is to say: then it wants to hear all as well."""
    return request.member_epoch == JOINING or (
        request.rebalance_timeout_ms != -1
        and request.topic_partitions is not None
        and (
            request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None
        )
    )


def _assignment(assigned: OwnedPartitions) -> Assignment:
    return Assignment(
        topic_partitions=[
            TopicPartitions(topic_id=topic_id, partitions=sorted(partitions))
            for topic_id, partitions in assigned.items()
        ]
    )


def _check(groups: "GroupCoordinatorState", request: ConsumerGroupHeartbeatRequest, client: GroupClient) -> None:
    """KafkaError unless the request makes sense by itself."""
    epoch = request.member_epoch
    if client.api_version >= FIRST_VERSION_WITH_IDS_BY_CLIENTS or epoch > 0 or epoch == LEAVING:
        _require(request.member_id.strip(), "MemberId can't be empty.")
    _require(request.group_id.strip(), "GroupId can't be empty.")
    _require(request.instance_id is None or request.instance_id.strip(), "InstanceId is empty.")
    _require(request.rack_id is None or request.rack_id.strip(), "RackId is empty.")
    if epoch == JOINING:
        _check_join(request)
    elif epoch == LEFT_FOR_A_WHILE:
        _require(request.instance_id is not None, "Only static members leave for a while (-2).")
    else:
        _require(epoch >= LEAVING, "MemberEpoch is less than -2, which means nothing.")
    if request.server_assignor is not None:
        _check_assignor(groups, request.server_assignor)


def _check_join(request: ConsumerGroupHeartbeatRequest) -> None:
    _require(request.rebalance_timeout_ms != -1, "RebalanceTimeoutMs is missing in a join.")
    _require(request.topic_partitions == [], "TopicPartitions must be empty in a join.")
    _require(
        request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None,
        "SubscribedTopicNames or SubscribedTopicRegex must be there in a join.",
    )


def _check_assignor(groups: "GroupCoordinatorState", name: str) -> None:
    supported = supported_assignors(groups)
    if name not in supported:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            f"ServerAssignor {name} is not supported. Supported assignors: {', '.join(supported)}.",
        )


def _require(is_so: object, otherwise: str) -> None:
    if not is_so:
        raise KafkaError(ErrorCode.INVALID_REQUEST, otherwise)
