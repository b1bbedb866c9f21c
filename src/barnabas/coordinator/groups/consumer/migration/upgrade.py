"""From a classic group to a consumer group."""

import logging
from collections.abc import Iterator
from typing import Final, NamedTuple

from barnabas.coordinator.decision import DecisionBuilder
from barnabas.coordinator.groups.assignors.model import Assignment
from barnabas.coordinator.groups.classic.group import CONSUMER, ClassicGroup, ClassicState
from barnabas.coordinator.groups.classic.member import ClassicMember, JoinOptions
from barnabas.coordinator.groups.consumer import records, sessions
from barnabas.coordinator.groups.consumer.embedded_protocol import (
    by_topic_id,
    read_assignment,
    read_subscription,
)
from barnabas.coordinator.groups.consumer.group import ConsumerGroup, Subscriptions
from barnabas.coordinator.groups.consumer.member import ConsumerMember, OwnedPartitions
from barnabas.coordinator.groups.consumer.topics import metadata_hash
from barnabas.coordinator.groups.context import GroupContext
from barnabas.coordinator.records import CoordinatorRecord
from barnabas.metadata.image import MetadataImage
from barnabas.wire.errors import ErrorCode, KafkaError, ProtocolViolation
from barnabas.wire.messages.consumer_protocol import ConsumerProtocolSubscription
from barnabas.wire.messages.group_records import ClassicMemberMetadata, ClassicProtocol

POLICIES: Final = frozenset({"upgrade", "bidirectional"})
"""The policies that allow it."""

log = logging.getLogger(__name__)


def upgrade(
    classic: ClassicGroup, decision: DecisionBuilder, context: GroupContext
) -> ConsumerGroup:
    """Returns the consumer group that a classic group becomes when the decision is replayed.

    Members that wait in the classic group get REBALANCE_IN_PROGRESS as its tombstone is replayed.
    They keep their partitions until they join again.
    """
    group = ConsumerGroup(classic.group_id, Subscriptions())
    if classic.is_empty:
        decision.records += classic.tombstones()
        return group
    _check_upgrade(classic, context)
    group.epoch = group.assignment_epoch = max(classic.generation, 1)
    try:
        for member in _to_members(classic, group.epoch, context.image):
            group.put_member(member)
            group.targets[member.member_id] = _assignment_of(member)
    except ProtocolViolation as violation:
        log.info("[GroupId %s] %s", classic.group_id, violation)
        raise _not_upgradable(classic, "the embedded consumer protocol is malformed") from violation
    if _is_stable(classic, group, context.image):
        group.metadata_hash = metadata_hash(group.subscribed_topics, context.image)
    # Else the topics look new, and are assigned again: the classic rebalance is abandoned.
    decision.records += [*classic.tombstones(), *_records_of(group)]
    for member in group.members.values():
        decision.effects.append(sessions.session_timer(group.group_id, member, context))
    decision.log(_log_converted, group.group_id, len(group.members))
    return group


def _log_converted(group_id: str, member_count: int) -> None:
    log.info(
        "[GroupId %s] Converted the classic group to a consumer group with %d classic members.",
        group_id,
        member_count,
    )


def _check_upgrade(classic: ClassicGroup, context: GroupContext) -> None:
    policy = context.settings.broker("group.consumer.migration.policy")
    if policy.lower() not in POLICIES:
        raise _not_upgradable(classic, "online upgrade is disabled")
    if classic.protocol_type != CONSUMER:
        raise _not_upgradable(classic, "the group does not use the consumer embedded protocol")
    if len(classic.members) > context.settings.broker("group.consumer.max.size"):
        raise _not_upgradable(classic, "the group size exceeds the consumer group maximum size")


def _is_stable(classic: ClassicGroup, group: ConsumerGroup, image: MetadataImage) -> bool:
    """Whether no new assignment is needed: there is no rebalance under way or to come, and every
    partition of the topics has an owner."""
    topics = [image.topics.by_name(name) for name in group.subscribed_topics]
    return (
        classic.state is ClassicState.STABLE
        and not classic.needs_rebalance
        and all(
            topic is None or topic.partitions.keys() <= group.owners.get(topic.topic_id, {}).keys()
            for topic in topics
        )
    )


