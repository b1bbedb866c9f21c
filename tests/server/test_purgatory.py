"""Delayed operations complete after enough changes, at their timeout, or when cancelled."""

import asyncio
from collections.abc import Hashable, Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.server.harness import on_a_loop

from barnabas.server.purgatory import DelayedOperation, Purgatory
from barnabas.server.timer import Timer

LONG_MS = 60_000


def a_purgatory() -> Purgatory:
    return Purgatory(Timer(asyncio.get_running_loop()))


class Bytes:
    """Enough once that many bytes have become readable."""

    def __init__(self, missing: int) -> None:
        self.missing = missing

    def take_note(self, _: Hashable, readable_bytes: int) -> bool:
        self.missing -= readable_bytes
        return self.missing <= 0


def wait(
    purgatory: Purgatory, keys: Iterable[Hashable], missing_bytes: int, timeout_ms: int = LONG_MS
) -> DelayedOperation:
    return purgatory.delay(keys, timeout_ms, Bytes(missing_bytes).take_note, "Fetch")


@on_a_loop
async def test_a_fetch_waits_for_its_min_bytes_across_partitions() -> None:
    purgatory = a_purgatory()
    parked = wait(purgatory, ["a", "b"], 100)
    purgatory.notify("a", 60)
    purgatory.notify("c", 60)
    assert not parked.done()
    purgatory.notify("b", 40)
    assert await parked is True
    assert purgatory.sizes["Fetch"] == 0


@on_a_loop
async def test_a_timeout_completes_the_operation_too() -> None:
    purgatory = a_purgatory()
    assert await wait(purgatory, ["a"], 1, timeout_ms=1) is False
    assert len(purgatory) == 0


@on_a_loop
async def test_cancelling_leaves_nothing_behind() -> None:
    purgatory = a_purgatory()
    parked = wait(purgatory, ["a", "b"], 1)
    assert parked.cancel()
    assert not parked.cancel()
    purgatory.notify("a", 1)
    assert parked.cancelled()
    assert len(purgatory) == 0
    assert purgatory._watching == {}
    assert len(purgatory._timer) == 0


@on_a_loop
async def test_release_all_completes_every_operation() -> None:
    purgatory = a_purgatory()
    waits = [wait(purgatory, ["a", n], 1) for n in range(3)]
    purgatory.release_all()
    assert [await parked for parked in waits] == [False] * 3
    assert len(purgatory) == 0


@on_a_loop
async def test_a_notification_calls_every_watcher_once_however_many_partitions_it_watches() -> None:
    purgatory = a_purgatory()
    request: list[Hashable] = []

    def take_note(key: Hashable, _: int) -> bool:
        request.append(key)
        return False

    parked = purgatory.delay(range(1000), LONG_MS, take_note, "Fetch")
    purgatory.notify(7, 1)
    assert request == [7]
    parked.cancel()


@on_a_loop
async def test_a_watcher_may_complete_others_while_it_is_notified() -> None:
    purgatory = a_purgatory()
    waits: list[DelayedOperation] = []

    def end_all(_: Hashable, __: int) -> bool:
        for parked in waits:
            parked.cancel()
        return True

    waits += [purgatory.delay(["a"], LONG_MS, end_all, "Fetch") for _ in range(3)]
    purgatory.notify("a")
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
def test_an_operation_completes_with_the_notification_of_its_last_byte(
    waits: list[tuple[set[int], int]], pokes: list[tuple[int, int]]
) -> None:
    @on_a_loop
    async def scenario() -> None:
        purgatory = a_purgatory()
        parked = [wait(purgatory, keys, size) for keys, size in waits]
        heard = [0] * len(waits)
        satisfied = [False] * len(waits)
        for key, size in pokes:
            purgatory.notify(key, size)
            for index, (keys, requested) in enumerate(waits):
                if key in keys and not satisfied[index]:
                    heard[index] += size
                    satisfied[index] = heard[index] >= requested
            assert [p.done() for p in parked] == satisfied
        assert len(purgatory) == satisfied.count(False)
        purgatory.release_all()
        assert purgatory._watching == {}
        assert len(purgatory._timer) == 0

    scenario()


@pytest.mark.parametrize("count", [100_000])
def test_a_hundred_thousand_operations_can_be_delayed_and_released(count: int) -> None:
    @on_a_loop
    async def scenario() -> None:
        purgatory = a_purgatory()
        for number in range(count):
            wait(purgatory, [number % 100], 1, LONG_MS + number % 1000)
        purgatory.notify(3, 1)
        assert len(purgatory) == count - count // 100
        purgatory.release_all()
        assert len(purgatory._timer) == 0

    scenario()
