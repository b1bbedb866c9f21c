"""`roundrobin`: partitions go one by one to the next member that subscribes to the topic."""

from bisect import bisect_right
from collections.abc import Collection

from barnabas.client.consumer.group.assignors.model import (
    ClusterTopics,
    GroupAssignment,
    SubscribedMember,
)
from barnabas.client.values import PartitionKey


class RoundRobinAssignor:
    """Assigns by topic and partition, and skips members without the topic."""

    name = "roundrobin"
    is_cooperative = False

    def user_data(self, owned: Collection[PartitionKey], generation: int) -> None:
        return None

    def assign(
        self, members: Collection[SubscribedMember], topics: ClusterTopics
    ) -> GroupAssignment:
        ordered = sorted(members, key=lambda member: member.order)
        assignment: GroupAssignment = {member.member_id: [] for member in ordered}
        positions: dict[str, list[int]] = {}
        for position, member in enumerate(ordered):
            for topic in member.topics:
                positions.setdefault(topic, []).append(position)
        last = -1
        for topic in sorted(positions):
            subscribers = positions[topic]
            for partition in topics.of(topic):
                last = subscribers[bisect_right(subscribers, last) % len(subscribers)]
                assignment[ordered[last].member_id].append(partition)
        return assignment
