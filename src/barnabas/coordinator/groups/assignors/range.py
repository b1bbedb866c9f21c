"""`range`: every subscriber gets one range of consecutive partitions of each topic.

Members with the same subscriptions get the same partition numbers of topics of the same size, so
that topics can be joined partition by partition. The current assignment is not considered: the
order of the members keeps an assignment stable. Static members, which keep their instance ids over
restarts, come first in it.
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
    for topic, member_ids in _by_topic(members, subscribers):
        for member_id, partitions in _ranges(member_ids, topic.partition_count):
            assignments[member_id][topic.topic_id] = partitions
    return assignments


def _static_first(member: MemberSubscription) -> tuple[bool, str]:
    if member.instance_id is not None:
        return (False, member.instance_id)
    return (True, member.member_id)


def _by_topic(
    members: list[MemberSubscription], subscribers: Subscribers
) -> Iterator[tuple[TopicShape, list[str]]]:
    """Yields each topic with its subscribers, in the order of `members`."""
    if subscribers.is_homogeneous:
        member_ids = [member.member_id for member in members]
        topic_ids = members[0].topic_ids if members else frozenset()
        by_topic = dict.fromkeys(topic_ids, member_ids)
    else:
        by_topic = {}
        for member in members:
            for topic_id in member.topic_ids:
                by_topic.setdefault(topic_id, []).append(member.member_id)
    for topic_id, topic in subscribers.topics.items():
        if topic_id in by_topic:
            yield topic, by_topic[topic_id]


def _ranges(member_ids: list[str], partition_count: int) -> Iterator[tuple[str, frozenset[int]]]:
    """Yields equal ranges of the partitions. The first members get one more where they must."""
    length, longer = divmod(partition_count, len(member_ids))
    start = 0
    for position, member_id in enumerate(member_ids[:partition_count]):
        end = start + length + (position < longer)
        yield member_id, frozenset(range(start, end))
        start = end
