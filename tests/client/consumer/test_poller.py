"""Users draw messages from a tap, compiled and as plain Python."""

import asyncio
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest
from tests.uncompiled import from_source
from tests.wire.records.samples import some_records

from barnabas.client.consumer import _poller
from barnabas.client.consumer._completed_fetch import CompletedFetch, ConsumerProgress
from barnabas.wire.records.build import build_batch

PLAIN = from_source(_poller)


@pytest.fixture(params=["compiled", "plain"], scope="module")
def module(request: pytest.FixtureRequest) -> Iterator[ModuleType]:
    if request.param == "plain":
        yield PLAIN
    elif not _poller.COMPILED:
        pytest.skip("the tap is not compiled here")
    else:
        yield _poller


def cursor(count: int) -> Any:
    batch = bytes(build_batch(some_records(count)))
    return CompletedFetch(ConsumerProgress("t", 0), batch, 0, count, count, [], True, False)


def test_a_tap_draws_no_more_than_asked_and_nothing_while_disturbed(module: ModuleType) -> None:
    tap = module.Tap()
    assert tap.draw(5) == []
    tap.cursor = cursor(10)
    assert [each.offset() for each in tap.draw(3)] == [0, 1, 2]
    tap.is_disturbed = True
    assert tap.draw(3) == []
    tap.is_disturbed = False
    assert [each.offset() for each in tap.draw(30)] == list(range(3, 10))
    assert tap.polls == 4


def test_poll_takes_from_the_cursor_and_goes_the_slow_way_after_it(module: ModuleType) -> None:
    class Polled(module.PlainTap):  # type: ignore[name-defined, misc]
        def _poll(self, timeout: float) -> str:
            return f"waited {timeout}"

    tap = Polled()
    tap.cursor = cursor(1)
    assert tap.poll(1).offset() == 0
    assert tap.poll(timeout=2) == "waited 2"


def test_what_is_there_is_awaited_without_a_turn_of_the_loop(module: ModuleType) -> None:
    class Awaited(module.AioTap):  # type: ignore[name-defined, misc]
        async def _poll(self, timeout: float) -> None:
            return None

        async def _next(self) -> None:
            raise StopAsyncIteration

    async def draw() -> tuple[list[int], list[int]]:
        tap = Awaited()
        tap.cursor = cursor(3)
        polled = [(await tap.poll()).offset()]
        iterated = [message.offset() async for message in tap]
        assert await tap.poll() is None
        return polled, iterated

    assert asyncio.run(draw()) == ([0], [1, 2])
