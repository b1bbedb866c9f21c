"""A peer is asked in order, answers in order, and whoever asked learns why it does not."""

import asyncio
import errno
import socket
from typing import Any

import pytest
from tests.net.harness import (
    A_MINUTE_MS,
    ASK,
    HOST,
    Stranger,
    a_peer,
    ask,
    listening,
    versions_of,
)
from tests.server.harness import LIST, PRODUCE, Gate, a_produce, name_the_client, on_a_loop, turns

from barnabas.net import SocketPeers
from barnabas.net import peer as peer_module
from barnabas.server.request_context import RequestContext
from barnabas.testing.ports import free_port
from barnabas.wire.apis import ApiKey
from barnabas.wire.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from barnabas.wire.messages.list_config_resources import ListConfigResourcesResponse


@on_a_loop
async def test_a_request_is_answered_by_whoever_listens_there() -> None:
    _, port = listening({LIST: name_the_client})
    response = await ask(a_peer(port), ASK)
    assert response.config_resources[0].resource_name == "node-1-test@127.0.0.1"


@on_a_loop
async def test_answers_come_in_the_order_of_the_requests() -> None:
    _, port = listening({LIST: name_the_client, PRODUCE: Gate().handle})
    answers: list[Any] = []
    done = asyncio.Event()

    def answered(response: Any) -> None:
        answers.append(response)
        if len(answers) == 20:
            done.set()

    peer = a_peer(port)
    for _ in range(20):
        peer.send(ASK, A_MINUTE_MS, answered)
    await done.wait()
    assert all(isinstance(each, ListConfigResourcesResponse) for each in answers)


@on_a_loop
async def test_requests_leave_without_waiting_for_answers() -> None:
    gate = Gate()
    _, port = listening({PRODUCE: gate.handle})
    peer = a_peer(port)
    for _ in range(3):
        peer.send(a_produce(0)[0], A_MINUTE_MS, lambda _: None)
    while len(gate.begun) < 3:
        await asyncio.sleep(0)


@on_a_loop
async def test_one_connection_serves_all_requests_of_a_purpose() -> None:
    server, port = listening({LIST: name_the_client})
    peers = SocketPeers(asyncio.get_running_loop(), "node-1")
    assert peers.at(HOST, port, "a") is peers.at(HOST, port, "a")
    for purpose in ("a", "a", "b"):
        await ask(peers.at(HOST, port, purpose), ASK)
    assert len(server.network) == 2


@on_a_loop
async def test_nothing_is_opened_before_it_is_needed() -> None:
    server, port = listening({LIST: name_the_client})
    a_peer(port)
    await turns()
    assert len(server.network) == 0


@on_a_loop
async def test_a_name_is_resolved() -> None:
    _, port = listening({LIST: name_the_client})
    peer = SocketPeers(asyncio.get_running_loop(), "node-1").at("localhost", port, "test")
    assert isinstance(await ask(peer, ASK), ListConfigResourcesResponse)


@on_a_loop
async def test_a_name_that_nobody_knows_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: Any, **__: Any) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    peer = SocketPeers(asyncio.get_running_loop(), "node-1").at("castle.invalid", 1, "test")
    failure = await ask(peer, ASK)
    assert isinstance(failure, OSError)
    assert not isinstance(failure, ConnectionError | TimeoutError)
    assert "castle.invalid:1: Name or service not known" in str(failure)


@on_a_loop
async def test_an_api_that_the_peer_does_not_serve_is_told_and_the_connection_stays() -> None:
    server, port = listening({LIST: name_the_client})
    peer = a_peer(port)
    failure = await ask(peer, FetchRequest())
    assert isinstance(failure, OSError)
    assert failure.errno == errno.EPROTONOSUPPORT
    assert isinstance(await ask(peer, ASK), ListConfigResourcesResponse)
    assert len(server.network) == 1


@on_a_loop
async def test_large_answers_arrive_whole_again_and_again() -> None:
    async def fetch(request: FetchRequest, _: RequestContext) -> FetchResponse:
        size = request.max_bytes
        records = bytes([size % 251]) * size
        partition = PartitionData(partition_index=0, records=records, aborted_transactions=None)
        return FetchResponse(
            responses=[FetchableTopicResponse(topic="t", partitions=[partition])],
            throttle_time_ms=0,
        )

    _, port = listening({ApiKey.FETCH: fetch})
    peer = a_peer(port)
    sizes = [0, 10, 70_000, 1 << 20, 3, 5 << 20, (1 << 20) + 1]
    received: list[bytes] = []
    done = asyncio.Event()

    def answered(response: FetchResponse) -> None:
        records = response.responses[0].partitions[0].records
        received.append(bytes(records))  # type: ignore[arg-type]
        if len(received) == len(sizes):
            done.set()

    for size in sizes:
        peer.send(FetchRequest(max_bytes=size), A_MINUTE_MS, answered)
    await done.wait()
    assert received == [bytes([size % 251]) * size for size in sizes]
    assert peer._terms.buffers.used_bytes == 0, "memory is held while something arrives, no longer"


