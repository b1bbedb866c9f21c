"""A peer sends requests in order, matches responses in order, and reports why one is missing."""

import asyncio
import errno
import socket
from typing import Any

import pytest
from tests.net.harness import (
    A_MINUTE_MS,
    HOST,
    REQUEST,
    RawServer,
    a_peer,
    api_versions_response,
    send_request,
    start_server,
)
from tests.server.harness import LIST, PRODUCE, Gate, a_produce, name_the_client, on_a_loop, turns

from barnabas.net import SocketPeers
from barnabas.net import peer as peer_module
from barnabas.server.request_context import RequestContext
from barnabas.testing.ports import free_port
from barnabas.wire.apis import ApiKey
from barnabas.wire.messages.configs import ListConfigResourcesResponse
from barnabas.wire.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)


@on_a_loop
async def test_a_request_gets_the_response_of_the_server_at_the_address() -> None:
    _, port = start_server({LIST: name_the_client})
    response = await send_request(a_peer(port), REQUEST)
    assert response.config_resources[0].resource_name == "node-1-test@127.0.0.1"


@on_a_loop
async def test_responses_arrive_in_the_order_of_the_requests() -> None:
    _, port = start_server({LIST: name_the_client, PRODUCE: Gate().handle})
    responses: list[Any] = []
    done = asyncio.Event()

    def on_response(response: Any) -> None:
        responses.append(response)
        if len(responses) == 20:
            done.set()

    peer = a_peer(port)
    for _ in range(20):
        peer.send(REQUEST, A_MINUTE_MS, on_response)
    await done.wait()
    assert all(isinstance(response, ListConfigResourcesResponse) for response in responses)


@on_a_loop
async def test_requests_are_sent_without_waiting_for_earlier_responses() -> None:
    gate = Gate()
    _, port = start_server({PRODUCE: gate.handle})
    peer = a_peer(port)
    for _ in range(3):
        peer.send(a_produce(0)[0], A_MINUTE_MS, lambda _: None)
    while len(gate.begun) < 3:
        await asyncio.sleep(0)


@on_a_loop
async def test_all_requests_of_one_purpose_share_a_connection() -> None:
    server, port = start_server({LIST: name_the_client})
    peers = SocketPeers(asyncio.get_running_loop(), "node-1")
    assert peers.at(HOST, port, "a") is peers.at(HOST, port, "a")
    for purpose in ("a", "a", "b"):
        await send_request(peers.at(HOST, port, purpose), REQUEST)
    assert len(server.network) == 2


@on_a_loop
async def test_a_peer_does_not_connect_before_its_first_request() -> None:
    server, port = start_server({LIST: name_the_client})
    a_peer(port)
    await turns()
    assert len(server.network) == 0


@on_a_loop
async def test_a_host_name_is_resolved() -> None:
    _, port = start_server({LIST: name_the_client})
    peer = SocketPeers(asyncio.get_running_loop(), "node-1").at("localhost", port, "test")
    assert isinstance(await send_request(peer, REQUEST), ListConfigResourcesResponse)


@on_a_loop
async def test_a_host_name_that_cannot_be_resolved_is_an_error_with_the_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def unknown(*_: Any, **__: Any) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    peer = SocketPeers(asyncio.get_running_loop(), "node-1").at("castle.invalid", 1, "test")
    failure = await send_request(peer, REQUEST)
    assert isinstance(failure, OSError)
    assert not isinstance(failure, ConnectionError | TimeoutError)
    assert "castle.invalid:1: Name or service not known" in str(failure)


@on_a_loop
async def test_an_api_that_the_peer_does_not_serve_is_an_error_and_the_connection_stays_open() -> (
    None
):
    server, port = start_server({LIST: name_the_client})
    peer = a_peer(port)
    failure = await send_request(peer, FetchRequest())
    assert isinstance(failure, OSError)
    assert failure.errno == errno.EPROTONOSUPPORT
    assert isinstance(await send_request(peer, REQUEST), ListConfigResourcesResponse)
    assert len(server.network) == 1


@on_a_loop
async def test_large_responses_arrive_whole_and_release_their_memory() -> None:
    async def fetch(request: FetchRequest, _: RequestContext) -> FetchResponse:
        size = request.max_bytes
        records = bytes([size % 251]) * size
        partition = PartitionData(partition_index=0, records=records, aborted_transactions=None)
        return FetchResponse(
            responses=[FetchableTopicResponse(topic="t", partitions=[partition])],
            throttle_time_ms=0,
        )

    _, port = start_server({ApiKey.FETCH: fetch})
    peer = a_peer(port)
    sizes = [0, 10, 70_000, 1 << 20, 3, 5 << 20, (1 << 20) + 1]
    received: list[bytes] = []
    done = asyncio.Event()

    def on_response(response: FetchResponse) -> None:
        records = response.responses[0].partitions[0].records
        received.append(bytes(records))  # type: ignore[arg-type]
        if len(received) == len(sizes):
            done.set()

    for size in sizes:
        peer.send(FetchRequest(max_bytes=size), A_MINUTE_MS, on_response)
    await done.wait()
    assert received == [bytes([size % 251]) * size for size in sizes]
    assert peer._options.buffers.used_bytes == 0, "memory is in use only while a frame arrives"


