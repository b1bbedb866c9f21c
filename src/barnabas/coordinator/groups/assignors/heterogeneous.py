"""The uniform assignment of a group whose members want different topics."""

from heapq import heapify, heappop, heappush, heapreplace

from barnabas.coordinator.groups.assignors.model import Assignments, Subscribers
from barnabas.coordinator.groups.assignors.retention import retain

MAX_PASSES = 16
"""How often all topics are looked at. Where subscriptions overlap in chains each pass makes loads
more equal, and few are needed; the bound is for shapes made to take long."""


def assign(subscribers: Subscribers) -> Assignments:
    """Hand out what is free to whoever has least, then even out topic by topic."""
    retention = retain(subscribers)
    division = _Division(subscribers, retention.kept)
    topic_ids = division.hardest_first()
    for topic_id in topic_ids:
        division.hand_out(topic_id, retention.free.get(topic_id, []))
    for _ in range(MAX_PASSES):
        if not sum(map(division.even_out, topic_ids)):
            break
    return division.assignments()


class _Division:
    """Who owns which partition, while that is being decided. Members go by number."""

    __slots__ = ("_interested", "_kept", "_loads", "_member_ids", "_owners", "_topics")

    def __init__(self, subscribers: Subscribers, kept: Assignments) -> None:
        self._topics = subscribers.topics
        self._kept = kept
        self._member_ids = list(kept)
        self._loads = [sum(map(len, owned.values())) for owned in kept.values()]
        self._interested: dict[bytes, list[int]] = {}
        self._owners: dict[bytes, dict[int, int]] = {}
        for number, member_id in enumerate(self._member_ids):
            for topic_id in subscribers.members[member_id].topic_ids & self._topics.keys():
                self._interested.setdefault(topic_id, []).append(number)
            for topic_id, partitions in kept[member_id].items():
                self._owners.setdefault(topic_id, {}).update(dict.fromkeys(partitions, number))

    def hardest_first(self) -> list[bytes]:
        """Topics with many partitions to a subscriber leave the least choice: they go first."""

        def ease(topic_id: bytes) -> tuple[float, int, bytes]:
            interested = len(self._interested[topic_id])
            return (-self._topics[topic_id].partition_count / interested, interested, topic_id)

        return sorted(self._interested, key=ease)

    def hand_out(self, topic_id: bytes, partitions: list[int]) -> None:
        """Give each partition to the subscriber with the lowest load."""
        if not partitions:
            return
        loads, owners = self._loads, self._owners.setdefault(topic_id, {})
        takers = [(loads[number], number) for number in self._interested[topic_id]]
        heapify(takers)
        for partition in partitions:
            load, taker = takers[0]
            heapreplace(takers, (load + 1, taker))
            loads[taker] = load + 1
            owners[partition] = taker

    def even_out(self, topic_id: bytes) -> int:
        """Move partitions from the highest load to the lowest; how many had to move."""
        loads, owners = self._loads, self._owners.get(topic_id, {})
        interested = self._interested[topic_id]
        highest = max((loads[owner] for owner in owners.values()), default=0)
        if highest - min(map(loads.__getitem__, interested)) <= 1:
            return 0
        owned: dict[int, list[int]] = {}
        for partition in sorted(owners):
            owned.setdefault(owners[partition], []).append(partition)
        # Entries of takers go stale as members give: valid are those with the current load.
        takers = [(loads[number], number) for number in interested]
        givers = [(-loads[number], -number) for number in owned]
        heapify(takers)
        heapify(givers)
        moves = 0
        while givers:
            lowest, taker = takers[0]
            if lowest != loads[taker]:
                heappop(takers)
                continue
            giver = -givers[0][1]
            if loads[giver] - lowest <= 1:
                break
            owners[owned[giver].pop()] = taker
            loads[taker] += 1
            loads[giver] -= 1
            moves += 1
            heapreplace(takers, (loads[taker], taker))
            heappush(takers, (loads[giver], giver))
            if owned[giver]:
                heapreplace(givers, (-loads[giver], -giver))
            else:
                heappop(givers)
        return moves

    def assignments(self) -> Assignments:
        """By member; what has not changed is the very assignment that was kept."""
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
