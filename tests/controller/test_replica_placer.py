"""Where new partitions go: over racks first, then over brokers, to those that are away last."""

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.controller.conftest import broker

from barnabas.controller.replica_placer import place_replicas
from barnabas.metadata.states import BrokerRegistration, Replicas
from barnabas.wire.errors import ErrorCode, KafkaError


def in_racks(**racks: list[int]) -> list[BrokerRegistration]:
    """Brokers by rack; a negative id is a fenced broker's."""
    return [
        broker(abs(number), rack=rack, fenced=number < 0)
        for rack, numbers in racks.items()
        for number in numbers
    ]


def from_the_start(_: int) -> int:
    return 0


def test_partitions_are_striped_over_three_racks() -> None:
    brokers = in_racks(a=[1, 2, 3], b=[4, 5, 6], c=[7, 8, 9])
    assert place_replicas(brokers, 4, 3, from_the_start) == [
        (1, 4, 7),
        (5, 8, 2),
        (9, 3, 6),
        (1, 4, 7),
    ]


def test_without_racks_partitions_rotate_over_the_brokers() -> None:
    brokers = [broker(number) for number in (3, 1, 2)]
    assert place_replicas(brokers, 3, 2, from_the_start) == [(1, 2), (2, 3), (3, 1)]


@pytest.mark.parametrize(
    ("brokers", "factor", "expected"),
    [
        # A fenced broker is taken where its rack has no other, and never leads.
        (in_racks(a=[-1], b=[2], c=[3]), 3, {(2, 1, 3), (3, 2, 1), (3, 1, 2), (2, 3, 1)}),
        (in_racks(a=[1, -2]), 2, {(1, 2)}),
        (in_racks(a=[1, -2, -3]), 1, {(1,)}),
        # More replicas than racks: a second of a rack only when every rack has one.
        (in_racks(a=[1, 2], b=[3]), 3, {(1, 3, 2), (3, 2, 1), (3, 1, 2), (2, 3, 1)}),
    ],
)
def test_which_brokers_get_replicas(
    brokers: list[BrokerRegistration], factor: int, expected: set[Replicas]
) -> None:
    for seed in range(20):
        placed = place_replicas(brokers, 6, factor, random.Random(seed).randrange)
        assert set(placed) <= expected


@pytest.mark.parametrize(
    ("brokers", "factor"),
    [
        (in_racks(a=[1, 2]), 3),
        (in_racks(a=[-1, -2]), 1),
        ([broker(1, in_controlled_shutdown=True)], 1),
        ([broker(1, cordoned_log_dirs=(bytes([101]) * 16,))], 1),
        ([], 1),
    ],
)
def test_too_few_brokers_are_an_error(brokers: list[BrokerRegistration], factor: int) -> None:
    with pytest.raises(KafkaError) as error:
        place_replicas(brokers, 1, factor, from_the_start)
    assert error.value.code is ErrorCode.INVALID_REPLICATION_FACTOR


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.booleans()), min_size=1, max_size=8),
    st.integers(1, 8),
    st.integers(1, 30),
    st.integers(),
)
def test_replicas_differ_leaders_are_active_and_racks_are_used_evenly(
    kinds: list[tuple[str, bool]], factor: int, count: int, seed: int
) -> None:
    brokers = [broker(n, rack=rack, fenced=fenced) for n, (rack, fenced) in enumerate(kinds)]
    fenced = {item.broker_id for item in brokers if item.fenced}
    if len(fenced) == len(brokers) or factor > len(brokers):
        return
    sizes = Counter(item.rack for item in brokers)
    placed = place_replicas(brokers, count, factor, random.Random(seed).randrange)
    assert len(placed) == count
    for replicas in placed:
        assert len(set(replicas)) == len(replicas) == factor
        assert replicas[0] not in fenced
        per_rack = Counter(brokers[replica].rack for replica in replicas)
        most = max(per_rack.values())
        # A rack has two fewer than another only if it has no more brokers.
        assert all(per_rack[rack] >= min(most - 1, size) for rack, size in sizes.items())


def test_leaders_are_spread_evenly() -> None:
    brokers = in_racks(a=[1, 2], b=[3, 4], c=[5, 6])
    placed = place_replicas(brokers, 600, 3, random.Random(1).randrange)
    leaders = Counter(replicas[0] for replicas in placed)
    assert max(leaders.values()) - min(leaders.values()) <= 60
