"""The partitions that members keep of their current assignments: the start of a sticky assignor."""

from dataclasses import dataclass

from barnabas.coordinator.groups.assignors.model import (
    Assignment,
    Assignments,
    MemberSubscription,
    Subscribers,
)


@dataclass(slots=True, frozen=True)
class Retention:
    """All partitions: those that members keep, and those that are free."""

    kept: Assignments
    free: dict[bytes, list[int]]
    """In ascending order, by topic id. A topic without free partitions is not a key."""


def retain(subscribers: Subscribers) -> Retention:
    """Members keep the partitions of topics that they still subscribe to.

    The current assignment may be invalid: a group that moves from the classic protocol brings what
    its members assigned. Partitions that do not exist are dropped, and of two members with the
    same partition the first by member id keeps it.
    """
    taken: dict[bytes, set[int]] = {topic_id: set() for topic_id in subscribers.topics}
    kept: Assignments = {}
    for member_id in sorted(subscribers.members):
        kept[member_id] = _keep(subscribers.members[member_id], subscribers, taken)
    members = subscribers.members.values()
    subscribed = frozenset[bytes]().union(*(member.topic_ids for member in members))
    free: dict[bytes, list[int]] = {}
    for topic_id in sorted(subscribed & taken.keys()):
        partitions = range(subscribers.topics[topic_id].partition_count)
        if len(taken[topic_id]) < len(partitions):
            free[topic_id] = sorted(set(partitions) - taken[topic_id])
    return Retention(kept, free)


def _keep(
    member: MemberSubscription, subscribers: Subscribers, taken: dict[bytes, set[int]]
) -> Assignment:
    """Returns the member's current assignment itself, unless something of it is dropped."""
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
