"""The coroutine of a handler is stepped as a Task would step it."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tests.server.harness import on_a_loop

from barnabas.server.network.suspended_handler import SuspendedHandler
from barnabas.server.purgatory import Purgatory
from barnabas.server.timer import Timer


async def outcome(handler: Callable[[], Awaitable[Any]]) -> Any:
    """What a driven coroutine returns, or raises."""
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[Any] = loop.create_future()

    def end(returned: Any, error: BaseException | None) -> None:
        if error is not None:
            ended.set_exception(error)
        else:
            ended.set_result(returned)

    coroutine: Any = handler()
    SuspendedHandler(coroutine, coroutine.send(None), end, loop)
    return await ended


@on_a_loop
async def test_results_of_futures_reach_the_handler() -> None:
    async def handler() -> list[int]:
        loop = asyncio.get_running_loop()
        first, second = loop.create_future(), loop.create_future()
        loop.call_soon(first.set_result, 1)
        loop.call_later(0, second.set_result, 2)
        await asyncio.sleep(0)
        return [await first, await second]

    assert await outcome(handler) == [1, 2]


@on_a_loop
async def test_exceptions_of_futures_are_raised_in_the_handler() -> None:
    async def handler() -> str:
        future = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_soon(future.set_exception, ValueError("x"))
        try:
            await future
        except ValueError:
            return "caught"
        return "missed"

    assert await outcome(handler) == "caught"


@on_a_loop
async def test_an_exception_of_a_handler_is_passed_on() -> None:
    async def handler() -> None:
        await asyncio.sleep(0)
        raise LookupError("gone")

    with pytest.raises(LookupError, match="gone"):
        await outcome(handler)


@on_a_loop
async def test_tasks_and_gathered_futures_can_be_awaited() -> None:
    async def work(number: int) -> int:
        await asyncio.sleep(0)
        return number

    async def handler() -> list[int]:
        task = asyncio.get_running_loop().create_task(work(1))
        return [await task, *(await asyncio.gather(work(2), work(3)))]

    assert await outcome(handler) == [1, 2, 3]


@on_a_loop
async def test_a_future_that_is_done_does_not_suspend() -> None:
    async def handler() -> int:
        await asyncio.sleep(0)
        future = asyncio.get_running_loop().create_future()
        future.set_result(4)
        return int(await future)

    assert await outcome(handler) == 4


@on_a_loop
async def test_awaiting_anything_but_a_future_raises_in_the_handler() -> None:
    class Odd:
        def __await__(self):  # type: ignore[no-untyped-def]
            yield "odd"

    async def handler() -> None:
        await asyncio.sleep(0)
        await Odd()

    with pytest.raises(TypeError, match="may await futures"):
        await outcome(handler)


@on_a_loop
async def test_abandoning_cancels_a_delayed_operation_and_nothing_else() -> None:
    loop = asyncio.get_running_loop()
    purgatory = Purgatory(Timer(loop))
    ended: list[object] = []

    async def park() -> None:
        await purgatory.delay(["p"], 1000, lambda *_: True, "Fetch")

    future = loop.create_future()

    async def change() -> str:
        return str(await future)

    for handler in (park, change):
        coroutine: Any = handler()
        driven = SuspendedHandler(
            coroutine, coroutine.send(None), lambda r, e: ended.append(e or r), loop
        )
        driven.abandon()
    for _ in range(3):
        await asyncio.sleep(0)
    assert [type(end) for end in ended] == [asyncio.CancelledError]
    future.set_result("done")
    await asyncio.sleep(0)
    assert ended[1:] == ["done"]
