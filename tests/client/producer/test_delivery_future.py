"""What `produce` gives on a loop: deliveries that may be treated as futures."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from tests.uncompiled import load_uncompiled

from barnabas.client import _ready as compiled_ready
from barnabas.client.errors import KafkaError, KafkaException
from barnabas.client.producer import _aio_producer_base as compiled_delivery

FAILURE = KafkaError(KafkaError._MSG_TIMED_OUT)


@pytest.fixture(params=["compiled", "plain"])
def make(request: pytest.FixtureRequest) -> Callable[..., Any]:
    module: Any = compiled_delivery
    if request.param == "plain":
        ready = load_uncompiled(compiled_ready)
        ready.__name__ = compiled_ready.__name__
        module = load_uncompiled(compiled_delivery, ready=ready)
    elif not compiled_delivery.COMPILED:
        pytest.skip("nothing is compiled here")
    return lambda callback=None: module.DeliveryFuture(asyncio.get_running_loop(), callback)


def run(main: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(main, 20))


def test_a_delivery_can_be_awaited_before_and_after_its_report(make: Callable[..., Any]) -> None:
    async def main() -> None:
        early, late = make(), make()
        waiting = asyncio.ensure_future(early)
        await asyncio.sleep(0)
        assert not early.done()
        early(None, "first")
        late(None, "second")
        assert late.done()
        assert [await waiting, await early, await late, await late] == 2 * ["first"] + 2 * [
            "second"
        ]
        assert await asyncio.gather(early, late) == ["first", "second"]
        assert (late.result(), late.exception()) == ("second", None)

    run(main())


def test_a_failed_delivery_future_raises_when_it_is_awaited(make: Callable[..., Any]) -> None:
    async def main() -> None:
        delivery = make()
        delivery(FAILURE, "message")
        with pytest.raises(KafkaException):
            await delivery
        assert delivery.exception().args[0] is FAILURE

    run(main())


def test_an_unawaited_failure_reaches_the_loops_handler_unless_there_is_a_callback(
    make: Callable[..., Any],
) -> None:
    reports: list[Any] = []

    async def main() -> None:
        unhandled: list[Any] = []
        asyncio.get_running_loop().set_exception_handler(
            lambda _, context: unhandled.append(context)
        )
        make()(FAILURE, "message")
        assert len(unhandled) == 1
        make(lambda error, message: reports.append((error, message)))(FAILURE, "message")
        assert len(unhandled) == 1

    run(main())
    assert reports == [(FAILURE, "message")]


def test_a_delivery_has_callbacks_and_can_be_cancelled(make: Callable[..., Any]) -> None:
    async def main() -> None:
        done: list[Any] = []
        delivery, given_up = make(), make()
        delivery.add_done_callback(lambda future: done.append(future.result()))
        assert given_up.cancel()
        delivery(None, "message")
        given_up(None, "message")  # the record is delivered all the same
        finished, pending = await asyncio.wait({delivery, given_up})
        assert (finished, pending) == ({delivery, given_up}, set())
        await asyncio.sleep(0)
        assert done == ["message"]
        assert given_up.cancelled()

    run(main())


def test_a_ready_awaitable_can_become_a_task() -> None:
    async def main() -> None:
        for module in (compiled_ready, load_uncompiled(compiled_ready)):
            assert await module.Ready(1) == 1
            assert await asyncio.create_task(module.Ready(2)) == 2
            assert await asyncio.wait_for(module.Ready(3), 20) == 3

    run(main())
