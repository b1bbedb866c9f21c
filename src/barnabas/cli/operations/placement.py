"""Placement of replicas for a proposal: leaders in turn, replicas in different racks."""

from collections.abc import Mapping
from itertools import chain, zip_longest
from random import randrange


def place_replicas(
    racks: Mapping[int, str | None], partition_count: int, replication_factor: int
) -> list[list[int]]:
    """Returns the replicas of each partition. Starts at a random broker of `racks`."""
    order = _alternate_racks(racks)
    start, shift = randrange(len(order)), randrange(len(order))
    placed = []
    for partition in range(partition_count):
        if partition and partition % len(order) == 0:
            shift += 1  # every broker leads once: use other followers from here on
        first = (start + partition) % len(order)
        others = [order[(first + 1 + step) % len(order)] for step in range(len(order) - 1)]
        turned = shift % max(1, len(others))
        placed.append(
            _prefer_new_racks(
                [order[first], *others[turned:], *others[:turned]], racks, replication_factor
            )
        )
    return placed


def _alternate_racks(racks: Mapping[int, str | None]) -> list[int]:
    """Returns the brokers with one of each rack before the second of any rack."""
    by_rack: dict[str, list[int]] = {}
    for broker in sorted(racks):
        by_rack.setdefault(racks[broker] or "", []).append(broker)
    rounds = zip_longest(*(by_rack[rack] for rack in sorted(by_rack)))
    return [broker for broker in chain.from_iterable(rounds) if broker is not None]


def _prefer_new_racks(brokers: list[int], racks: Mapping[int, str | None], count: int) -> list[int]:
    """Returns the first `count` brokers, those of unused racks first."""
    new, others = [], []
    used: set[str | None] = set()
    for broker in brokers:
        if racks[broker] is None or racks[broker] not in used:
            new.append(broker)
            used.add(racks[broker])
        else:
            others.append(broker)
    return [*new, *others][:count]