# What goes wrong


@on_a_loop
async def test_nobody_listens() -> None:
    failure = await ask(a_peer(port := free_port()), ASK)
    assert isinstance(failure, ConnectionRefusedError)
    assert f"{HOST}:{port}" in str(failure)


@on_a_loop
async def test_everybody_who_waits_is_told_that_the_peer_went_away() -> None:
    stranger = Stranger()
    peer = a_peer(stranger.port)
    waiting = [asyncio.ensure_future(ask(peer, ASK)) for _ in range(3)]
    await stranger.greet(LIST)
    await stranger.hear()
    stranger.hang_up()
    assert all(isinstance(each, ConnectionResetError) for each in await asyncio.gather(*waiting))


@on_a_loop
async def test_a_peer_that_came_back_is_asked_by_a_new_connection() -> None:
    stranger = Stranger()
    peer = a_peer(stranger.port)
    for _ in range(2):
        waiting = asyncio.ensure_future(ask(peer, ASK))
        await stranger.greet(LIST)
        stranger.hang_up()
        assert isinstance(await waiting, ConnectionResetError)
        peer._last_id = 0  # the stranger greets with 1


@on_a_loop
async def test_a_connection_that_broke_while_nobody_waited_costs_nothing() -> None:
    server, port = listening({LIST: name_the_client})
    peer = a_peer(port)
    await ask(peer, ASK)
    for connection in list(server.network._connections):
        connection.close()
    while peer._link is not None:
        await asyncio.sleep(0)
    assert isinstance(await ask(peer, ASK), ListConfigResourcesResponse)


@on_a_loop
async def test_no_answer_in_time_drops_the_connection() -> None:
    stranger = Stranger()
    peer = a_peer(stranger.port)
    in_vain = asyncio.ensure_future(ask(peer, ASK, timeout_ms=1))
    behind = asyncio.ensure_future(ask(peer, ASK))
    await stranger.accept()
    assert isinstance(await in_vain, TimeoutError)
    assert isinstance(await behind, TimeoutError), "it waited for the same silent peer"
    await stranger.hear()
    assert await stranger.is_left()


@on_a_loop
async def test_time_that_an_answered_request_had_left_does_not_count_for_the_next() -> None:
    _, port = listening({LIST: name_the_client})
    peer = a_peer(port)
    assert isinstance(await ask(peer, ASK, timeout_ms=30_000), ListConfigResourcesResponse)
    first = peer._timer
    assert first is not None
    waiting = asyncio.ensure_future(ask(peer, ASK))
    await asyncio.sleep(0)
    first.cancel()
    peer._look_at_deadlines()
    assert peer._timer is not None, "the next request's deadline is watched now"
    assert isinstance(await waiting, ListConfigResourcesResponse)


@on_a_loop
async def test_an_answer_that_makes_no_sense_ends_the_connection() -> None:
    garbled = {
        "not a response": (3, b"\xff" * 10),
        "cut short": (3, b"\0"),
        "to another request": (99, ListConfigResourcesResponse().write(1)),
        "longer than a response": (3, b"\0" + ListConfigResourcesResponse().write(1) + b"!"),
    }
    for correlation_id, body in garbled.values():
        stranger = Stranger()
        peer = a_peer(stranger.port)
        waiting = [asyncio.ensure_future(ask(peer, ASK)) for _ in range(2)]
        await stranger.greet(LIST)
        await stranger.hear()
        await stranger.say(correlation_id - 1, body)
        for failure in await asyncio.gather(*waiting):
            assert isinstance(failure, ConnectionAbortedError)
        await stranger.hear()
        assert await stranger.is_left()


