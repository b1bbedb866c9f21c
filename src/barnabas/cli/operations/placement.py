"""Partitions spread over brokers for a proposal: leaders in turn, copies in different racks."""

from collections.abc import Mapping
from itertools import chain, zip_longest
from random import randrange


def place_replicas(
    racks: Mapping[int, str | None], partition_count: int, replication_factor: int
) -> list[list[int]]:
    """The replicas of each partition; `racks` has the brokers. From a random start."""
    order = _by_turns(racks)
    start, shift = randrange(len(order)), randrange(len(order))
    placed = []
    for partition in range(partition_count):
        if partition and partition % len(order) == 0:
            shift += 1  # every broker had a turn to lead: other followers from here on
        first = (start + partition) % len(order)
        others = [order[(first + 1 + step) % len(order)] for step in range(len(order) - 1)]
        turned = shift % max(1, len(others))
        placed.append(
            _pick([order[first], *others[turned:], *others[:turned]], racks, replication_factor)
        )
    return placed


def _by_turns(racks: Mapping[int, str | None]) -> list[int]:
    """One broker of each rack before a second of any."""
    by_rack: dict[str, list[int]] = {}
    for broker in sorted(racks):
        by_rack.setdefault(racks[broker] or "", []).append(broker)
    rounds = zip_longest(*(by_rack[rack] for rack in sorted(by_rack)))
    return [broker for broker in chain.from_iterable(rounds) if broker is not None]


def _pick(brokers: list[int], racks: Mapping[int, str | None], count: int) -> list[int]:
    """As many, in their order, except that racks without a copy come first."""
    new, others = [], []
    used: set[str | None] = set()
    for broker in brokers:
        if racks[broker] is None or racks[broker] not in used:
            new.append(broker)
            used.add(racks[broker])
        else:
            others.append(broker)
    return [*new, *others][:count]
