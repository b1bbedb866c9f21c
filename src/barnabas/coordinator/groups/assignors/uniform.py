"""`uniform`: every member gets as many partitions as the next, give or take one, and members keep
what they had as far as that allows.

Where all want the same topics this is exact, with as few moves as there can be. Where they do not,
no partition could move to another subscriber of its topic and make the two more equal.
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
    """Cut all partitions into shares of one size, some of them one larger."""
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
    """How many partitions each member is to have.

    The larger shares go to those who would otherwise have to give something up, then to the
    first of the others.
    """
    share, larger_shares = divmod(total, len(sizes))
    by_need = sorted(sizes, key=lambda member_id: sizes[member_id] <= share)
    quotas = dict.fromkeys(sizes, share)
    for member_id in by_need[:larger_shares]:
        quotas[member_id] += 1
    return quotas


def _cut(owned: Assignment, quota: int) -> tuple[Assignment, list[Partition]]:
    """The first `quota` partitions, and the others."""
    ordered = [(topic_id, each) for topic_id in sorted(owned) for each in sorted(owned[topic_id])]
    return _fill({}, iter(ordered), quota), ordered[quota:]


def _fill(owned: Assignment, partitions: Iterator[Partition], count: int) -> Assignment:
    """`owned` with `count` of the partitions more."""
    added: dict[bytes, list[int]] = {}
    for _, (topic_id, partition) in zip(range(count), partitions, strict=False):
        added.setdefault(topic_id, []).append(partition)
    filled = dict(owned)
    for topic_id, numbers in added.items():
        filled[topic_id] = filled.get(topic_id, frozenset()).union(numbers)
    return filled
