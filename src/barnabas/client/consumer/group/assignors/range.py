"""`range`: consecutive partitions of every topic for each subscriber, longer runs first.

If members and replicas have racks, partitions go first to members with a replica in their rack
(KIP-881). Co-partitioned topics stay so: the same index of all of them goes to the same member.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Sequence

from barnabas.client.consumer.group.assignors.model import (
    ClusterTopics,
    GroupAssignment,
    SubscribedMember,
    subscribers_by_topic,
)
from barnabas.client.values import PartitionKey

MayAssign = Callable[[SubscribedMember, PartitionKey], bool]


class RangeAssignor:
    """Assigns runs of consecutive partitions."""

    name = "range"
    is_cooperative = False

    def user_data(self, owned: Collection[PartitionKey], generation: int) -> None:
        return None

    def assign(
        self, members: Collection[SubscribedMember], topics: ClusterTopics
    ) -> GroupAssignment:
        assignment: GroupAssignment = {member.member_id: [] for member in members}
        states = [
            _TopicAssignmentState(topic, subscribers, topics, assignment)
            for topic, subscribers in subscribers_by_topic(members, topics).items()
        ]
        by_rack = any(state.needs_rack_awareness for state in states)
        if by_rack:
            _assign_by_rack(states)
        for state in states:
            state.assign_runs(lambda member, partition: True)
        if by_rack:
            for partitions in assignment.values():
                partitions.sort()
        return assignment


class _TopicAssignmentState:
    """One topic: its unassigned partitions, and how many more its members may have."""

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
        self._min_quota, self._extra_partitions = divmod(self.partition_count, len(members))
        self._assigned_counts = {member.member_id: 0 for member in members}

    @property
    def needs_rack_awareness(self) -> bool:
        """Whether some partition has replicas in the racks of some members alone."""
        member_racks = {member.rack for member in self.members if member.rack}
        if not member_racks or not self._racks:
            return False
        replica_racks = [self._racks.get(partition, frozenset()) for partition in self._unassigned]
        all_racks = frozenset().union(*replica_racks)
        return bool(member_racks & all_racks) and any(racks != all_racks for racks in replica_racks)

    def is_in_rack(self, member: SubscribedMember, partition: PartitionKey) -> bool:
        return not member.rack or member.rack in self._racks.get(partition, frozenset())

    def quota(self, member: SubscribedMember) -> int:
        """Returns how many more partitions the member may have."""
        most = self._min_quota + (1 if self._extra_partitions else 0)
        return max(0, most - self._assigned_counts[member.member_id])

    def assign_runs(self, may_assign: MayAssign) -> None:
        for member in self.members:
            quota = self.quota(member)
            if not self._unassigned or not quota:
                continue
            run: list[PartitionKey] = []
            for partition in self._unassigned:
                if may_assign(member, partition):
                    run.append(partition)
                    if len(run) == quota:
                        break
            self.assign_to(member, run)

    def assign_to(self, member: SubscribedMember, partitions: Sequence[PartitionKey]) -> None:
        if not partitions:
            return
        for partition in partitions:
            del self._unassigned[partition]
        self._assignment[member.member_id].extend(partitions)
        self._assigned_counts[member.member_id] += len(partitions)
        if self._assigned_counts[member.member_id] > self._min_quota:
            self._extra_partitions -= 1


def _assign_by_rack(states: Sequence[_TopicAssignmentState]) -> None:
    alike: defaultdict[tuple[tuple[str, ...], int], list[_TopicAssignmentState]] = defaultdict(list)
    for state in states:
        subscribers = tuple(member.member_id for member in state.members)
        alike[subscribers, state.partition_count].append(state)
    for together in alike.values():
        if len(together) > 1:
            _assign_co_partitioned(together)
        elif together[0].needs_rack_awareness:
            together[0].assign_runs(together[0].is_in_rack)


def _assign_co_partitioned(states: Sequence[_TopicAssignmentState]) -> None:
    """Assigns the same index of all topics to a member with replicas of them in its rack."""
    open_to = dict.fromkeys(range(len(states[0].members)))
    for index in range(states[0].partition_count):
        for seat in open_to:
            member = states[0].members[seat]
            if all(t.quota(member) and t.is_in_rack(member, (t.topic, index)) for t in states):
                for state in states:
                    state.assign_to(member, [(state.topic, index)])
                if not any(state.quota(member) for state in states):
                    del open_to[seat]
                break
