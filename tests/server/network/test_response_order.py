"""Responses are sent in the order of their requests, whichever completes first."""

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.server.harness import (
    LIST,
    PRODUCE,
    Gate,
    Server,
    a_list,
    a_produce,
    on_a_loop,
    turns,
)

from barnabas.server.request_context import RequestContext
from barnabas.wire.messages.produce import ProduceRequest, ProduceResponse


@on_a_loop
async def test_pipelined_produce_requests_start_at_once_and_respond_in_order() -> None:
    gate = Gate()
    client = Server({PRODUCE: gate.handle}).connect()
    await client.send(a_produce(1), a_produce(2), a_produce(3))
    await gate.until_begun(1, 2, 3)
    for correlation_id in (3, 1, 2):
        gate.open(correlation_id)
    assert [(await client.receive(PRODUCE, 9))[0] for _ in range(3)] == [1, 2, 3]


@on_a_loop
async def test_another_request_waits_until_delayed_produce_requests_complete() -> None:
    gate = Gate()
    client = Server({PRODUCE: gate.handle, LIST: gate.handle}).connect()
    await client.send(a_produce(1), a_produce(2), a_list(3), a_produce(4))
    await gate.until_begun(1, 2)
    await turns()
    gate.open(2)
    await turns()
    assert gate.begun == [1, 2]
    gate.open(1)
    await gate.until_begun(1, 2, 3)
    await turns()
    gate.open(3)
    await gate.until_begun(1, 2, 3, 4)
    gate.open(4)
    keys = [PRODUCE, PRODUCE, LIST, PRODUCE]
    versions = [9, 9, 1, 9]
    responses = [(await client.receive(k, v))[0] for k, v in zip(keys, versions, strict=True)]
    assert responses == [1, 2, 3, 4]


@on_a_loop
async def test_no_request_starts_behind_a_suspended_request_of_another_api() -> None:
    gate = Gate()
    client = Server({PRODUCE: gate.handle, LIST: gate.handle}).connect()
    await client.send(a_list(1))
    await gate.until_begun(1)
    await client.send(a_produce(2))
    await turns()
    assert gate.begun == [1]
    gate.open(1)
    await gate.until_begun(1, 2)
    gate.open(2)
    assert (await client.receive(LIST, 1))[0] == 1
    assert (await client.receive(PRODUCE, 9))[0] == 2


@on_a_loop
async def test_a_produce_request_that_has_not_appended_yet_is_not_overtaken() -> None:
    before, after = Gate(), Gate(have_appended=False)

    async def produce(request: ProduceRequest, context: RequestContext) -> ProduceResponse:
        if context.correlation_id == 2:
            await after.handle(request, context)
        return await before.handle(request, context)  # type: ignore[no-any-return]

    client = Server({PRODUCE: produce}).connect()
    await client.send(a_produce(1), a_produce(2), a_produce(3))
    await after.until_begun(2)
    before.open(1)
    await turns()
    assert before.begun == [1]
    after.open(2)
    await before.until_begun(1, 2)
    before.open(2)
    await before.until_begun(1, 2, 3)
    before.open(3)
    assert [(await client.receive(PRODUCE, 9))[0] for _ in range(3)] == [1, 2, 3]


@on_a_loop
async def test_a_response_ready_at_once_waits_for_an_earlier_delayed_one() -> None:
    gate = Gate()

    async def park_the_first(request: ProduceRequest, context: RequestContext) -> ProduceResponse:
        if context.correlation_id == 1:
            await gate.handle(request, context)
        return ProduceResponse()

    client = Server({PRODUCE: park_the_first}).connect()
    await client.send(a_produce(1), a_produce(2))
    await gate.until_begun(1)
    await turns()
    assert client.connection.responses.pending_count == 2
    gate.open(1)
    assert [(await client.receive(PRODUCE, 9))[0] for _ in range(2)] == [1, 2]


@settings(max_examples=30, deadline=None)
@given(st.permutations(range(8)), st.integers(1, 8))
def test_responses_keep_the_order_of_requests_whichever_completes_first(
    ends: list[int], sent_together: int
) -> None:
    @on_a_loop
    async def scenario() -> None:
        gate = Gate()
        client = Server({PRODUCE: gate.handle}).connect()
        for start in range(0, 8, sent_together):
            batch = [a_produce(i) for i in range(start, min(start + sent_together, 8))]
            await client.send(*batch)
        await gate.until_begun(*range(8))
        for correlation_id in ends:
            gate.open(correlation_id)
            if correlation_id % 2:
                await turns(2)
        assert [(await client.receive(PRODUCE, 9))[0] for _ in range(8)] == list(range(8))

    scenario()