def _not_upgradable(classic: ClassicGroup, reason: str) -> KafkaError:
    log.info(
        "Cannot upgrade classic group %s to consumer group because %s.", classic.group_id, reason
    )
    return KafkaError(
        ErrorCode.GROUP_ID_NOT_FOUND,
        f"Cannot upgrade classic group {classic.group_id} to consumer group because {reason}.",
    )


def _to_members(
    classic: ClassicGroup, epoch: int, image: MetadataImage
) -> Iterator[ConsumerMember]:
    """Yields all members as members of the consumer group."""
    subscriptions = {
        member_id: read_subscription(_metadata_of(classic, member))
        for member_id, member in classic.members.items()
    }
    claims = [
        claim
        for member_id, member in classic.members.items()
        for claim in _claims_of(classic, member, subscriptions[member_id], image)
    ]
    owned = _resolve(claims, epoch)
    for member_id, member in classic.members.items():
        yield _to_member(member, subscriptions[member_id], owned.get(member_id, {}), epoch)


def _metadata_of(classic: ClassicGroup, member: ClassicMember) -> bytes:
    """A member that is just joining may not support the protocol of the last generation."""
    first = next(iter(member.protocols.values()))
    return member.protocols.get(classic.protocol or "", first)


class _Claim(NamedTuple):
    """Partitions that a member owns, or may own."""

    generation: int
    """The generation in which it was assigned them."""
    member_id: str
    partitions: Assignment


def _claims_of(
    classic: ClassicGroup,
    member: ClassicMember,
    subscription: ConsumerProtocolSubscription,
    image: MetadataImage,
) -> Iterator[_Claim]:
    """Yields what a member was assigned, and what it owned when it joined: a cooperative member
    consumes that until it gets its assignment, and then joins once more."""
    assignment = read_assignment(member.assignment)
    if assignment.user_data:
        raise _not_upgradable(
            classic,
            "an unsupported custom assignor is in use. Please refer to the documentation or "
            "switch to a default assignor before re-attempting the upgrade",
        )
    assigned = by_topic_id(assignment.assigned_partitions, image)
    yield _Claim(classic.generation, member.member_id, assigned)
    owned = by_topic_id(subscription.owned_partitions, image)
    yield _Claim(subscription.generation_id, member.member_id, owned)


def _resolve(claims: list[_Claim], epoch: int) -> dict[str, OwnedPartitions]:
    """Returns the owner of each partition: of those who claim it, the one that got it last."""
    taken: set[tuple[bytes, int]] = set()
    owned: dict[str, OwnedPartitions] = {}
    for claim in sorted(claims, key=lambda claim: -claim.generation):
        for topic_id, partitions in claim.partitions.items():
            free = [index for index in partitions if (topic_id, index) not in taken]
            taken.update((topic_id, index) for index in free)
            if free:
                topics = owned.setdefault(claim.member_id, {})
                topics.setdefault(topic_id, {}).update(dict.fromkeys(free, epoch))
    return owned


def _to_member(
    member: ClassicMember,
    subscription: ConsumerProtocolSubscription,
    owned: OwnedPartitions,
    epoch: int,
) -> ConsumerMember:
    return ConsumerMember(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=subscription.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        subscribed_topic_names=frozenset(subscription.topics),
        classic=classic_metadata(member.join_options),
        member_epoch=epoch,
        previous_member_epoch=epoch,
        assigned=owned,
    )


def classic_metadata(options: JoinOptions) -> ClassicMemberMetadata:
    """Returns what a consumer group keeps of a member's JoinGroup."""
    return ClassicMemberMetadata(
        session_timeout_ms=options.session_timeout_ms,
        supported_protocols=[
            ClassicProtocol(name=name, metadata=metadata)
            for name, metadata in options.protocols.items()
        ],
    )


def _records_of(group: ConsumerGroup) -> list[CoordinatorRecord]:
    group_id, members = group.group_id, group.members.values()
    return [
        *(records.member(group_id, member) for member in members),
        records.group_epoch(group_id, group.epoch, group.metadata_hash),
        *(records.target_assignment(group_id, *target) for target in group.targets.items()),
        records.assignment_epoch(group_id, group.assignment_epoch, 0),
        *(records.current_assignment(group_id, member) for member in members),
    ]


def _assignment_of(member: ConsumerMember) -> Assignment:
    return {topic_id: frozenset(owned) for topic_id, owned in member.assigned.items()}
