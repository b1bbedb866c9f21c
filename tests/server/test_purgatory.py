"""Parked requests end when they have heard enough, when their time is up, or when called off."""

import asyncio
from collections.abc import Hashable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.server.harness import on_a_loop

from barnabas.server.purgatory import Parked, Purgatory
from barnabas.server.timer import Timer

LONG_MS = 60_000


def a_purgatory() -> Purgatory:
    return Purgatory(Timer(asyncio.get_running_loop()))


class Leader:
    """A partition that promises up to its high watermark."""

    def __init__(self) -> None:
        self.high_watermark = 0

    def has_promised(self, next_offset: int, acks: int) -> bool:
        return acks == 1 or self.high_watermark >= next_offset


@on_a_loop
async def test_a_fetch_waits_for_its_min_bytes_across_partitions() -> None:
    purgatory = a_purgatory()
    parked = purgatory.await_bytes(["a", "b"], 100, LONG_MS)
    purgatory.poke("a", 60)
    purgatory.poke("c", 60)
    assert not parked.done()
    purgatory.poke("b", 40)
    assert await parked is True
    assert purgatory.sizes["Fetch"] == 0


@on_a_loop
async def test_a_produce_waits_until_every_partition_has_promised() -> None:
    purgatory = a_purgatory()
    first, second = Leader(), Leader()
    parked = purgatory.await_promises({first: 5, second: 3}, -1, LONG_MS)
    assert purgatory.sizes["Produce"] == 1
    first.high_watermark = 4
    purgatory.poke(first)
    second.high_watermark = 3
    purgatory.poke(second)
    purgatory.poke(second)
    assert not parked.done()
    first.high_watermark = 5
    purgatory.poke(first)
    assert await parked is True


@on_a_loop
async def test_time_running_out_ends_the_wait_too() -> None:
    purgatory = a_purgatory()
    assert await purgatory.await_bytes(["a"], 1, 1) is False
    assert len(purgatory) == 0


@on_a_loop
async def test_a_partition_that_changed_hands_ends_every_wait_at_it() -> None:
    purgatory = a_purgatory()
    fetch = purgatory.await_bytes(["a", "b"], 1000, LONG_MS)
    other = purgatory.await_bytes(["b"], 1000, LONG_MS)
    purgatory.wake("a")
    assert await fetch is True
    assert not other.done()
    purgatory.wake("nobody watches this")
    other.cancel()


@on_a_loop
async def test_calling_off_leaves_nothing_behind() -> None:
    purgatory = a_purgatory()
    parked = purgatory.await_bytes(["a", "b"], 1, LONG_MS)
    assert parked.cancel()
    assert not parked.cancel()
    purgatory.poke("a", 1)
    assert parked.cancelled()
    assert len(purgatory) == 0
    assert purgatory._watching == {}
    assert len(purgatory._timer) == 0


@on_a_loop
async def test_stopping_lets_everyone_go() -> None:
    purgatory = a_purgatory()
    waits = [purgatory.await_bytes(["a", n], 1, LONG_MS) for n in range(3)]
    purgatory.release_all()
    assert [await parked for parked in waits] == [False] * 3
    assert len(purgatory) == 0


@on_a_loop
async def test_a_poke_asks_each_watcher_once_however_many_partitions_it_watches() -> None:
    purgatory = a_purgatory()
    asked: list[Hashable] = []

    def take_note(key: Hashable, _: int) -> bool:
        asked.append(key)
        return False

    parked = purgatory.park(range(1000), LONG_MS, take_note, "Fetch")
    purgatory.poke(7, 1)
    assert asked == [7]
    parked.cancel()


@on_a_loop
async def test_a_watcher_may_end_others_while_it_is_asked() -> None:
    purgatory = a_purgatory()
    waits: list[Parked] = []

    def end_all(_: Hashable, __: int) -> bool:
        for parked in waits:
            parked.cancel()
        return True

    waits += [purgatory.park(["a"], LONG_MS, end_all, "Fetch") for _ in range(3)]
    purgatory.poke("a")
    assert all(parked.done() for parked in waits)
    assert len(purgatory) == 0


@settings(max_examples=50, deadline=None)
@given(
    st.lists(
        st.tuples(st.sets(st.integers(0, 4), min_size=1), st.integers(1, 30)),
        min_size=1,
        max_size=8,
    ),
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 15)), max_size=30),
)
def test_a_wait_ends_with_the_poke_that_brings_its_last_byte(
    waits: list[tuple[set[int], int]], pokes: list[tuple[int, int]]
) -> None:
    @on_a_loop
    async def scenario() -> None:
        purgatory = a_purgatory()
        parked = [purgatory.await_bytes(keys, size, LONG_MS) for keys, size in waits]
        heard = [0] * len(waits)
        satisfied = [False] * len(waits)
        for key, size in pokes:
            purgatory.poke(key, size)
            for index, (keys, wanted) in enumerate(waits):
                if key in keys and not satisfied[index]:
                    heard[index] += size
                    satisfied[index] = heard[index] >= wanted
            assert [p.done() for p in parked] == satisfied
        assert len(purgatory) == satisfied.count(False)
        purgatory.release_all()
        assert purgatory._watching == {}
        assert len(purgatory._timer) == 0

    scenario()


@pytest.mark.parametrize("count", [100_000])
def test_a_hundred_thousand_waits_can_be_parked_and_let_go(count: int) -> None:
    @on_a_loop
    async def scenario() -> None:
        purgatory = a_purgatory()
        for number in range(count):
            purgatory.await_bytes([number % 100], 1, LONG_MS + number % 1000)
        purgatory.poke(3, 1)
        assert len(purgatory) == count - count // 100
        purgatory.release_all()
        assert len(purgatory._timer) == 0

    scenario()