# Failures


@on_a_loop
async def test_a_port_without_a_listener_refuses_the_connection() -> None:
    failure = await send_request(a_peer(port := free_port()), REQUEST)
    assert isinstance(failure, ConnectionRefusedError)
    assert f"{HOST}:{port}" in str(failure)


@on_a_loop
async def test_every_request_in_flight_fails_when_the_peer_disconnects() -> None:
    server = RawServer()
    peer = a_peer(server.port)
    waiting = [asyncio.ensure_future(send_request(peer, REQUEST)) for _ in range(3)]
    await server.negotiate(LIST)
    await server.receive_request()
    server.disconnect()
    assert all(
        isinstance(outcome, ConnectionResetError) for outcome in await asyncio.gather(*waiting)
    )


@on_a_loop
async def test_a_peer_that_disconnected_is_connected_to_again_by_the_next_request() -> None:
    server = RawServer()
    peer = a_peer(server.port)
    for _ in range(2):
        waiting = asyncio.ensure_future(send_request(peer, REQUEST))
        await server.negotiate(LIST)
        server.disconnect()
        assert isinstance(await waiting, ConnectionResetError)
        peer._last_correlation_id = 0  # the server negotiates with correlation id 1


@on_a_loop
async def test_a_connection_that_broke_while_idle_fails_no_request() -> None:
    server, port = start_server({LIST: name_the_client})
    peer = a_peer(port)
    await send_request(peer, REQUEST)
    for connection in list(server.network._connections):
        connection.close()
    while peer._transport is not None:
        await asyncio.sleep(0)
    assert isinstance(await send_request(peer, REQUEST), ListConfigResourcesResponse)


@on_a_loop
async def test_a_response_that_is_late_closes_the_connection() -> None:
    server = RawServer()
    peer = a_peer(server.port)
    timed_out = asyncio.ensure_future(send_request(peer, REQUEST, timeout_ms=1))
    behind = asyncio.ensure_future(send_request(peer, REQUEST))
    await server.accept()
    assert isinstance(await timed_out, TimeoutError)
    assert isinstance(await behind, TimeoutError), "it waited for the same peer"
    await server.receive_request()
    assert await server.is_disconnected()


@on_a_loop
async def test_the_deadline_of_a_completed_request_does_not_apply_to_the_next() -> None:
    _, port = start_server({LIST: name_the_client})
    peer = a_peer(port)
    assert isinstance(
        await send_request(peer, REQUEST, timeout_ms=30_000), ListConfigResourcesResponse
    )
    first = peer._timer
    assert first is not None
    waiting = asyncio.ensure_future(send_request(peer, REQUEST))
    await asyncio.sleep(0)
    first.cancel()
    peer._check_deadlines()
    assert peer._timer is not None, "the deadline of the next request has a timer"
    assert isinstance(await waiting, ListConfigResourcesResponse)


@on_a_loop
async def test_an_invalid_response_closes_the_connection() -> None:
    invalid = {
        "not a response": (3, b"\xff" * 10),
        "cut short": (3, b"\0"),
        "to another request": (99, ListConfigResourcesResponse().write(1)),
        "longer than a response": (3, b"\0" + ListConfigResourcesResponse().write(1) + b"!"),
    }
    for correlation_id, body in invalid.values():
        server = RawServer()
        peer = a_peer(server.port)
        waiting = [asyncio.ensure_future(send_request(peer, REQUEST)) for _ in range(2)]
        await server.negotiate(LIST)
        await server.receive_request()
        await server.send_response(correlation_id - 1, body)
        for failure in await asyncio.gather(*waiting):
            assert isinstance(failure, ConnectionAbortedError)
        await server.receive_request()
        assert await server.is_disconnected()


@pytest.mark.parametrize("length", [-1, 1 << 20, 2**31 - 1])
def test_a_frame_of_an_invalid_size_closes_the_connection(length: int) -> None:
    @on_a_loop
    async def scenario() -> None:
        server = RawServer()
        waiting = asyncio.ensure_future(
            send_request(a_peer(server.port, max_response_bytes=9000), REQUEST)
        )
        await server.negotiate(LIST)
        await server.send_bytes(length.to_bytes(4, "big", signed=True))
        failure = await waiting
        assert isinstance(failure, ConnectionAbortedError)
        assert f"a frame of {length} bytes" in str(failure)

    scenario()


