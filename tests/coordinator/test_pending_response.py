"""A response is completed once, for callbacks registered before and after."""

import asyncio

import pytest

from barnabas.coordinator.pending_response import PendingResponse, all_of
from barnabas.wire.errors import ErrorCode, KafkaError


def test_callbacks_before_and_after_completion_get_the_same_value() -> None:
    response: PendingResponse[int] = PendingResponse()
    received: list[int] = []
    response.when_done(lambda done: received.append(done.result()))
    response.complete(7)
    response.when_done(lambda done: received.append(done.result()))
    assert received == [7, 7]


def test_a_response_is_completed_once() -> None:
    response = PendingResponse.completed(1)
    with pytest.raises(AssertionError):
        response.complete(2)


def test_a_mapped_response_fails_with_the_first_or_the_transformation() -> None:
    assert PendingResponse.completed(2).map(lambda value: value * 2).result() == 4
    with pytest.raises(LookupError):
        PendingResponse.failed(LookupError()).map(lambda value: value).result()
    with pytest.raises(ZeroDivisionError):
        PendingResponse.completed(0).map(lambda value: 1 // value).result()


def test_a_chained_response_is_that_of_the_last_step() -> None:
    second: PendingResponse[str] = PendingResponse()
    chained = PendingResponse.completed(3).chain(lambda _: second)
    assert not chained.is_done
    second.complete("last")
    assert chained.result() == "last"
    with pytest.raises(LookupError):
        PendingResponse.failed(LookupError()).chain(lambda _: second).result()


def test_recover_turns_only_kafka_errors_into_values() -> None:
    raised = PendingResponse[ErrorCode]()
    response = raised.recover(lambda error: error.code)
    assert not response.is_done
    raised.fail(KafkaError(ErrorCode.NOT_COORDINATOR, "not here"))
    assert response.result() is ErrorCode.NOT_COORDINATOR
    assert PendingResponse.completed(1).recover(lambda _: 2).result() == 1
    with pytest.raises(LookupError):
        PendingResponse.failed(LookupError()).recover(lambda error: error.code).result()


def test_all_of_waits_for_the_last_and_keeps_the_order() -> None:
    first, second = PendingResponse[int](), PendingResponse[int]()
    both = all_of([first, second])
    second.complete(2)
    assert not both.is_done
    first.complete(1)
    assert both.result() == [1, 2]
    assert all_of([]).result() == []


def test_a_response_can_be_awaited_before_and_after_it_is_done() -> None:
    async def scenario() -> None:
        response: PendingResponse[str] = PendingResponse()
        waiting = asyncio.ensure_future(_await(response))
        await asyncio.sleep(0)
        response.complete("here")
        assert await waiting == "here"
        assert await response == "here"

    asyncio.run(scenario())


def test_a_cancelled_await_does_not_affect_the_response() -> None:
    async def scenario() -> None:
        response: PendingResponse[str] = PendingResponse()
        waiting = asyncio.ensure_future(_await(response))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.sleep(0)
        response.complete("late")
        assert response.result() == "late"

    asyncio.run(scenario())


async def _await(response: PendingResponse[str]) -> str:
    return await response
