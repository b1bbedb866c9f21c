"""`roundrobin`: partitions are dealt out one by one, to those who want the topic."""

from bisect import bisect_right
from collections.abc import Collection

from barnabas.client.consumer.group.assignors.model import (
    ClusterTopics,
    GroupAssignment,
    SubscribedMember,
)
from barnabas.client.values import TopicPartitionTuple


class RoundRobinAssignor:
    """Deals by topic and partition; who does not subscribe to a topic is passed over."""

    name = "roundrobin"
    is_cooperative = False

    def user_data(self, owned: Collection[TopicPartitionTuple], generation: int) -> None:
        return None

    def assign(
        self, members: Collection[SubscribedMember], topics: ClusterTopics
    ) -> GroupAssignment:
        circle = sorted(members, key=lambda member: member.order)
        assignment: GroupAssignment = {member.member_id: [] for member in circle}
        seats: dict[str, list[int]] = {}
        for seat, member in enumerate(circle):
            for topic in member.topics:
                seats.setdefault(topic, []).append(seat)
        last = -1
        for topic in sorted(seats):
            interested = seats[topic]
            for partition in topics.of(topic):
                last = interested[bisect_right(interested, last) % len(interested)]
                assignment[circle[last].member_id].append(partition)
        return assignment
