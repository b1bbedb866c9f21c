"""What members may keep of what they had: where every sticky assignment begins."""

from dataclasses import dataclass

from barnabas.coordinator.groups.assignors.model import (
    Assignment,
    Assignments,
    MemberSubscription,
    Subscribers,
)


@dataclass(slots=True, frozen=True)
class Retention:
    """A division of all partitions: those that stay where they are, and those to hand out."""

    kept: Assignments
    free: dict[bytes, list[int]]
    """Ascending, by topic; no topic without any."""


def retain(subscribers: Subscribers) -> Retention:
    """Members keep what they still subscribe to.

    The old assignment need not make sense: a group that moves over from the classic protocol
    brings what its members told each other. What does not exist is dropped, and of two who
    have the same partition the first by member id keeps it.
    """
    taken: dict[bytes, set[int]] = {topic_id: set() for topic_id in subscribers.topics}
    kept: Assignments = {}
    for member_id in sorted(subscribers.members):
        kept[member_id] = _keep(subscribers.members[member_id], subscribers, taken)
    wanted = frozenset[bytes]().union(*(each.topic_ids for each in subscribers.members.values()))
    free: dict[bytes, list[int]] = {}
    for topic_id in sorted(wanted & taken.keys()):
        everything = range(subscribers.topics[topic_id].partition_count)
        if len(taken[topic_id]) < len(everything):
            free[topic_id] = sorted(set(everything) - taken[topic_id])
    return Retention(kept, free)


def _keep(
    member: MemberSubscription, subscribers: Subscribers, taken: dict[bytes, set[int]]
) -> Assignment:
    """The member's old assignment itself, unless something of it has to go."""
    kept: Assignment = {}
    for topic_id, partitions in member.assigned.items():
        if topic_id not in member.topic_ids or topic_id not in taken:
            continue
        if not taken[topic_id].isdisjoint(partitions):
            partitions = partitions - taken[topic_id]
        partition_count = subscribers.topics[topic_id].partition_count
        if max(partitions, default=0) >= partition_count:
            partitions = partitions.intersection(range(partition_count))
        if partitions:
            taken[topic_id].update(partitions)
            kept[topic_id] = partitions
    return member.assigned if kept == member.assigned else kept
