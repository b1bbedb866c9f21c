"""Frames in, responses out, in order and within limits."""

import asyncio
import logging
import mmap
import socket
from struct import pack

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.log_records import barnabas_log_lines
from tests.server.harness import (
    LIST,
    PRODUCE,
    Client,
    Gate,
    Server,
    a_list,
    a_produce,
    frame,
    name_the_client,
    on_a_loop,
    turns,
)

from barnabas.net import buffers
from barnabas.server.network import _connection as connection_module
from barnabas.server.network import _frames
from barnabas.server.request_context import RequestContext
from barnabas.wire.apis import ApiKey
from barnabas.wire.messages.configs import (
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)
from barnabas.wire.messages.produce import ProduceRequest, ProduceResponse


@on_a_loop
async def test_a_response_has_the_correlation_id_of_its_request() -> None:
    client = Server({LIST: name_the_client}).connect()
    await client.send(a_list(7))
    correlation_id, response = await client.receive(LIST, 1)
    assert correlation_id == 7
    assert response.config_resources[0].resource_name == "k@10.0.0.1"


@on_a_loop
async def test_all_responses_of_one_turn_leave_with_one_send() -> None:
    client = Server({LIST: name_the_client}).connect(kind=socket.SOCK_SEQPACKET)
    await client.send(*(a_list(i) for i in range(5)))
    # A socket of this kind receives what was sent with one call.
    received = await asyncio.get_running_loop().sock_recv(client.socket, 65_536)
    for _ in range(5):
        received = received[4 + int.from_bytes(received[:4], "big") :]
    assert not received


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_frames_may_be_split_anywhere(data: st.DataObject) -> None:
    sizes = data.draw(st.lists(st.integers(0, 9000), min_size=1, max_size=4))
    stream = b"".join(frame(*a_produce(i, size)) for i, size in enumerate(sizes))
    cuts = sorted(data.draw(st.sets(st.integers(0, len(stream)), max_size=6)) | {len(stream)})

    @on_a_loop
    async def scenario() -> None:
        received: list[int] = []

        async def measure(request: ProduceRequest, _: RequestContext) -> ProduceResponse:
            records = request.topic_data[0].partition_data[0].records
            received.append(len(records))  # type: ignore[arg-type]
            return ProduceResponse()

        client = Server({PRODUCE: measure}).connect()
        start = 0
        for cut in cuts:
            await client.send_bytes(stream[start:cut])
            await turns(3)
            start = cut
        responses = [(await client.receive(PRODUCE, 9))[0] for _ in sizes]
        assert responses == list(range(len(sizes)))
        assert received == sizes

    scenario()


def test_two_frames_may_be_split_at_any_byte() -> None:
    stream = frame(*a_list(1)) + frame(*a_list(2))

    @on_a_loop
    async def scenario() -> None:
        server = Server({LIST: name_the_client})
        for cut in range(1, len(stream)):
            client = server.connect()
            await client.send_bytes(stream[:cut])
            await turns(3)
            await client.send_bytes(stream[cut:])
            assert [(await client.receive(LIST, 1))[0] for _ in range(2)] == [1, 2]
            client.socket.close()

    scenario()


@on_a_loop
async def test_a_request_may_arrive_byte_by_byte() -> None:
    client = Server({LIST: name_the_client}).connect()
    for byte in frame(*a_list(3)):
        await client.send_bytes(bytes([byte]))
        await turns(2)
    assert (await client.receive(LIST, 1))[0] == 3


@on_a_loop
async def test_a_frame_larger_than_the_shared_buffer_is_received_completely() -> None:
    seen = []

    async def check(request: ProduceRequest, _: RequestContext) -> ProduceResponse:
        seen.append(bytes(request.topic_data[0].partition_data[0].records))  # type: ignore[arg-type]
        return ProduceResponse()

    server = Server({PRODUCE: check})
    client = server.connect()
    content = bytes(range(256)) * 20_000  # 5 MB
    request, version, _ = a_produce(0)
    request.topic_data[0].partition_data[0].records = content
    await client.send((request, version, 1), a_produce(2))
    assert [(await client.receive(PRODUCE, 9))[0] for _ in range(2)] == [1, 2]
    assert seen[0] == content
    assert server.network.buffers.used_bytes == 0


