"""An answer comes once, to all who asked, whenever they asked."""

import asyncio

import pytest

from barnabas.coordinator.pending_response import PendingResponse, all_of
from barnabas.wire.errors import ErrorCode, KafkaError


def test_callbacks_before_and_after_completion_get_the_same_value() -> None:
    answer: PendingResponse[int] = PendingResponse()
    heard: list[int] = []
    answer.when_done(lambda done: heard.append(done.result()))
    answer.complete(7)
    answer.when_done(lambda done: heard.append(done.result()))
    assert heard == [7, 7]


def test_a_response_is_completed_once() -> None:
    answer = PendingResponse.completed(1)
    with pytest.raises(AssertionError):
        answer.complete(2)


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
    refused = PendingResponse[ErrorCode]()
    told = refused.recover(lambda error: error.code)
    assert not told.is_done
    refused.fail(KafkaError(ErrorCode.NOT_COORDINATOR, "not here"))
    assert told.result() is ErrorCode.NOT_COORDINATOR
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
        answer: PendingResponse[str] = PendingResponse()
        waiting = asyncio.ensure_future(_await(answer))
        await asyncio.sleep(0)
        answer.complete("here")
        assert await waiting == "here"
        assert await answer == "here"

    asyncio.run(scenario())


def test_a_cancelled_await_does_not_affect_the_response() -> None:
    async def scenario() -> None:
        answer: PendingResponse[str] = PendingResponse()
        waiting = asyncio.ensure_future(_await(answer))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.sleep(0)
        answer.complete("late")
        assert answer.result() == "late"

    asyncio.run(scenario())


async def _await(answer: PendingResponse[str]) -> str:
    return await answer
