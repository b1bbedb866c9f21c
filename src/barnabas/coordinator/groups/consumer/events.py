"""The log lines of consumer groups, in the words of Kafka's coordinator.

Each line says what changed and why, and is an effect of the decision: it is logged once the change
is committed. Heartbeats that change nothing are not logged, and a line lists a few partitions at
most.
"""

import logging
from collections.abc import Iterator
from itertools import islice

from barnabas.coordinator.groups.assignors.model import Assignment
from barnabas.coordinator.groups.consumer.member import ConsumerMember, OwnedPartitions
from barnabas.metadata.image import MetadataImage
from barnabas.wire.uuid import to_text

MAX_LISTED = 10
"""The number of topics or partitions that one line lists; it counts the others."""

log = logging.getLogger(__name__)


def member_joined(group_id: str, member: ConsumerMember) -> None:
    client = f"client id {member.client_id} at " if member.client_id else ""
    log.info(
        "[GroupId %s] %s joins the consumer group using the %s protocol (%s%s).",
        group_id,
        _name(member),
        "classic" if member.uses_classic_protocol else "consumer",
        client,
        member.client_host.removeprefix("/"),
    )


def member_replaced(group_id: str, predecessor: ConsumerMember, member_id: str) -> None:
    log.info(
        "[GroupId %s] Static member with instance id %s re-joins the consumer group. "
        "Created a new member %s to replace the existing member %s.",
        group_id,
        predecessor.instance_id,
        member_id,
        predecessor.member_id,
    )


def member_left(group_id: str, member: ConsumerMember) -> None:
    log.info("[GroupId %s] %s left the consumer group.", group_id, _name(member))


def member_left_temporarily(group_id: str, member: ConsumerMember) -> None:
    log.info("[GroupId %s] %s temporarily left the consumer group.", group_id, _name(member))


def member_fenced(group_id: str, member_id: str, reason: str) -> None:
    log.info(
        "[GroupId %s] Member %s fenced from the group because %s.", group_id, member_id, reason
    )


def epoch_bumped(group_id: str, epoch: int, reason: str) -> None:
    log.info("[GroupId %s] Bumped group epoch to %d (reason: %s).", group_id, epoch, reason)


def target_computed(
    group_id: str, epoch: int, assignor: str, assignments: dict[str, Assignment]
) -> None:
    log.info(
        "[GroupId %s] Computed a new target assignment for epoch %d with '%s' assignor: "
        "%d partitions for %d members.",
        group_id,
        epoch,
        assignor,
        sum(len(partitions) for each in assignments.values() for partitions in each.values()),
        len(assignments),
    )


def assignment_changed(group_id: str, member: ConsumerMember, assigned: str, revoked: str) -> None:
    """`assigned` and `revoked` are what `listed` returns for the partitions of the member."""
    log.info(
        "[GroupId %s] Member %s new assignment state: epoch=%d, previousEpoch=%d, state=%s, "
        "assignedPartitions=[%s] and revokedPartitions=[%s].",
        group_id,
        member.member_id,
        member.member_epoch,
        member.previous_member_epoch,
        member.state.name,
        assigned,
        revoked,
    )


def group_emptied(group_id: str, epoch: int) -> None:
    log.info("[GroupId %s] The group with epoch %d is now empty.", group_id, epoch)


def listed(owned: OwnedPartitions, image: MetadataImage) -> str:
    count = sum(map(len, owned.values()))
    names = ", ".join(islice(_names(owned, image), MAX_LISTED))
    return names if count <= MAX_LISTED else f"{names} and {count - MAX_LISTED} more"


def _name(member: ConsumerMember) -> str:
    if member.instance_id is None:
        return f"Member {member.member_id}"
    return f"Static member {member.member_id} with instance id {member.instance_id}"


def _names(owned: OwnedPartitions, image: MetadataImage) -> Iterator[str]:
    for topic_id, partitions in owned.items():
        topic = image.topics.by_id(topic_id)
        name = topic.name if topic is not None else f"a deleted topic ({to_text(topic_id)})"
        for partition in sorted(partitions):
            yield f"{name}-{partition}"