@on_a_loop
async def test_a_larger_frame_may_fill_the_shared_buffer_to_the_last_byte(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(buffers, "SHARED_BYTES", 1 << 16)
    for module in (buffers, _frames):
        monkeypatch.setattr(module, "FIRST_STEP_BYTES", 1 << 16)

    async def accept(_: ProduceRequest, __: RequestContext) -> ProduceResponse:
        return ProduceResponse()

    client = Server({PRODUCE: accept}).connect()
    await client.send(a_produce(1, 150_000))
    assert (await client.receive(PRODUCE, 9))[0] == 1


@on_a_loop
async def test_bytes_after_a_request_within_its_frame_are_ignored() -> None:
    """As Kafka does; librdkafka sends such frames."""
    client = Server({LIST: name_the_client}).connect()
    content = frame(*a_list(1))[4:] + b"more"
    await client.send_bytes(pack(">i", len(content)) + content + frame(*a_list(2)))
    assert [(await client.receive(LIST, 1))[0] for _ in range(2)] == [1, 2]


# Errors


async def close_reason(client: Client, caplog: pytest.LogCaptureFixture) -> str:
    with caplog.at_level(logging.WARNING, "barnabas"):
        assert await client.is_closed()
    (line,) = barnabas_log_lines(caplog)
    return line


@on_a_loop
async def test_a_wake_up_without_bytes_keeps_the_start_of_a_length() -> None:
    """TLS has them often: a part of a record has arrived."""
    server = Server({LIST: name_the_client})
    client = server.connect()
    request = frame(*a_list(7))
    await client.send_bytes(request[:2])
    await turns()
    client.connection.on_readable()
    await client.send_bytes(request[2:])
    assert (await client.receive(LIST, 1))[0] == 7


@pytest.mark.parametrize("length", [-1, -(2**31), 1001, 2**31 - 1])
def test_a_hostile_length_closes_the_connection_with_one_line(
    length: int, caplog: pytest.LogCaptureFixture
) -> None:
    @on_a_loop
    async def scenario() -> None:
        client = Server({LIST: name_the_client}, request_max_bytes=1000).connect()
        await client.send_bytes(pack(">i", length))
        assert f"a request of {length} bytes" in await close_reason(client, caplog)

    scenario()


def test_a_client_that_sends_http_gets_an_http_response_that_names_the_mistake(
    caplog: pytest.LogCaptureFixture,
) -> None:
    @on_a_loop
    async def scenario() -> None:
        client = Server({LIST: name_the_client}).connect()
        await client.send_bytes(b"GET /subjects HTTP/1.1\r\nHost: localhost:9092\r\n\r\n")
        assert (await client.receive_bytes(12)) == b"HTTP/1.1 400"
        response = await client.receive_rest()
        head, body = response.split(b"\r\n\r\n")
        assert f"Content-Length: {len(body)}".encode() in head
        assert b"This port is for Kafka clients" in body
        assert "the client speaks HTTP" in await close_reason(client, caplog)

    scenario()


@pytest.mark.parametrize(
    ("sent", "reason"),
    [
        (b"\x16\x03\x01\x02\x00\x01\x00", "speaks TLS, and the listener is PLAINTEXT"),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "speaks HTTP"),
    ],
    ids=["TLS", "HTTP/2"],
)
def test_a_client_of_another_protocol_is_closed_with_a_line_that_names_it(
    sent: bytes, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    @on_a_loop
    async def scenario() -> None:
        client = Server({LIST: name_the_client}).connect()
        await client.send_bytes(sent)
        assert reason in await close_reason(client, caplog)

    scenario()


@pytest.mark.parametrize(
    ("requests", "described"),
    [
        ([], "10.0.0.1 (listener PLAINTEXT)"),
        ([frame(*a_list(1), client_id="")], "10.0.0.1 (listener PLAINTEXT)"),
        ([frame(*a_list(1), client_id=None)], "10.0.0.1 (listener PLAINTEXT)"),
        ([frame(*a_list(1), client_id="app")], "10.0.0.1 (client app, listener PLAINTEXT)"),
    ],
    ids=["no request", "empty", "null", "app"],
)
def test_the_line_of_a_closed_connection_has_a_client_id_only_if_there_is_one(
    requests: list[bytes], described: str, caplog: pytest.LogCaptureFixture
) -> None:
    @on_a_loop
    async def scenario() -> None:
        client = Server({LIST: name_the_client}).connect()
        for request in requests:
            await client.send_bytes(request)
            await client.receive(LIST, 1)
        await client.send_bytes(pack(">i", -1))
        line = await close_reason(client, caplog)
        assert line.startswith(f"Closed the connection of {described}: ")

    scenario()


@on_a_loop
async def test_a_large_frame_length_allocates_no_more_than_the_first_step() -> None:
    server = Server({LIST: name_the_client})
    clients = [server.connect() for _ in range(20)]
    for client in clients:
        await client.send_bytes(pack(">i", 99 << 20))
    await turns()
    assert len(server.network) == 20
    assert server.network.buffers.used_bytes <= 20 << 20


def test_requests_beyond_the_receive_limit_close_the_connection(
    caplog: pytest.LogCaptureFixture,
) -> None:
    @on_a_loop
    async def scenario() -> None:
        limit = 4 * mmap.PAGESIZE
        server = Server(
            {LIST: name_the_client}, request_max_bytes=limit, queued_max_request_bytes=limit
        )
        first, second = server.connect(), server.connect()
        await first.send_bytes(pack(">i", limit - 4) + b"begun")
        await turns()
        await second.send_bytes(pack(">i", limit - 4) + b"begun")
        assert "queued.max.request.bytes" in await close_reason(second, caplog)
        first.socket.close()
        await turns()
        assert server.network.buffers.used_bytes == 0

    scenario()


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "shorter than its header"),
        (b"\0\3\0\1", "shorter than its header"),
        (pack(">hhih", 74, 1, 0, 500), "exceeds the request"),
        (pack(">hhih", 18, 0, 0, 1), "exceeds the request"),
        (pack(">hhih", 999, 1, 0, -1), "API key 999 is not served"),
        (pack(">hhih", -1, 1, 0, -1), "API key -1 is not served"),
        (pack(">hhih", 74, 99, 0, -1), "ListConfigResources v99 is not served here, only 0-1"),
        (pack(">hhih", 74, -1, 0, -1), "ListConfigResources v-1 is not served"),
        (pack(">hhih", 74, 1, 0, 2) + b"\xff\xfe\0\1\0", "client id is not UTF-8"),
        (frame(*a_list(1))[4:-1], ""),
    ],
)
def test_a_malformed_request_closes_the_connection_with_one_line(
    content: bytes, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    @on_a_loop
    async def scenario() -> None:
        server = Server({LIST: name_the_client, ApiKey.API_VERSIONS: name_the_client})
        client = server.connect()
        await client.send(a_list(1))
        await client.receive(LIST, 1)
        await client.send_bytes(pack(">i", len(content)) + content)
        line = await close_reason(client, caplog)
        assert reason in line
        assert len(server.network) == 0

    scenario()


@on_a_loop
async def test_requests_before_a_protocol_violation_still_receive_responses() -> None:
    client = Server({LIST: name_the_client}).connect()
    await client.send_bytes(frame(*a_list(1)) + pack(">i", -5))
    assert (await client.receive(LIST, 1))[0] == 1
    assert await client.is_closed()


def test_an_internal_error_closes_only_its_own_connection(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class StumblingPipeline:
        def handle(self, *_: object) -> None:
            raise LookupError("a bug")

    @on_a_loop
    async def scenario() -> None:
        server = Server({LIST: name_the_client})
        client, other = server.connect(), server.connect()
        client.connection.pipeline = StumblingPipeline()
        await client.send(a_list(1))
        assert await client.is_closed()
        assert "a bug" in caplog.text
        await other.send(a_list(2))
        await other.receive(LIST, 1)

    scenario()


# Bounds


@on_a_loop
async def test_a_client_that_reads_no_responses_is_not_read_from() -> None:
    handled = 0

    async def large(
        _: ListConfigResourcesRequest, __: RequestContext
    ) -> ListConfigResourcesResponse:
        nonlocal handled
        handled += 1
        name = "x" * 30_000
        return ListConfigResourcesResponse(config_resources=[ConfigResource(resource_name=name)])

    client = Server({LIST: large}).connect()
    await client.send(*(a_list(i) for i in range(400)))
    await turns(50)
    assert client.connection.responses.unsent_bytes < 2 * connection_module.MAX_UNSENT_BYTES
    assert handled < 100
    assert [(await client.receive(LIST, 1))[0] for _ in range(400)] == list(range(400))
    assert handled == 400


@on_a_loop
async def test_requests_in_flight_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_module, "MAX_IN_FLIGHT_REQUESTS", 3)
    gate = Gate()
    client = Server({PRODUCE: gate.handle}).connect()
    await client.send(*(a_produce(i) for i in range(7)))
    await gate.until_begun(0, 1, 2)
    await turns()
    assert gate.begun == [0, 1, 2]
    for i in range(7):
        while i not in gate.parked:
            await asyncio.sleep(0)
        gate.open(i)
    assert [(await client.receive(PRODUCE, 9))[0] for _ in range(7)] == list(range(7))


@on_a_loop
async def test_one_connection_lets_others_have_their_turn() -> None:
    order: list[str] = []

    async def note(
        _: ListConfigResourcesRequest, context: RequestContext
    ) -> ListConfigResourcesResponse:
        order.append(context.host)
        return ListConfigResourcesResponse()

    server = Server({LIST: note}, queued_max_requests=5)
    greedy, modest = server.connect("greedy"), server.connect("modest")
    await greedy.send(*(a_list(i) for i in range(50)))
    await modest.send(a_list(0))
    await modest.receive(LIST, 1)
    assert order.index("modest") <= 10
    assert [(await greedy.receive(LIST, 1))[0] for _ in range(50)] == list(range(50))


# The end


@on_a_loop
async def test_a_client_that_disconnects_frees_its_memory() -> None:
    server = Server({LIST: name_the_client})
    client = server.connect()
    await client.send_bytes(frame(*a_list(1))[:9])
    await turns()
    assert server.network.buffers.used_bytes > 0
    client.socket.close()
    await turns()
    assert len(server.network) == 0
    assert server.network.buffers.used_bytes == 0


@on_a_loop
async def test_the_delayed_request_of_a_disconnected_client_is_cancelled() -> None:
    cancelled = []

    async def park(
        _: ListConfigResourcesRequest, context: RequestContext
    ) -> ListConfigResourcesResponse:
        try:
            await context.broker.purgatory.delay(["a", "b"], 60_000, lambda *_: True, "Fetch")
        except asyncio.CancelledError:
            cancelled.append(context.correlation_id)
            raise
        return ListConfigResourcesResponse()

    server = Server({LIST: park})
    client = server.connect()
    await client.send(a_list(5))
    while not len(server.broker.purgatory):
        await asyncio.sleep(0)
    client.socket.close()
    await turns()
    assert cancelled == [5]
    assert len(server.broker.purgatory) == 0
    assert len(server.broker.timer) == 0


@on_a_loop
async def test_a_change_in_progress_completes_after_its_client_disconnects() -> None:
    gate = Gate()
    finished = []

    async def change(
        request: ListConfigResourcesRequest, context: RequestContext
    ) -> ListConfigResourcesResponse:
        response = await gate.handle(request, context)
        finished.append(context.correlation_id)
        return response  # type: ignore[no-any-return]

    client = Server({LIST: change}).connect()
    await client.send(a_list(1))
    await gate.until_begun(1)
    client.socket.close()
    await turns()
    gate.open(1)
    await turns()
    assert finished == [1]
