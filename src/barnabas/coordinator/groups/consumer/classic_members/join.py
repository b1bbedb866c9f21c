"""JoinGroup (key 11) to a consumer group: the member takes a step, and is answered at once.

v4 a dynamic member is told its id first (KIP-394); v5 static members (KIP-345).
"""

from dataclasses import replace
from typing import TYPE_CHECKING

from barnabas.coordinator.decision import Decision
from barnabas.coordinator.groups.classic.group import CONSUMER
from barnabas.coordinator.groups.classic.join import (
    FIRST_VERSION_WITH_NULL_PROTOCOL,
    FIRST_VERSION_WITH_REQUIRED_IDS,
    check_request,
)
from barnabas.coordinator.groups.classic.member import Terms, terms_of
from barnabas.coordinator.groups.context import GroupClient
from barnabas.coordinator.groups.consumer import migration
from barnabas.coordinator.groups.consumer.member_update import advance
from barnabas.coordinator.groups.consumer.classic_members import timeouts
from barnabas.coordinator.groups.consumer.embedded_protocol import by_topic_id, read_subscription
from barnabas.coordinator.groups.consumer.group import ConsumerGroup
from barnabas.coordinator.groups.consumer.heartbeat import known_group
from barnabas.coordinator.groups.consumer.membership import joining_member, known_member
from barnabas.coordinator.groups.consumer.member import ConsumerMember
from barnabas.coordinator.records import CoordinatorRecord
from barnabas.wire.errors import ErrorCode, KafkaError, ProtocolViolation
from barnabas.wire.messages.consumer_group_heartbeat import TopicPartitions
from barnabas.wire.messages.consumer_protocol import ConsumerProtocolSubscription
from barnabas.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
from barnabas.wire.uuid import random_uuid, to_text

if TYPE_CHECKING:
    from barnabas.coordinator.groups.state import GroupCoordinatorState


def join(
    groups: "GroupCoordinatorState", request: JoinGroupRequest, client: GroupClient
) -> Decision[JoinGroupResponse]:
    told_id = request.member_id
    try:
        check_request(groups, request)
        told_id = ""
        return _join(groups, known_group(groups, request.group_id), request, client)
    except KafkaError as error:
        return Decision(_not_joined(error.code, told_id, client))


def _join(
    groups: "GroupCoordinatorState", group: ConsumerGroup, request: JoinGroupRequest, client: GroupClient
) -> Decision[JoinGroupResponse]:
    terms = terms_of(request, client.api_version)
    _check_welcome(groups, group, request, terms)
    instance_id = request.group_instance_id
    member_id = request.member_id or to_text(random_uuid())
    if not request.member_id and instance_id is None:
        if client.api_version >= FIRST_VERSION_WITH_REQUIRED_IDS:
            return Decision(_not_joined(ErrorCode.MEMBER_ID_REQUIRED, member_id, client))
    elif request.member_id and instance_id is not None:
        known_member(group, member_id, instance_id)
    subscription = _subscription(group, terms)
    into: list[CoordinatorRecord] = []
    old = joining_member(group, member_id, instance_id, into, uses_classic_protocol=True)
    new = _as_it_joins(old, instance_id, terms, subscription, client)
    former = group.static_member(instance_id)
    if former is not None:
        answer = _joined(new.member_id, group.epoch, terms)
        moved = migration.downgrade_by_replacing(groups, group, former, new, answer)
        if moved is not None:
            return moved
    owned = by_topic_id(subscription.owned_partitions, groups.image)
    reported = [TopicPartitions(topic_id=each, partitions=list(owned[each])) for each in owned]
    member = advance(groups, group, old, new, reported, into)
    timeouts.await_sync(groups, group, member)

    def look_at_topics_again(_: KafkaError) -> None:
        group.has_new_topics = True

    response = _joined(member.member_id, member.member_epoch, terms)
    return Decision(response, into, refused=look_at_topics_again)


def _check_welcome(
    groups: "GroupCoordinatorState", group: ConsumerGroup, request: JoinGroupRequest, terms: Terms
) -> None:
    """KafkaError unless somebody can join by the classic protocol with these terms."""
    if groups.settings.broker("group.consumer.migration.policy").lower() == "disabled":
        raise KafkaError(
            ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
            f"Group {group.group_id} has members of the consumer protocol: use that, for "
            "group.consumer.migration.policy keeps classic members out.",
        )
    limit = groups.settings.broker("group.consumer.max.size")
    if len(group.members) >= limit and request.member_id not in group.members:
        raise KafkaError(
            ErrorCode.GROUP_MAX_SIZE_REACHED,
            f"Group {group.group_id} is full: it may have {limit} members.",
        )
    everybody = group.classic_member_count
    if request.protocol_type != CONSUMER or not any(
        group.classic_protocols.get(name, 0) == everybody for name in terms.protocols
    ):
        raise KafkaError(
            ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
            f"{request.protocol_type!r} {list(terms.protocols)} has nothing in common with what "
            f"the classic members of group {group.group_id} offer.",
        )


def _subscription(group: ConsumerGroup, terms: Terms) -> ConsumerProtocolSubscription:
    """What the member subscribes to: it says the same under each of its protocols."""
    try:
        return read_subscription(next(iter(terms.protocols.values())))
    except ProtocolViolation as violation:
        raise KafkaError(
            ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
            f"A subscription to group {group.group_id} cannot be read: {violation}",
        ) from violation


def _as_it_joins(
    member: ConsumerMember,
    instance_id: str | None,
    terms: Terms,
    subscription: ConsumerProtocolSubscription,
    client: GroupClient,
) -> ConsumerMember:
    return replace(
        member,
        instance_id=member.instance_id if instance_id is None else instance_id,
        rack_id=member.rack_id if subscription.rack_id is None else subscription.rack_id,
        client_id=client.client_id,
        client_host=client.host,
        rebalance_timeout_ms=terms.rebalance_timeout_ms,
        subscribed_topic_names=frozenset(subscription.topics),
        subscribed_topic_regex="",
        classic=migration.classic_metadata(terms),
    )


def _joined(member_id: str, generation: int, terms: Terms) -> JoinGroupResponse:
    return JoinGroupResponse(
        generation_id=generation,
        protocol_type=CONSUMER,
        protocol_name=next(iter(terms.protocols)),
        member_id=member_id,
    )


def _not_joined(code: ErrorCode, member_id: str, client: GroupClient) -> JoinGroupResponse:
    protocol_name = None if client.api_version >= FIRST_VERSION_WITH_NULL_PROTOCOL else ""
    return JoinGroupResponse(error_code=code, member_id=member_id, protocol_name=protocol_name)
