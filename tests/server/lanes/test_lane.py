"""The pipeline and a lane: each outcome has the effect and the metrics that a handler's has."""

import asyncio
from typing import Any

import pytest
from tests.log_records import barnabas_log_lines
from tests.server.harness import PRODUCE, Server, a_produce, frame, on_a_loop, turns

from barnabas.server.lanes import _lane
from barnabas.server.lanes._lane import LaneRequest
from barnabas.server.lanes.delayed_response import DelayedResponse
from barnabas.server.network.throttle import ConnectionThrottle
from barnabas.server.request_context import RequestContext
from barnabas.wire._cursor import Sink
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)

VERSION = 9
NAME = "by the lane"
RESPONSE = ProduceResponse(
    responses=[
        TopicProduceResponse(name=NAME, partition_responses=[PartitionProduceResponse(index=0)])
    ]
).write(VERSION)
"""The handler's response is empty."""

THROTTLE_AT = len(RESPONSE) - 5
"""Only the tagged fields follow it."""


async def respond(_: ProduceRequest, __: RequestContext) -> ProduceResponse:
    return ProduceResponse()


class ScriptedLane(_lane.Lane):
    """Has the outcome of the test for each request, by its correlation id."""

    outcomes: dict[int, int]
    waits: dict[int, "asyncio.Future[bool]"]

    def __init__(self, server: "LaneServer", outcomes: dict[int, int]) -> None:
        super().__init__(server.broker.metrics.request("Produce"))
        self.outcomes = outcomes
        self.broker = server.broker
        self.waits = {}
        self.waits_again: list[asyncio.Future[bool]] = []
        self.allows_next_produce = True
        self.is_exempt = False
        self.seen: list[Any] = []

    def serve(self, request: LaneRequest) -> int:
        cursor = request.cursor
        acks = (cursor.length(True), cursor.int16())[1]
        self.seen.append((request.version, request.client_id, request.correlation_id, acks))
        outcome = self.outcomes[request.correlation_id]
        request.is_exempt = self.is_exempt
        if outcome == _lane.RESPONDED:
            request.throttle_at = self.write(request.sink)
        elif outcome == _lane.DELAYED:
            self.waits[request.correlation_id] = asyncio.get_running_loop().create_future()
            context = request.context(self.broker)
            context.allows_next_produce = self.allows_next_produce
            wait = self.waits[request.correlation_id]
            DelayedResponse(request, context, self.metrics, wait, self.write)
        elif outcome == _lane.DECLINED:
            request.sink.raw(b"left behind")
        return outcome

    def write(self, sink: Sink) -> "int | asyncio.Future[bool]":
        if self.waits_again:
            return self.waits_again.pop()
        sink.raw(RESPONSE)
        self.metrics.errors[ErrorCode.NONE] += 1
        return THROTTLE_AT


class LaneServer(Server):
    def __init__(self, *outcomes: int) -> None:
        lanes: dict[Any, Any] = {}
        super().__init__({PRODUCE: respond}, lanes=lanes)
        self.lane = lanes[PRODUCE] = ScriptedLane(self, dict(enumerate(outcomes)))


def name_of(response: ProduceResponse) -> str:
    return response.responses[0].name if response.responses else ""


@on_a_loop
async def test_a_lane_responds_or_leaves_the_request_to_the_handler() -> None:
    server = LaneServer(_lane.RESPONDED, _lane.DECLINED, _lane.RESPONDED)
    client = server.connect()
    await client.send(a_produce(0), a_produce(1), a_produce(2))
    received = [await client.receive(PRODUCE, VERSION) for _ in range(3)]
    assert [(number, name_of(response)) for number, response in received] == [
        (0, NAME),
        (1, ""),
        (2, NAME),
    ]
    assert server.lane.seen == [(VERSION, "k", number, 1) for number in range(3)]


@on_a_loop
async def test_requests_of_a_lane_are_counted_once_and_timed() -> None:
    server = LaneServer(_lane.RESPONDED, _lane.DECLINED, _lane.NO_RESPONSE, _lane.DELAYED)
    client = server.connect()
    await client.send(*map(a_produce, range(4)))
    await client.receive(PRODUCE, VERSION)
    await client.receive(PRODUCE, VERSION)
    server.lane.waits[3].set_result(True)
    assert (await client.receive(PRODUCE, VERSION))[0] == 3
    metrics = server.broker.metrics.request("Produce")
    assert metrics.requests[VERSION] == 4
    assert metrics.request_bytes.count == metrics.queue_ns.count == metrics.local_ns.count == 4
    assert metrics.remote_ns.count == 1
    assert metrics.total_ns.count == metrics.response_send_ns.count == 3
    assert metrics.errors == {ErrorCode.NONE: 2}  # the response of the handler has none


