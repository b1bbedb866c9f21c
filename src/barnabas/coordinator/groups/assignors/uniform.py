"""`uniform`: members get equal numbers of partitions, plus or minus one, and keep as many of their
current partitions as possible.

Where all members subscribe to the same topics this is exact, with a minimum of moves. Where they do
not, no single move to another subscriber of the topic would make two members more equal.
"""

from collections.abc import Iterator

from barnabas.coordinator.groups.assignors import heterogeneous
from barnabas.coordinator.groups.assignors.model import Assignment, Assignments, Subscribers
from barnabas.coordinator.groups.assignors.retention import retain

Partition = tuple[bytes, int]


def assign(subscribers: Subscribers) -> Assignments:
    if subscribers.is_homogeneous:
        return _share(subscribers)
    return heterogeneous.assign(subscribers)


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
