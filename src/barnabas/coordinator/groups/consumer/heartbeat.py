"""ConsumerGroupHeartbeat (key 68): a member reports its partitions and gets its assignment.

Epoch 0 joins, -1 leaves, -2 is a static member that leaves temporarily; any other must be the
member's own. Fields that did not change since the last heartbeat are left out. From v1 on clients
generate the member ids, and may subscribe by regular expression.
"""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from barnabas.coordinator.decision import CoordinatorDecision, DecisionBuilder, log_line
from barnabas.coordinator.groups.classic.group import ClassicGroup
from barnabas.coordinator.groups.consumer import events, migration, records, sessions
from barnabas.coordinator.groups.consumer.group import ConsumerGroup, Subscriptions
from barnabas.coordinator.groups.consumer.member import (
    JOINING,
    LEAVING,
    LEAVING_TEMPORARILY,
    ConsumerMember,
    OwnedPartitions,
)
from barnabas.coordinator.groups.consumer.member_update import (
    has_nothing_to_do,
    update_member,
)
from barnabas.coordinator.groups.consumer.membership import (
    check_epoch,
    check_size,
    consumer_group,
    existing_member,
    joining_member,
)
from barnabas.coordinator.groups.consumer.target_assignment import supported_assignors
from barnabas.coordinator.groups.context import (
    GroupClient,
    GroupContext,
    GroupRequestContext,
    GroupSettings,
)
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.consumer_groups import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)

if TYPE_CHECKING:
    from barnabas.coordinator.groups.state import GroupCoordinatorState

FIRST_VERSION_WITH_CLIENT_IDS = 1


def heartbeat(
    request: ConsumerGroupHeartbeatRequest,
    groups: "GroupCoordinatorState",
    context: GroupRequestContext,
) -> CoordinatorDecision[ConsumerGroupHeartbeatResponse]:
    _check(request, context)
    group_id = request.group_id
    if request.member_epoch < 0:
        return leave(request, consumer_group(group_id, groups), context)
    decision = DecisionBuilder()
    group, old = _sender(request, decision, groups, context)
    new = _updated(old, request, context)
    member = update_member(old, new, request.topic_partitions, group, decision, groups, context)
    decision.effects.append(sessions.session_timer(group_id, member, context))
    response = ConsumerGroupHeartbeatResponse(
        member_id=member.member_id,
        member_epoch=member.member_epoch,
        heartbeat_interval_ms=context.settings.group(group_id)["consumer.heartbeat.interval.ms"],
    )
    if _is_full(request) or (member is not old and member.assigned != old.assigned):
        response.assignment = _assignment(member.assigned)
    return decision.build(response)


def refresh_session(
    group_id: str,
    member_id: str,
    member_epoch: int,
    instance_id: str | None,
    client: GroupClient,
    groups: "GroupCoordinatorState",
    settings: GroupSettings,
) -> int | None:
    """Does what a heartbeat does that reports nothing and changes nothing, without a request.

    Returns the heartbeat interval in milliseconds, which is in its response. Returns None, and does
    nothing, if there is anything else to do: `heartbeat` finds the response.
    """
    group = groups.by_id.get(group_id)
    if not isinstance(group, ConsumerGroup) or not group_id.strip() or not member_id.strip():
        return None
    member = group.members.get(member_id)
    if (
        member is None
        or member_epoch <= JOINING
        or member.member_epoch != member_epoch
        or member.classic is not None
        or member.client_id != client.client_id
        or member.client_host != client.host
        or not has_nothing_to_do(group, member)
    ):
        return None
    if instance_id is not None and (
        instance_id != member.instance_id
        or group.static_members.get(instance_id) != member_id
        or not instance_id.strip()
    ):
        return None
    config = settings.group(group_id)
    key = sessions.session_key(group.group_id, member)
    if not groups.timers.restart(key, config["consumer.session.timeout.ms"]):
        return None
    interval_ms: int = config["consumer.heartbeat.interval.ms"]
    return interval_ms


def _sender(
    request: ConsumerGroupHeartbeatRequest,
    decision: DecisionBuilder,
    groups: "GroupCoordinatorState",
    context: GroupRequestContext,
) -> tuple[ConsumerGroup, ConsumerMember]:
    """Returns the member that sends the request and its group, before the request."""
    member_id, instance_id = request.member_id, request.instance_id
    if request.member_epoch != JOINING:
        if request.group_id not in groups.by_id:
            raise KafkaError(
                ErrorCode.GROUP_ID_NOT_FOUND, f"Consumer group {request.group_id} not found."
            )
        group = consumer_group(request.group_id, groups)
        member = existing_member(group, member_id, instance_id)
        check_epoch(member, request.member_epoch, request.topic_partitions)
        return group, member
    group = _group_to_join(request.group_id, decision, groups, context)
    check_size(group, member_id, context)
    member_id = member_id or context.new_member_id()
    return group, joining_member(group, member_id, instance_id, decision)


