"""`range`: each topic's partitions in as many runs as it has subscribers, the longer ones first.

Where members and replicas have racks, partitions go first to members that have a replica near, and
topics that are divided alike stay so (KIP-881): the same index of each goes to the same member.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Sequence

from barnabas.client.consumer.group.assignors.model import (
    ClusterTopics,
    GroupAssignment,
    SubscribedMember,
    subscribers_by_topic,
)
from barnabas.client.values import TopicPartitionTuple

Fits = Callable[[SubscribedMember, TopicPartitionTuple], bool]


class RangeAssignor:
    """Runs of neighbouring partitions."""

    name = "range"
    is_cooperative = False

    def user_data(self, owned: Collection[TopicPartitionTuple], generation: int) -> None:
        return None

    def assign(
        self, members: Collection[SubscribedMember], topics: ClusterTopics
    ) -> GroupAssignment:
        assignment: GroupAssignment = {member.member_id: [] for member in members}
        tables = [
            _Table(topic, subscribers, topics, assignment)
            for topic, subscribers in subscribers_by_topic(members, topics).items()
        ]
        near_first = any(table.racks_matter for table in tables)
        if near_first:
            _assign_near(tables)
        for table in tables:
            table.assign_runs(lambda member, partition: True)
        if near_first:
            for partitions in assignment.values():
                partitions.sort()
        return assignment


class _Table:
    """One topic: who is still to have how many of its partitions."""

    def __init__(
        self,
        topic: str,
        members: Sequence[SubscribedMember],
        topics: ClusterTopics,
        assignment: GroupAssignment,
    ) -> None:
        self.topic = topic
        self.members = members
        self.partition_count = topics.partitions[topic]
        self._racks = topics.racks
        self._assignment = assignment
        self._unassigned = dict.fromkeys(topics.of(topic))
        self._fair_share, self._longer_runs = divmod(self.partition_count, len(members))
        self._taken = {member.member_id: 0 for member in members}

    @property
    def racks_matter(self) -> bool:
        """Whether some partition is nearer to one member than to another."""
        wanted = {member.rack for member in self.members if member.rack}
        if not wanted or not self._racks:
            return False
        of_each = [self._racks.get(partition, frozenset()) for partition in self._unassigned]
        everywhere = frozenset().union(*of_each)
        return bool(wanted & everywhere) and any(racks != everywhere for racks in of_each)

    def is_near(self, member: SubscribedMember, partition: TopicPartitionTuple) -> bool:
        return not member.rack or member.rack in self._racks.get(partition, frozenset())

    def room(self, member: SubscribedMember) -> int:
        """How many more it may have."""
        most = self._fair_share + (1 if self._longer_runs else 0)
        return max(0, most - self._taken[member.member_id])

    def assign_runs(self, fits: Fits) -> None:
        for member in self.members:
            room = self.room(member)
            if not self._unassigned or not room:
                continue
            run: list[TopicPartitionTuple] = []
            for partition in self._unassigned:
                if fits(member, partition):
                    run.append(partition)
                    if len(run) == room:
                        break
            self.give(member, run)

    def give(self, member: SubscribedMember, partitions: Sequence[TopicPartitionTuple]) -> None:
        if not partitions:
            return
        for partition in partitions:
            del self._unassigned[partition]
        self._assignment[member.member_id].extend(partitions)
        self._taken[member.member_id] += len(partitions)
        if self._taken[member.member_id] > self._fair_share:
            self._longer_runs -= 1


def _assign_near(tables: Sequence[_Table]) -> None:
    alike: defaultdict[tuple[tuple[str, ...], int], list[_Table]] = defaultdict(list)
    for table in tables:
        subscribers = tuple(member.member_id for member in table.members)
        alike[subscribers, table.partition_count].append(table)
    for together in alike.values():
        if len(together) > 1:
            _assign_alike(together)
        elif together[0].racks_matter:
            together[0].assign_runs(together[0].is_near)


def _assign_alike(tables: Sequence[_Table]) -> None:
    """Give the same index of all these topics to one member that is near to each of them."""
    open_to = dict.fromkeys(range(len(tables[0].members)))
    for index in range(tables[0].partition_count):
        for seat in open_to:
            member = tables[0].members[seat]
            if all(t.room(member) and t.is_near(member, (t.topic, index)) for t in tables):
                for table in tables:
                    table.give(member, [(table.topic, index)])
                if not any(table.room(member) for table in tables):
                    del open_to[seat]
                break