@pytest.mark.parametrize("length", [-1, 1 << 20, 2**31 - 1])
def test_a_frame_of_no_possible_size_ends_the_connection(length: int) -> None:
    @on_a_loop
    async def scenario() -> None:
        stranger = Stranger()
        waiting = asyncio.ensure_future(ask(a_peer(stranger.port, largest_answer_bytes=9000), ASK))
        await stranger.greet(LIST)
        await stranger.say_bytes(length.to_bytes(4, "big", signed=True))
        failure = await waiting
        assert isinstance(failure, ConnectionAbortedError)
        assert f"a frame of {length} bytes" in str(failure)

    scenario()


@on_a_loop
async def test_a_peer_that_expects_tls_is_told_of() -> None:
    stranger = Stranger()
    waiting = asyncio.ensure_future(ask(a_peer(stranger.port), ASK))
    await stranger.accept()
    await stranger.say_bytes(b"\x15\x03\x03\0\x02\x02\x50")
    assert "it expects TLS" in str(await waiting)


@on_a_loop
async def test_an_answer_that_nobody_asked_for_ends_the_connection() -> None:
    stranger = Stranger()
    peer = a_peer(stranger.port)
    waiting = asyncio.ensure_future(ask(peer, ASK))
    await stranger.greet(LIST)
    await stranger.hear()
    answer = b"\0" + ListConfigResourcesResponse().write(1)
    await stranger.say(2, answer)
    assert isinstance(await waiting, ListConfigResourcesResponse)
    await stranger.say(3, answer)
    assert await stranger.is_left()


@on_a_loop
async def test_a_peer_that_does_not_know_apiversions_is_no_peer() -> None:
    stranger = Stranger()
    waiting = asyncio.ensure_future(ask(a_peer(stranger.port), ASK))
    await stranger.accept()
    for correlation_id in (1, 2):
        await stranger.hear()
        await stranger.say(correlation_id, b"\0\x23\0\0\0\0")
    assert isinstance(await waiting, ConnectionAbortedError)


@on_a_loop
async def test_a_peer_that_knows_an_older_apiversions_alone_is_asked_in_that() -> None:
    stranger = Stranger()
    waiting = asyncio.ensure_future(ask(a_peer(stranger.port), ASK))
    await stranger.accept()
    assert (await stranger.hear())[:4] == b"\0\x12\0\x03"
    await stranger.say(1, b"\0\x23\0\0\0\0")
    assert (await stranger.hear())[:4] == b"\0\x12\0\0"
    await stranger.say(2, versions_of(LIST).write(0))
    await stranger.hear()
    await stranger.say(3, b"\0" + ListConfigResourcesResponse().write(1))
    assert isinstance(await waiting, ListConfigResourcesResponse)


@on_a_loop
async def test_closing_tells_everybody_who_waits() -> None:
    server, port = listening({PRODUCE: Gate().handle})
    peers = SocketPeers(asyncio.get_running_loop(), "node-1")
    waiting = asyncio.ensure_future(ask(peers.at(HOST, port, "test"), a_produce(0)[0]))
    while not len(server.network):
        await asyncio.sleep(0)
    peers.close()
    assert isinstance(await waiting, ConnectionAbortedError)


@on_a_loop
async def test_whoever_is_answered_may_close_the_peer_or_fail_and_hurts_nobody() -> None:
    _, port = listening({LIST: name_the_client})
    peer = a_peer(port)
    told: list[Any] = []

    def fail(_: Any) -> None:
        raise ValueError("a fault of whoever asked")

    def hang_up(_: Any) -> None:
        peer.close()

    peer.send(ASK, A_MINUTE_MS, fail)
    peer.send(ASK, A_MINUTE_MS, hang_up)
    peer.send(ASK, A_MINUTE_MS, told.append)
    while not told:
        await asyncio.sleep(0)
    assert isinstance(told[0], ConnectionAbortedError)
    assert isinstance(await ask(peer, ASK), ListConfigResourcesResponse), "it opens anew"


@on_a_loop
async def test_only_so_many_requests_may_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peer_module, "MAX_UNANSWERED", 2)
    stranger = Stranger()
    peer = a_peer(stranger.port)
    for _ in range(2):
        peer.send(ASK, A_MINUTE_MS, lambda _: None)
    failure = await ask(peer, ASK)
    assert failure.errno == errno.ENOBUFS


@on_a_loop
async def test_a_port_that_connects_to_itself_is_one_that_nobody_listens_on() -> None:
    # The kernel may give a connection the very port it is going to: both ends are then ours.
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
        failure = await ask(a_peer(port), ASK)
    finally:
        socket.socket = real  # type: ignore[misc]
    assert isinstance(failure, ConnectionRefusedError)
