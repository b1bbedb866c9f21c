"""From a classic group to a consumer group."""

import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from barnabas.coordinator.groups.assignors.model import Assignment
from barnabas.coordinator.groups.classic.group import CONSUMER, ClassicGroup, ClassicState
from barnabas.coordinator.groups.classic.member import ClassicMember, Terms
from barnabas.coordinator.groups.consumer import records, sessions
from barnabas.coordinator.groups.consumer.embedded_protocol import (
    by_topic_id,
    read_assignment,
    read_subscription,
)
from barnabas.coordinator.groups.consumer.group import ConsumerGroup
from barnabas.coordinator.groups.consumer.member import ConsumerMember, OwnedPartitions
from barnabas.coordinator.groups.consumer.topics import metadata_hash
from barnabas.coordinator.groups.consumer.group import Subscriptions
from barnabas.coordinator.records import CoordinatorRecord
from barnabas.metadata.image import MetadataImage
from barnabas.wire.errors import ErrorCode, KafkaError, ProtocolViolation
from barnabas.wire.messages.consumer_protocol import ConsumerProtocolSubscription
from barnabas.wire.messages.group_records import ClassicMemberMetadata, ClassicProtocol

if TYPE_CHECKING:
    from barnabas.coordinator.groups.state import GroupCoordinatorState

POLICIES: Final = frozenset({"upgrade", "bidirectional"})
"""Those that allow for it."""

log = logging.getLogger(__name__)


def upgrade(
    groups: "GroupCoordinatorState", classic: ClassicGroup, into: list[CoordinatorRecord]
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
    if _is_settled(classic, group, groups.image):
        group.metadata_hash = metadata_hash(group.subscribed_topics, groups.image)
    # Else the topics look new, and are assigned anew: nobody goes on with the rebalance.
    into += [*classic.tombstones(), *_founding_records(group)]
    for member in group.members.values():
        assert member.classic is not None
        sessions.start_session(
            groups, group.group_id, member.member_id, member.classic.session_timeout_ms
        )
    log.info(
        "group %s: moves to the consumer protocol with %d classic members",
        group.group_id,
        len(group.members),
    )
    return group


def _check_upgrade(groups: "GroupCoordinatorState", classic: ClassicGroup) -> None:
    policy = groups.settings.broker("group.consumer.migration.policy")
    if policy.lower() not in POLICIES:
        raise _not_upgradable(classic, "online upgrade is disabled")
    if classic.protocol_type != CONSUMER:
        raise _not_upgradable(classic, "the group does not use the consumer embedded protocol")
    if len(classic.members) > groups.settings.broker("group.consumer.max.size"):
        raise _not_upgradable(classic, "the group size exceeds the consumer group maximum size")


def _is_settled(classic: ClassicGroup, group: ConsumerGroup, image: MetadataImage) -> bool:
    """Whether nothing has to be assigned that is not: no rebalance is under way or was due, and
    the topics have no partition that nobody has."""
    topics = [image.topics.by_name(name) for name in group.subscribed_topics]
    return (
        classic.state is ClassicState.STABLE
        and not classic.is_to_rebalance
        and all(
            topic is None or topic.partitions.keys() <= group.owners.get(topic.topic_id, {}).keys()
            for topic in topics
        )
    )


def _not_upgradable(classic: ClassicGroup, reason: str) -> KafkaError:
    log.info("group %s: stays with the classic protocol: %s", classic.group_id, reason)
    return KafkaError(
        ErrorCode.GROUP_ID_NOT_FOUND,
        f"Cannot upgrade classic group {classic.group_id} to consumer group because {reason}.",
    )


def _members_of(classic: ClassicGroup, epoch: int, image: MetadataImage) -> Iterator[ConsumerMember]:
    """All members as they are in a consumer group."""
    told = {
        member_id: read_subscription(_metadata_of(classic, member))
        for member_id, member in classic.members.items()
    }
    claims = [
        claim
        for member_id, member in classic.members.items()
        for claim in _claims_of(classic, member, told[member_id], image)
    ]
    owned = _settled(claims, epoch)
    for member_id, member in classic.members.items():
        yield _member_of(member, told[member_id], owned.get(member_id, {}), epoch)


def _metadata_of(classic: ClassicGroup, member: ClassicMember) -> bytes:
    """A member that joins just now need not offer what the group chose for the last generation."""
    first = next(iter(member.protocols.values()))
    return member.protocols.get(classic.protocol or "", first)


class _Claim(NamedTuple):
    """Partitions that a member has, or may have."""

    generation: int
    """In which it was given them."""
    member_id: str
    partitions: Assignment


def _claims_of(
    classic: ClassicGroup,
    member: ClassicMember,
    told: ConsumerProtocolSubscription,
    image: MetadataImage,
) -> Iterator[_Claim]:
    """What a member was assigned, and what it had when it joined: a cooperative member goes on
    with that until it hears of its assignment, and then joins once more."""
    assignment = read_assignment(member.assignment)
    if assignment.user_data:
        raise _not_upgradable(
            classic,
            "an unsupported custom assignor is in use. Please refer to the documentation or "
            "switch to a default assignor before re-attempting the upgrade",
        )
    assigned = by_topic_id(assignment.assigned_partitions, image)
    yield _Claim(classic.generation, member.member_id, assigned)
    yield _Claim(told.generation_id, member.member_id, by_topic_id(told.owned_partitions, image))


def _settled(claims: list[_Claim], epoch: int) -> dict[str, OwnedPartitions]:
    """Who has what: of those who claim a partition, the one that was given it last."""
    taken: set[tuple[bytes, int]] = set()
    owned: dict[str, OwnedPartitions] = {}
    for claim in sorted(claims, key=lambda claim: -claim.generation):
        for topic_id, partitions in claim.partitions.items():
            free = [each for each in partitions if (topic_id, each) not in taken]
            taken.update((topic_id, each) for each in free)
            if free:
                topics = owned.setdefault(claim.member_id, {})
                topics.setdefault(topic_id, {}).update(dict.fromkeys(free, epoch))
    return owned


def _member_of(
    member: ClassicMember, told: ConsumerProtocolSubscription, owned: OwnedPartitions, epoch: int
) -> ConsumerMember:
    return ConsumerMember(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=told.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        subscribed_topic_names=frozenset(told.topics),
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
