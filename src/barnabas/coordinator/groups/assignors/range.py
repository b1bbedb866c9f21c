"""`range`: of each topic, every subscriber gets one run of neighbouring partitions.

Members with the same subscriptions get the same partition numbers of topics of the same size, so
that streams can be joined partition by partition. What a member had before plays no part: it is
the order of the members that keeps an assignment in place, and static members, who keep their
instance ids over restarts, come first in it.
"""

from collections.abc import Iterator

from barnabas.coordinator.groups.assignors.model import (
    Assignments,
    MemberSubscription,
    Subscribers,
    TopicShape,
)


def assign(subscribers: Subscribers) -> Assignments:
    members = sorted(subscribers.members.values(), key=_static_first)
    assignments: Assignments = {member.member_id: {} for member in members}
    for topic, interested in _by_topic(members, subscribers):
        for member_id, partitions in _runs(interested, topic.partition_count):
            assignments[member_id][topic.topic_id] = partitions
    return assignments


def _static_first(member: MemberSubscription) -> tuple[bool, str]:
    if member.instance_id is not None:
        return (False, member.instance_id)
    return (True, member.member_id)


def _by_topic(
    members: list[MemberSubscription], subscribers: Subscribers
) -> Iterator[tuple[TopicShape, list[str]]]:
    """Each topic with its subscribers, who keep the order of `members`."""
    if subscribers.is_homogeneous:
        everybody = [member.member_id for member in members]
        wanted = members[0].topic_ids if members else frozenset()
        interested = dict.fromkeys(wanted, everybody)
    else:
        interested = {}
        for member in members:
            for topic_id in member.topic_ids:
                interested.setdefault(topic_id, []).append(member.member_id)
    for topic_id, topic in subscribers.topics.items():
        if topic_id in interested:
            yield topic, interested[topic_id]


def _runs(member_ids: list[str], partition_count: int) -> Iterator[tuple[str, frozenset[int]]]:
    """The partitions in equal runs; the first members have one more where they do not divide."""
    length, longer = divmod(partition_count, len(member_ids))
    start = 0
    for position, member_id in enumerate(member_ids[:partition_count]):
        end = start + length + (position < longer)
        yield member_id, frozenset(range(start, end))
        start = end
