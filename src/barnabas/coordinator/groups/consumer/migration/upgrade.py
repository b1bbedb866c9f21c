"""From a classic group to a consumer group."""

import logging
from typing import TYPE_CHECKING, Final, NamedTuple

from barnabas.coordinator.groups.assignors.model import Assignment
from barnabas.coordinator.groups.classic.group import CONSUMER, ClassicGroup
from barnabas.coordinator.groups.classic.member import ClassicMember, Terms
from barnabas.coordinator.groups.consumer import records, sessions
from barnabas.coordinator.groups.consumer.embedded import (
    by_topic_id,
    read_assignment,
    read_subscription,
)
from barnabas.coordinator.groups.consumer.group import ConsumerGroup
from barnabas.coordinator.groups.consumer.member import ConsumerMember, OwnedPartitions
from barnabas.coordinator.groups.consumer.topics import metadata_hash
from barnabas.coordinator.groups.subscriptions import Subscriptions
from barnabas.coordinator.records import CoordinatorRecord
from barnabas.metadata.image import Image
from barnabas.wire.errors import ErrorCode, KafkaError, ProtocolViolation
from barnabas.wire.messages.consumer_protocol import ConsumerProtocolSubscription
from barnabas.wire.messages.group_records import ClassicMemberMetadata, ClassicProtocol

if TYPE_CHECKING:
    from barnabas.coordinator.groups.state import Groups

POLICIES: Final = frozenset({"upgrade", "bidirectional"})
"""Those that allow for it."""

log = logging.getLogger(__name__)


def upgrade(
    groups: "Groups", classic: ClassicGroup, into: list[CoordinatorRecord]
) -> ConsumerGroup:
    """A draft of what a classic group becomes, and the records that make it so.

    Whoever waits in the classic group is told to join again as its tombstone is replayed. What
    members have stays theirs until they do.
    """
    group = ConsumerGroup(classic.group_id, Subscriptions())
    if classic.is_empty:
        into += classic.tombstones()
        return group
    _check_upgrade(groups, classic)
    group.epoch = group.assignment_epoch = max(classic.generation, 1)
    try:
        for member in _members_of(classic, group.epoch, groups.image):
            group.put_member(member)
            group.targets[member.member_id] = _assignment_of(member)
    except ProtocolViolation as violation:
        reason = f"the embedded consumer protocol is malformed: {violation}"
        raise _not_upgradable(classic, reason) from violation
    group.metadata_hash = metadata_hash(group.subscribed_topics, groups.image)
    into += [*classic.tombstones(), *_founding_records(group)]
    for member in group.members.values():
        assert member.classic is not None
        sessions.start_session(
            groups, group.group_id, member.member_id, member.classic.session_timeout_ms
        )
    log.info(
        "Group %s moves to the consumer protocol with %d classic members",
        group.group_id,
        len(group.members),
    )
    return group


def _check_upgrade(groups: "Groups", classic: ClassicGroup) -> None:
    policy = groups.settings.broker("group.consumer.migration.policy")
    if policy.lower() not in POLICIES:
        raise _not_upgradable(classic, "online upgrade is disabled")
    if classic.protocol_type != CONSUMER:
        raise _not_upgradable(classic, "the group does not use the consumer embedded protocol")
    if len(classic.members) > groups.settings.broker("group.consumer.max.size"):
        raise _not_upgradable(classic, "the group size exceeds the consumer group maximum size")


def _not_upgradable(classic: ClassicGroup, reason: str) -> KafkaError:
    return KafkaError(
        ErrorCode.GROUP_ID_NOT_FOUND,
        f"Cannot upgrade classic group {classic.group_id} to consumer group because {reason}.",
    )


def _members_of(classic: ClassicGroup, epoch: int, image: Image) -> list[ConsumerMember]:
    """All members as they are in a consumer group. Should two claim a partition, then the one
    that was given it last has it."""
    claims = [_claim_of(classic, member, image) for member in classic.members.values()]
    claims.sort(key=lambda claim: -claim.generation)
    taken: set[tuple[bytes, int]] = set()
    members = []
    for claim in claims:
        owned: OwnedPartitions = {}
        for topic_id, partitions in claim.partitions.items():
            free = [each for each in partitions if (topic_id, each) not in taken]
            taken.update((topic_id, each) for each in free)
            if free:
                owned[topic_id] = dict.fromkeys(free, epoch)
        members.append(_member_of(claim, owned, epoch))
    return members


class _Claim(NamedTuple):
    """What a classic member told its group, and has."""

    member: ClassicMember
    subscription: ConsumerProtocolSubscription
    partitions: Assignment
    generation: int
    """In which it was given them."""


def _claim_of(classic: ClassicGroup, member: ClassicMember, image: Image) -> _Claim:
    """What it was assigned; or, where a rebalance that was broken off left no assignment, what
    it said it has when it joined that: a cooperative member goes on consuming that."""
    protocol = classic.protocol if classic.protocol in member.protocols else None
    subscription = read_subscription(member.protocols[protocol or next(iter(member.protocols))])
    if not member.assignment:
        owned = by_topic_id(subscription.owned_partitions, image)
        return _Claim(member, subscription, owned, subscription.generation_id)
    assignment = read_assignment(member.assignment)
    if assignment.user_data:
        raise _not_upgradable(
            classic,
            "an unsupported custom assignor is in use. Please refer to the documentation or "
            "switch to a default assignor before re-attempting the upgrade",
        )
    assigned = by_topic_id(assignment.assigned_partitions, image)
    return _Claim(member, subscription, assigned, classic.generation)


def _member_of(claim: _Claim, owned: OwnedPartitions, epoch: int) -> ConsumerMember:
    member, subscription = claim.member, claim.subscription
    return ConsumerMember(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=subscription.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        subscribed_topic_names=frozenset(subscription.topics),
        classic=classic_metadata(member.terms),
        member_epoch=epoch,
        previous_member_epoch=epoch,
        assigned=owned,
    )


def classic_metadata(terms: Terms) -> ClassicMemberMetadata:
    """What a consumer group keeps of how a member joined by the classic protocol."""
    return ClassicMemberMetadata(
        session_timeout_ms=terms.session_timeout_ms,
        supported_protocols=[
            ClassicProtocol(name=name, metadata=metadata)
            for name, metadata in terms.protocols.items()
        ],
    )


def _founding_records(group: ConsumerGroup) -> list[CoordinatorRecord]:
    group_id, members = group.group_id, group.members.values()
    return [
        *(records.member(group_id, each) for each in members),
        records.group_epoch(group_id, group.epoch, group.metadata_hash),
        *(records.target_assignment(group_id, *target) for target in group.targets.items()),
        records.assignment_epoch(group_id, group.assignment_epoch, 0),
        *(records.current_assignment(group_id, each) for each in members),
    ]


def _assignment_of(member: ConsumerMember) -> Assignment:
    return {topic_id: frozenset(owned) for topic_id, owned in member.assigned.items()}
