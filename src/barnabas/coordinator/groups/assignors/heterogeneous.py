"""The uniform assignment of a group whose members have different subscriptions."""

from heapq import heapify, heappop, heappush, heapreplace

from barnabas.coordinator.groups.assignors.model import Assignments, Subscribers
from barnabas.coordinator.groups.assignors.retention import retain

MAX_PASSES = 16
"""How often all topics are balanced. Where subscriptions overlap in chains, each pass makes loads
more equal, and few are needed; the bound is for subscriptions made to take long."""


def assign(subscribers: Subscribers) -> Assignments:
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