@on_a_loop
async def test_a_peer_that_expects_tls_is_named_as_the_reason() -> None:
    server = RawServer()
    waiting = asyncio.ensure_future(send_request(a_peer(server.port), REQUEST))
    await server.accept()
    await server.send_bytes(b"\x15\x03\x03\0\x02\x02\x50")
    assert "the peer expects TLS" in str(await waiting)


@on_a_loop
async def test_a_peer_that_speaks_http_is_named_as_the_reason() -> None:
    server = RawServer()
    waiting = asyncio.ensure_future(send_request(a_peer(server.port), REQUEST))
    await server.accept()
    await server.send_bytes(b"HTTP/1.1 400 Bad Request\r\n\r\n")
    assert "the peer speaks HTTP: it is not a Kafka broker" in str(await waiting)


@on_a_loop
async def test_a_response_without_a_request_closes_the_connection() -> None:
    server = RawServer()
    peer = a_peer(server.port)
    waiting = asyncio.ensure_future(send_request(peer, REQUEST))
    await server.negotiate(LIST)
    await server.receive_request()
    response = b"\0" + ListConfigResourcesResponse().write(1)
    await server.send_response(2, response)
    assert isinstance(await waiting, ListConfigResourcesResponse)
    await server.send_response(3, response)
    assert await server.is_disconnected()


@on_a_loop
async def test_a_peer_without_any_version_of_apiversions_is_disconnected() -> None:
    server = RawServer()
    waiting = asyncio.ensure_future(send_request(a_peer(server.port), REQUEST))
    await server.accept()
    for correlation_id in (1, 2):
        await server.receive_request()
        await server.send_response(correlation_id, b"\0\x23\0\0\0\0")
    assert isinstance(await waiting, ConnectionAbortedError)


@on_a_loop
async def test_a_peer_with_an_older_apiversions_gets_the_request_in_version_0() -> None:
    server = RawServer()
    waiting = asyncio.ensure_future(send_request(a_peer(server.port), REQUEST))
    await server.accept()
    assert (await server.receive_request())[:4] == b"\0\x12\0\x03"
    await server.send_response(1, b"\0\x23\0\0\0\0")
    assert (await server.receive_request())[:4] == b"\0\x12\0\0"
    await server.send_response(2, api_versions_response(LIST).write(0))
    await server.receive_request()
    await server.send_response(3, b"\0" + ListConfigResourcesResponse().write(1))
    assert isinstance(await waiting, ListConfigResourcesResponse)


@on_a_loop
async def test_closing_a_peer_fails_its_requests_in_flight() -> None:
    server, port = start_server({PRODUCE: Gate().handle})
    peers = SocketPeers(asyncio.get_running_loop(), "node-1")
    waiting = asyncio.ensure_future(send_request(peers.at(HOST, port, "test"), a_produce(0)[0]))
    while not len(server.network):
        await asyncio.sleep(0)
    peers.close()
    assert isinstance(await waiting, ConnectionAbortedError)


@on_a_loop
async def test_a_response_callback_may_close_the_peer_or_raise_without_harm_to_others() -> None:
    _, port = start_server({LIST: name_the_client})
    peer = a_peer(port)
    outcomes: list[Any] = []

    def fail(_: Any) -> None:
        raise ValueError("a bug in a callback")

    def close(_: Any) -> None:
        peer.close()

    peer.send(REQUEST, A_MINUTE_MS, fail)
    peer.send(REQUEST, A_MINUTE_MS, close)
    peer.send(REQUEST, A_MINUTE_MS, outcomes.append)
    while not outcomes:
        await asyncio.sleep(0)
    assert isinstance(outcomes[0], ConnectionAbortedError)
    assert isinstance(await send_request(peer, REQUEST), ListConfigResourcesResponse), (
        "it connects again"
    )


@on_a_loop
async def test_the_number_of_requests_in_flight_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peer_module, "MAX_IN_FLIGHT", 2)
    server = RawServer()
    peer = a_peer(server.port)
    for _ in range(2):
        peer.send(REQUEST, A_MINUTE_MS, lambda _: None)
    failure = await send_request(peer, REQUEST)
    assert failure.errno == errno.ENOBUFS


@on_a_loop
async def test_a_socket_that_connected_to_itself_counts_as_refused() -> None:
    # The kernel may choose the target port as the local port: the socket then connects to itself.
    port = free_port()
    real = socket.socket

    class Bound(real):  # type: ignore[misc, valid-type]
        def connect(self, address: Any) -> None:
            if address[1] == port and self.getsockname()[1] == 0:
                self.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                self.bind(address)
            super().connect(address)

    socket.socket = Bound  # type: ignore[misc]
    try:
        failure = await send_request(a_peer(port), REQUEST)
    finally:
        socket.socket = real  # type: ignore[misc]
    assert isinstance(failure, ConnectionRefusedError)
