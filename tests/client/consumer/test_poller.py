"""Users draw messages from a poller, compiled and as plain Python."""

import asyncio
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest
from tests.uncompiled import load_uncompiled
from tests.wire.records.samples import some_records

from barnabas.client.consumer import _poller
from barnabas.client.consumer._completed_fetch import CompletedFetch, ConsumerProgress
from barnabas.wire.records.build import build_batch

PLAIN = load_uncompiled(_poller)


@pytest.fixture(params=["compiled", "plain"], scope="module")
def module(request: pytest.FixtureRequest) -> Iterator[ModuleType]:
    if request.param == "plain":
        yield PLAIN
    elif not _poller.COMPILED:
        pytest.skip("the poller is not compiled here")
    else:
        yield _poller


def fetch_of(count: int) -> Any:
    batch = bytes(build_batch(some_records(count)))
    return CompletedFetch(ConsumerProgress("t", 0), batch, 0, count, count, [], True, False)


def test_take_returns_up_to_the_limit_and_nothing_before_events(module: ModuleType) -> None:
    poller = module.Poller()
    assert poller.take(5) == []
    poller.current_fetch = fetch_of(10)
    assert [each.offset() for each in poller.take(3)] == [0, 1, 2]
    poller.has_events = True
    assert poller.take(3) == []
    poller.has_events = False
    assert [each.offset() for each in poller.take(30)] == list(range(3, 10))
    assert poller.poll_count == 4


def test_poll_reads_the_current_fetch_and_then_waits(module: ModuleType) -> None:
    class Polled(module.SyncPoller):  # type: ignore[name-defined, misc]
        def _poll(self, timeout: float) -> str:
            return f"waited {timeout}"

    poller = Polled()
    poller.current_fetch = fetch_of(1)
    assert poller.poll(1).offset() == 0
    assert poller.poll(timeout=2) == "waited 2"


def test_a_buffered_message_is_awaited_without_suspending(module: ModuleType) -> None:
    class Awaited(module.AioPoller):  # type: ignore[name-defined, misc]
        async def _poll(self, timeout: float) -> None:
            return None

        async def _next(self) -> None:
            raise StopAsyncIteration

    async def draw() -> tuple[list[int], list[int]]:
        poller = Awaited()
        poller.current_fetch = fetch_of(3)
        polled = [(await poller.poll()).offset()]
        iterated = [message.offset() async for message in poller]
        assert await poller.poll() is None
        return polled, iterated

    assert asyncio.run(draw()) == ([0], [1, 2])
