"""JoinGroup (key 11) to a consumer group: the member takes a step, and gets its response at once.

v4 a dynamic member gets its id first (KIP-394); v5 static members (KIP-345).
"""

from dataclasses import replace
from typing import TYPE_CHECKING

from barnabas.coordinator.decision import CoordinatorDecision, DecisionBuilder
from barnabas.coordinator.groups.classic.group import CONSUMER
from barnabas.coordinator.groups.classic.join import (
    FIRST_VERSION_WITH_NULL_PROTOCOL,
    FIRST_VERSION_WITH_REQUIRED_IDS,
    check_request,
)
from barnabas.coordinator.groups.classic.member import JoinOptions, join_options_of
from barnabas.coordinator.groups.consumer import migration
from barnabas.coordinator.groups.consumer.classic_members.timeouts import on_joined
from barnabas.coordinator.groups.consumer.embedded_protocol import by_topic_id, read_subscription
from barnabas.coordinator.groups.consumer.group import ConsumerGroup
from barnabas.coordinator.groups.consumer.member import ConsumerMember
from barnabas.coordinator.groups.consumer.member_update import update_member
from barnabas.coordinator.groups.consumer.membership import (
    check_size,
    consumer_group,
    existing_member,
    joining_member,
)
from barnabas.coordinator.groups.context import GroupRequestContext
from barnabas.wire.errors import ErrorCode, KafkaError, ProtocolViolation
from barnabas.wire.messages.classic_groups import JoinGroupRequest, JoinGroupResponse
from barnabas.wire.messages.consumer_groups import TopicPartitions
from barnabas.wire.messages.consumer_protocol import ConsumerProtocolSubscription

if TYPE_CHECKING:
    from barnabas.coordinator.groups.state import GroupCoordinatorState


def join(
    request: JoinGroupRequest, groups: "GroupCoordinatorState", context: GroupRequestContext
) -> CoordinatorDecision[JoinGroupResponse]:
    error_member_id = request.member_id
    try:
        check_request(request, context)
        error_member_id = ""
        return _join(request, consumer_group(request.group_id, groups), groups, context)
    except KafkaError as error:
        return CoordinatorDecision((), _join_error(error.code, error_member_id, context))


def _join(
    request: JoinGroupRequest,
    group: ConsumerGroup,
    groups: "GroupCoordinatorState",
    context: GroupRequestContext,
) -> CoordinatorDecision[JoinGroupResponse]:
    api_version = context.client.api_version
    options = join_options_of(request, api_version)
    _check_may_join(request, options, group, context)
    instance_id = request.group_instance_id
    member_id = request.member_id or context.new_member_id()
    if not request.member_id and instance_id is None:
        if api_version >= FIRST_VERSION_WITH_REQUIRED_IDS:
            response = _join_error(ErrorCode.MEMBER_ID_REQUIRED, member_id, context)
            return CoordinatorDecision((), response)
    elif request.member_id and instance_id is not None:
        existing_member(group, member_id, instance_id)
    subscription = _subscription(options, group)
    decision = DecisionBuilder()
    old = joining_member(group, member_id, instance_id, decision, uses_classic_protocol=True)
    new = _updated(old, instance_id, options, subscription, context)
    former = group.static_member(instance_id)
    if former is not None:
        response = _join_response(new.member_id, group.epoch, options)
        downgrade = migration.downgrade_by_replacement(former, new, group, response, context)
        if downgrade is not None:
            return downgrade
    owned = by_topic_id(subscription.owned_partitions, context.image)
    reported = [
        TopicPartitions(topic_id=topic_id, partitions=list(partitions))
        for topic_id, partitions in owned.items()
    ]
    member = update_member(old, new, reported, group, decision, groups, context)
    decision.effects += on_joined(group, member, context)
    return decision.build(_join_response(member.member_id, member.member_epoch, options))


def _check_may_join(
    request: JoinGroupRequest,
    options: JoinOptions,
    group: ConsumerGroup,
    context: GroupRequestContext,
) -> None:
    """Raises KafkaError if the member cannot join by the classic protocol."""
    if context.settings.broker("group.consumer.migration.policy").lower() == "disabled":
        raise KafkaError(
            ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
            f"Group {group.group_id} has members of the consumer protocol: use that, for "
            "group.consumer.migration.policy keeps classic members out.",
        )
    check_size(group, request.member_id, context)
    if request.protocol_type != CONSUMER or not any(
        group.classic_protocols.get(name, 0) == group.classic_member_count
        for name in options.protocols
    ):
        raise KafkaError(
            ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
            f"{request.protocol_type!r} {list(options.protocols)} has nothing in common with what "
            f"the classic members of group {group.group_id} offer.",
        )


def _subscription(options: JoinOptions, group: ConsumerGroup) -> ConsumerProtocolSubscription:
    """Returns the member's subscription, which is the same under each of its protocols."""
    try:
        return read_subscription(next(iter(options.protocols.values())))
    except ProtocolViolation as violation:
        raise KafkaError(
            ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
            f"A subscription to group {group.group_id} cannot be read: {violation}",
        ) from violation


def _updated(
    member: ConsumerMember,
    instance_id: str | None,
    options: JoinOptions,
    subscription: ConsumerProtocolSubscription,
    context: GroupRequestContext,
) -> ConsumerMember:
    return replace(
        member,
        instance_id=member.instance_id if instance_id is None else instance_id,
        rack_id=member.rack_id if subscription.rack_id is None else subscription.rack_id,
        client_id=context.client.client_id,
        client_host=context.client.host,
        rebalance_timeout_ms=options.rebalance_timeout_ms,
        subscribed_topic_names=frozenset(subscription.topics),
        subscribed_topic_regex="",
        classic=migration.classic_metadata(options),
    )


def _join_response(member_id: str, generation: int, options: JoinOptions) -> JoinGroupResponse:
    return JoinGroupResponse(
        generation_id=generation,
        protocol_type=CONSUMER,
        protocol_name=next(iter(options.protocols)),
        member_id=member_id,
    )


def _join_error(code: ErrorCode, member_id: str, context: GroupRequestContext) -> JoinGroupResponse:
    has_null = context.client.api_version >= FIRST_VERSION_WITH_NULL_PROTOCOL
    return JoinGroupResponse(
        error_code=code, member_id=member_id, protocol_name=None if has_null else ""
    )
