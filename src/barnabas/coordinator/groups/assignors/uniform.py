"""`uniform`: members get equal numbers of partitions, plus or minus one, and keep as many of their
current partitions as possible.

Where all members subscribe to the same topics this is exact, with a minimum of moves. Where they do
not, no single move to another subscriber of the topic would make two members more equal.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from heapq import heapify, heappop, heappush, heapreplace

from barnabas.coordinator.groups.assignors.model import (
    Assignment,
    Assignments,
    MemberSubscription,
    Subscribers,
)

Partition = tuple[bytes, int]


def assign(subscribers: Subscribers) -> Assignments:
    if subscribers.is_homogeneous:
        return _share(subscribers)
    return _balance(subscribers)


def _share(subscribers: Subscribers) -> Assignments:
    """Divides all partitions into equal shares, some of them larger by one."""
    if not subscribers.members:
        return {}
    retention = retain(subscribers)
    kept = retention.kept
    free = [(topic_id, each) for topic_id, run in retention.free.items() for each in run]
    sizes = {member_id: sum(map(len, owned.values())) for member_id, owned in kept.items()}
    quotas = _quotas(sizes, sum(sizes.values()) + len(free))
    for member_id, quota in quotas.items():
        if sizes[member_id] > quota:
            kept[member_id], surplus = _cut(kept[member_id], quota)
            free += surplus
    unclaimed = iter(free)
    for member_id, quota in quotas.items():
        if sizes[member_id] < quota:
            kept[member_id] = _fill(kept[member_id], unclaimed, quota - sizes[member_id])
    return kept


def _quotas(sizes: dict[str, int], total: int) -> dict[str, int]:
    """Returns the number of partitions of each member.

    The larger shares go to members that would otherwise lose a partition, then to the first of the
    others.
    """
    share, larger_shares = divmod(total, len(sizes))
    by_need = sorted(sizes, key=lambda member_id: sizes[member_id] <= share)
    quotas = dict.fromkeys(sizes, share)
    for member_id in by_need[:larger_shares]:
        quotas[member_id] += 1
    return quotas


def _cut(owned: Assignment, quota: int) -> tuple[Assignment, list[Partition]]:
    """Returns the first `quota` partitions, and the others."""
    ordered = [(topic_id, each) for topic_id in sorted(owned) for each in sorted(owned[topic_id])]
    return _fill({}, iter(ordered), quota), ordered[quota:]


def _fill(owned: Assignment, partitions: Iterator[Partition], count: int) -> Assignment:
    """Returns `owned` with `count` of the partitions added."""
    added: dict[bytes, list[int]] = {}
    for _, (topic_id, partition) in zip(range(count), partitions, strict=False):
        added.setdefault(topic_id, []).append(partition)
    filled = dict(owned)
    for topic_id, numbers in added.items():
        filled[topic_id] = filled.get(topic_id, frozenset()).union(numbers)
    return filled


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


MAX_PASSES = 16
"""How often all topics are balanced. Where subscriptions overlap in chains, each pass makes loads
more equal, and few are needed; the bound is for subscriptions made to take long."""


def _balance(subscribers: Subscribers) -> Assignments:
    """Assigns the free partitions to the members with the lowest load, then balances each topic."""
    retention = retain(subscribers)
    balancer = _Balancer(subscribers, retention.kept)
    topic_ids = balancer.most_constrained_first()
    for topic_id in topic_ids:
        balancer.assign_free(topic_id, retention.free.get(topic_id, []))
    for _ in range(MAX_PASSES):
        if not sum(map(balancer.balance, topic_ids)):
            break
    return balancer.assignments()


class _Balancer:
    """The owners of partitions while they are being assigned. Members are numbered."""

    __slots__ = ("_kept", "_loads", "_member_ids", "_owners", "_subscribers", "_topics")

    def __init__(self, subscribers: Subscribers, kept: Assignments) -> None:
        self._topics = subscribers.topics
        self._kept = kept
        self._member_ids = list(kept)
        self._loads = [sum(map(len, owned.values())) for owned in kept.values()]
        self._subscribers: dict[bytes, list[int]] = {}
        self._owners: dict[bytes, dict[int, int]] = {}
        for number, member_id in enumerate(self._member_ids):
            for topic_id in subscribers.members[member_id].topic_ids & self._topics.keys():
                self._subscribers.setdefault(topic_id, []).append(number)
            for topic_id, partitions in kept[member_id].items():
                self._owners.setdefault(topic_id, {}).update(dict.fromkeys(partitions, number))

    def most_constrained_first(self) -> list[bytes]:
        """Topics with many partitions per subscriber leave the least choice: they come first."""

        def choice(topic_id: bytes) -> tuple[float, int, bytes]:
            count = len(self._subscribers[topic_id])
            return (-self._topics[topic_id].partition_count / count, count, topic_id)

        return sorted(self._subscribers, key=choice)

    def assign_free(self, topic_id: bytes, partitions: list[int]) -> None:
        """Assigns each partition to the subscriber with the lowest load."""
        if not partitions:
            return
        loads, owners = self._loads, self._owners.setdefault(topic_id, {})
        lowest_loads = [(loads[number], number) for number in self._subscribers[topic_id]]
        heapify(lowest_loads)
        for partition in partitions:
            load, receiver = lowest_loads[0]
            heapreplace(lowest_loads, (load + 1, receiver))
            loads[receiver] = load + 1
            owners[partition] = receiver

    def balance(self, topic_id: bytes) -> int:
        """Moves partitions from the highest load to the lowest. Returns the number of moves."""
        loads, owners = self._loads, self._owners.get(topic_id, {})
        subscriber_numbers = self._subscribers[topic_id]
        highest = max((loads[owner] for owner in owners.values()), default=0)
        if highest - min(map(loads.__getitem__, subscriber_numbers)) <= 1:
            return 0
        owned: dict[int, list[int]] = {}
        for partition in sorted(owners):
            owned.setdefault(owners[partition], []).append(partition)
        # Entries of lowest_loads go stale as donors lose partitions: valid is the current load.
        lowest_loads = [(loads[number], number) for number in subscriber_numbers]
        highest_loads = [(-loads[number], -number) for number in owned]
        heapify(lowest_loads)
        heapify(highest_loads)
        moves = 0
        while highest_loads:
            lowest, receiver = lowest_loads[0]
            if lowest != loads[receiver]:
                heappop(lowest_loads)
                continue
            donor = -highest_loads[0][1]
            if loads[donor] - lowest <= 1:
                break
            owners[owned[donor].pop()] = receiver
            loads[receiver] += 1
            loads[donor] -= 1
            moves += 1
            heapreplace(lowest_loads, (loads[receiver], receiver))
            heappush(lowest_loads, (loads[donor], donor))
            if owned[donor]:
                heapreplace(highest_loads, (-loads[donor], -donor))
            else:
                heappop(highest_loads)
        return moves

    def assignments(self) -> Assignments:
        """Returns the assignments. One that has not changed is the same object as before."""
        divided: list[dict[bytes, list[int]]] = [{} for _ in self._member_ids]
        for topic_id, owners in self._owners.items():
            for partition, number in owners.items():
                divided[number].setdefault(topic_id, []).append(partition)
        result: Assignments = {}
        for member_id, owned in zip(self._member_ids, divided, strict=True):
            assignment = {topic_id: frozenset(each) for topic_id, each in owned.items()}
            kept = self._kept[member_id]
            result[member_id] = kept if assignment == kept else assignment
        return result