def _group_to_join(
    group_id: str,
    decision: DecisionBuilder,
    groups: "GroupCoordinatorState",
    context: GroupRequestContext,
) -> ConsumerGroup:
    group = groups.by_id.get(group_id)
    if group is None:
        return ConsumerGroup(group_id, Subscriptions())
    if isinstance(group, ClassicGroup):
        return migration.upgrade(group, decision, context)
    return consumer_group(group_id, groups)


def _updated(
    member: ConsumerMember, request: ConsumerGroupHeartbeatRequest, context: GroupRequestContext
) -> ConsumerMember:
    """Returns the member as the heartbeat describes it; the same object if nothing changed."""
    client = context.client
    changes: dict[str, Any] = {}
    if client.client_id != member.client_id:
        changes["client_id"] = client.client_id
    if client.host != member.client_host:
        changes["client_host"] = client.host
    if request.instance_id is not None and request.instance_id != member.instance_id:
        changes["instance_id"] = request.instance_id
    if request.rack_id is not None:
        changes["rack_id"] = request.rack_id
    if request.rebalance_timeout_ms != -1:
        changes["rebalance_timeout_ms"] = request.rebalance_timeout_ms
    if request.server_assignor is not None:
        changes["server_assignor"] = request.server_assignor
    if request.subscribed_topic_names is not None:
        changes["subscribed_topic_names"] = frozenset(request.subscribed_topic_names)
    if request.subscribed_topic_regex is not None:
        changes["subscribed_topic_regex"] = request.subscribed_topic_regex
    if member.classic is not None:
        changes["classic"] = None
    if not changes:
        return member
    updated = replace(member, **changes)
    return member if updated == member else updated


def _is_full(request: ConsumerGroupHeartbeatRequest) -> bool:
    """Whether the member sends all fields: then the response has the whole assignment as well."""
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


def _check(request: ConsumerGroupHeartbeatRequest, context: GroupRequestContext) -> None:
    """Raises KafkaError if the request is not valid by itself."""
    epoch, api_version = request.member_epoch, context.client.api_version
    if api_version >= FIRST_VERSION_WITH_CLIENT_IDS or epoch > 0 or epoch == LEAVING:
        _require(request.member_id.strip(), "MemberId can't be empty.")
    _require(request.group_id.strip(), "GroupId can't be empty.")
    _require(
        request.instance_id is None or request.instance_id.strip(), "InstanceId can't be empty."
    )
    _require(request.rack_id is None or request.rack_id.strip(), "RackId can't be empty.")
    if epoch == JOINING:
        _check_join(request)
    elif epoch == LEAVING_TEMPORARILY:
        _require(request.instance_id is not None, "InstanceId can't be null.")
    else:
        _require(epoch >= LEAVING, "MemberEpoch is invalid.")
    if request.server_assignor is not None:
        _check_assignor(request.server_assignor, context)


def _check_join(request: ConsumerGroupHeartbeatRequest) -> None:
    _require(
        request.rebalance_timeout_ms != -1, "RebalanceTimeoutMs must be provided in first request."
    )
    _require(request.topic_partitions == [], "TopicPartitions must be empty when (re-)joining.")
    _require(
        request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None,
        "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.",
    )


def _check_assignor(name: str, context: GroupRequestContext) -> None:
    supported = supported_assignors(context)
    if name not in supported:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            f"ServerAssignor {name} is not supported. Supported assignors: {', '.join(supported)}.",
        )


def _require(condition: object, message: str) -> None:
    if not condition:
        raise KafkaError(ErrorCode.INVALID_REQUEST, message)


def leave(
    request: ConsumerGroupHeartbeatRequest, group: ConsumerGroup, context: GroupContext
) -> CoordinatorDecision[ConsumerGroupHeartbeatResponse]:
    epoch = request.member_epoch
    member = existing_member(group, request.member_id, request.instance_id)
    response = ConsumerGroupHeartbeatResponse(member_id=request.member_id, member_epoch=epoch)
    if epoch == LEAVING_TEMPORARILY:
        left = log_line(events.member_left_temporarily, group.group_id, member)
        record = records.current_assignment(group.group_id, _left_temporarily(member))
        return CoordinatorDecision([record], response, [left])
    left = log_line(events.member_left, group.group_id, member)
    reason = f"member {member.member_id} left"
    return sessions.fence([member], group, reason, response, context, left)


def _left_temporarily(member: ConsumerMember) -> ConsumerMember:
    """It keeps its partitions. The member that replaces it may commit with any epoch."""
    return replace(
        member,
        member_epoch=LEAVING_TEMPORARILY,
        assigned={
            topic_id: dict.fromkeys(partitions, 0)
            for topic_id, partitions in member.assigned.items()
        },
        pending_revocation={},
    )