@on_a_loop
async def test_a_delayed_response_keeps_its_position_and_lets_later_produce_requests_start() -> (
    None
):
    server = LaneServer(_lane.DELAYED, _lane.RESPONDED, _lane.DELAYED)
    client = server.connect()
    await client.send(*map(a_produce, range(3)))
    while len(server.lane.seen) < 3:
        await turns(1)
    server.lane.waits[2].set_result(True)
    await turns()
    assert client.connection.is_busy
    server.lane.waits[0].set_result(True)
    assert [(await client.receive(PRODUCE, VERSION))[0] for _ in range(3)] == [0, 1, 2]
    assert not client.connection.is_busy


@on_a_loop
async def test_no_request_starts_before_a_delayed_response_that_does_not_allow_it() -> None:
    server = LaneServer(_lane.DELAYED, _lane.RESPONDED)
    server.lane.allows_next_produce = False
    client = server.connect()
    await client.send(a_produce(0), a_produce(1))
    await turns()
    assert len(server.lane.seen) == 1
    server.lane.waits[0].set_result(True)
    assert [(await client.receive(PRODUCE, VERSION))[0] for _ in range(2)] == [0, 1]


@on_a_loop
async def test_a_delayed_response_may_have_to_wait_once_more() -> None:
    server = LaneServer(_lane.DELAYED)
    another = asyncio.get_running_loop().create_future()
    server.lane.waits_again.append(another)
    client = server.connect()
    await client.send(a_produce(0))
    while not server.lane.waits:
        await turns(1)
    server.lane.waits[0].set_result(True)
    await turns()
    metrics = server.broker.metrics.request("Produce")
    assert client.connection.is_busy
    assert metrics.remote_ns.count == 0
    another.set_result(True)
    assert (await client.receive(PRODUCE, VERSION))[0] == 0
    assert metrics.remote_ns.count == 1


@on_a_loop
async def test_a_delayed_response_of_a_disconnected_client_is_cancelled() -> None:
    server = LaneServer(_lane.DELAYED)
    client = server.connect()
    await client.send(a_produce(0))
    while not server.lane.waits:
        await turns(1)
    client.socket.close()
    await turns()
    assert server.lane.waits[0].cancelled()
    assert len(server.network) == 0


@on_a_loop
async def test_a_failed_delay_closes_the_connection(caplog: pytest.LogCaptureFixture) -> None:
    server = LaneServer(_lane.DELAYED)
    client = server.connect()
    await client.send(a_produce(0))
    while not server.lane.waits:
        await turns(1)
    server.lane.waits[0].set_exception(LookupError("a bug"))
    assert await client.is_closed()
    failed, closed = barnabas_log_lines(caplog)
    assert failed.startswith("Failed to handle a request from ")
    assert closed.endswith("internal error")


@pytest.mark.parametrize("outcome", [_lane.RESPONDED, _lane.DELAYED, _lane.NO_RESPONSE])
def test_requests_of_lanes_count_for_quotas(outcome: int, monkeypatch: pytest.MonkeyPatch) -> None:
    delays_ms: list[int] = []
    monkeypatch.setattr(ConnectionThrottle, "start", lambda _, delay_ms: delays_ms.append(delay_ms))

    @on_a_loop
    async def produce() -> None:
        server = LaneServer(outcome)
        server.broker.quotas.update({(("user", "ANONYMOUS"),): {"producer_byte_rate": 100}})
        client = server.connect()
        request = a_produce(0, 2000)
        # The size is measured over ten seconds.
        delay_ms = 10 * (len(frame(*request)) - 4) - 10_000
        await client.send(request)
        while not server.lane.seen:
            await turns(1)
        if outcome == _lane.DELAYED:
            assert not delays_ms
            server.lane.waits[0].set_result(True)
        if outcome != _lane.NO_RESPONSE:
            _, response = await client.receive(PRODUCE, VERSION)
            assert response.throttle_time_ms == delay_ms
        assert delays_ms == [delay_ms]

    produce()


@on_a_loop
async def test_exempt_requests_of_lanes_count_for_no_client() -> None:
    server = LaneServer(_lane.RESPONDED, _lane.RESPONDED)
    quotas = server.broker.quotas
    quotas.update({(("user", "ANONYMOUS"),): {"request_percentage": 1e-9}})
    client = server.connect()
    server.lane.is_exempt = True
    await client.send(a_produce(0))
    assert (await client.receive(PRODUCE, VERSION))[1].throttle_time_ms == 0
    assert not len(quotas.request_time.sensors)
    assert quotas.exempt_time.per_second(quotas.now_ms()) > 0
    server.lane.is_exempt = False
    await client.send(a_produce(1))
    assert (await client.receive(PRODUCE, VERSION))[1].throttle_time_ms > 0
