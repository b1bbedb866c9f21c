"""A connection's turns: compiled and as plain Python, they do the same with the same bytes."""

import asyncio
import importlib
import socket
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from struct import pack
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.server import harness
from tests.server.harness import LIST, PRODUCE, Server, a_list, a_produce, frame, on_a_loop, turns
from tests.uncompiled import PlainModuleFinder, run_as_plain_python

from barnabas.server.network import _connection
from barnabas.server.request_context import RequestContext
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.configs import (
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)
from barnabas.wire.messages.produce import ProduceRequest, ProduceResponse

NETWORK = "barnabas.server.network"
ROOT = Path(__file__).parents[3]


@contextmanager
def plain_network() -> Iterator[dict[str, ModuleType]]:
    """Imports the modules of the network a second time, as plain Python."""
    finder = PlainModuleFinder()
    before = {name: sys.modules.pop(name) for name in tuple(sys.modules) if NETWORK in name}
    sys.meta_path.insert(0, finder)
    try:
        names = ("routes", "socket_server")
        yield {name: importlib.import_module(f"{NETWORK}.{name}") for name in names}
    finally:
        sys.meta_path.remove(finder)
        for name in tuple(sys.modules):
            if NETWORK in name:
                del sys.modules[name]
        sys.modules.update(before)
        package = sys.modules["barnabas.server"]
        package.network = before[NETWORK]  # type: ignore[attr-defined]


with plain_network() as imported:
    PLAIN = imported


class Script:
    """Handlers that respond at once, later, with an error, or not at all, by the correlation id."""

    def __init__(self) -> None:
        self.waiting: list[asyncio.Future[None]] = []

    async def list_resources(
        self, _: ListConfigResourcesRequest, context: RequestContext
    ) -> ListConfigResourcesResponse:
        number = context.correlation_id
        if number % 7 == 3:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "as the script says")
        if number % 5 == 4:
            await self._wait()
        name = f"{context.client_id} {number}" + "x" * (number * 997 % 5000)
        return ListConfigResourcesResponse(config_resources=[ConfigResource(resource_name=name)])

    async def produce(
        self, request: ProduceRequest, context: RequestContext
    ) -> ProduceResponse | None:
        if context.correlation_id % 3 == 1:
            context.allows_next_produce = context.correlation_id % 2 == 0
            await self._wait()
        return ProduceResponse() if request.acks else None

    async def _wait(self) -> None:
        self.waiting.append(asyncio.get_running_loop().create_future())
        await self.waiting[-1]

    def release(self, index: int) -> None:
        if self.waiting:
            self.waiting.pop(index % len(self.waiting)).set_result(None)


@dataclass(frozen=True, slots=True)
class Step:
    """Sends some bytes of the stream, lets one waiting handler continue, or only lets time pass."""

    send_bytes: int = 0
    release: int | None = None
    passes: int = 1


@dataclass(frozen=True, slots=True)
class Outcome:
    """What can be seen of a connection from outside, and its counts without times."""

    received: bytes
    is_closed: bool
    requests: dict[str, dict[int, int]]
    errors: dict[str, dict[int, int]]
    observations: dict[str, list[int]]
    used_buffer_bytes: int


async def run(stream: bytes, steps: Sequence[Step], **bounds: int) -> Outcome:
    script = Script()
    server = Server({LIST: script.list_resources, PRODUCE: script.produce}, **bounds)
    client = server.connect()
    received = bytearray()
    is_closed = False

    def receive() -> None:
        nonlocal is_closed
        try:
            while more := client.socket.recv(1 << 20):
                received.extend(more)
            is_closed = True
        except BlockingIOError:
            pass
        except ConnectionResetError:
            is_closed = True

    position = 0
    for step in (*steps, Step(send_bytes=len(stream))):
        chunk = stream[position : position + step.send_bytes]
        while chunk and not is_closed:
            try:
                chunk = chunk[client.socket.send(chunk) :]
            except BlockingIOError:
                await turns(3)
                receive()
            except OSError:
                is_closed = True
        position += step.send_bytes
        if step.release is not None:
            script.release(step.release)
        await turns(step.passes)
        if step.passes > 2:
            receive()
    for _ in range(100):
        script.release(0)
        await turns(4)
        receive()
    metrics = server.broker.metrics.requests
    outcome = Outcome(
        bytes(received),
        is_closed,
        {name: dict(each.requests) for name, each in metrics.items()},
        {name: dict(each.errors) for name, each in metrics.items()},
        {
            name: [
                each.request_bytes.total,
                each.queue_ns.count,
                each.local_ns.count,
                each.remote_ns.count,
                each.total_ns.count,
            ]
            for name, each in metrics.items()
        },
        server.network.buffers.used_bytes,
    )
    client.socket.close()
    await turns(3)
    assert len(server.network) == 0
    server.network.close()
    return outcome


requests = st.one_of(
    st.integers(0, 40).map(lambda number: frame(*a_list(number))),
    st.tuples(st.integers(0, 40), st.sampled_from([0, 10, 5000, 70_000])).map(
        lambda drawn: frame(*a_produce(*drawn))
    ),
    st.integers(0, 40).map(lambda number: frame(ProduceRequest(acks=0), 9, number)),
    st.sampled_from([None, "", "ä", "another"]).map(
        lambda client_id: frame(ListConfigResourcesRequest(), 1, 1, client_id)
    ),
)
invalid = st.sampled_from(
    [
        b"",
        pack(">i", -1),
        pack(">i", 0),
        pack(">i", 1 << 30),
        pack(">ihhih", 10, 74, 9, 0, -1),
        pack(">ihhih", 10, 74, 1, 0, 500),
        pack(">ihhih", 10, 999, 1, 0, -1),
        b"GET / HTTP/1.1\r\n\r\n",
    ]
)
steps = st.lists(
    st.builds(
        Step,
        send_bytes=st.sampled_from([0, 1, 3, 17, 100, 4096, 100_000]),
        release=st.none() | st.integers(0, 5),
        passes=st.integers(0, 4),
    ),
    max_size=25,
)


@pytest.mark.skipif(_connection.__file__.endswith(".py"), reason="the modules are not compiled")
@settings(max_examples=150, deadline=None)
@given(
    st.lists(requests, max_size=12),
    invalid,
    steps,
    st.sampled_from([1, 2, 500]),
    st.sampled_from([60_000, 100 << 20]),
)
def test_the_compiled_turn_does_what_plain_python_does(
    valid: list[bytes],
    end: bytes,
    taken: list[Step],
    max_requests: int,
    max_frame_bytes: int,
) -> None:
    stream = b"".join(valid) + end
    bounds = {"queued_max_requests": max_requests, "request_max_bytes": max_frame_bytes}

    @on_a_loop
    async def scenario() -> None:
        compiled = await run(stream, taken, **bounds)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(harness, "SocketServer", PLAIN["socket_server"].SocketServer)
            patch.setattr(harness, "RouteTable", PLAIN["routes"].RouteTable)
            plain = await run(stream, taken, **bounds)
        assert compiled == plain

    scenario()


def test_the_network_serves_as_plain_python() -> None:
    """All tests of this folder and of lanes pass without compiled modules."""
    run_as_plain_python(
        *("tests/server/network", "tests/server/lanes"),
        *("--deselect", "tests/server/network/test_turn.py"),
    )


@on_a_loop
async def test_a_connection_that_is_closed_by_an_earlier_turn_has_none() -> None:
    closed: list[Any] = []

    async def close_the_other(
        _: ListConfigResourcesRequest, context: RequestContext
    ) -> ListConfigResourcesResponse:
        for client in clients:
            if client.connection is not context.connection:
                client.connection.close()
                closed.append(client)
        return ListConfigResourcesResponse()

    server = Server({LIST: close_the_other})
    clients = [server.connect(), server.connect()]
    for client in clients:
        client.socket.setblocking(False)
        client.socket.send(frame(*a_list(1)))
    await turns()
    assert len(closed) == 1
    assert len(server.network) == 1
    assert await closed[0].is_closed()


@on_a_loop
async def test_a_socket_that_takes_only_a_part_gets_the_rest_later() -> None:
    async def large(
        _: ListConfigResourcesRequest, __: RequestContext
    ) -> ListConfigResourcesResponse:
        resources = [ConfigResource(resource_name="x" * 30_000) for _ in range(20)]
        return ListConfigResourcesResponse(config_resources=resources)

    client = Server({LIST: large}).connect()
    assert isinstance(client.connection.sock, socket.socket)
    client.connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    await client.send(a_list(1), a_list(2))
    assert [(await client.receive(LIST, 1))[0] for _ in range(2)] == [1, 2]
    assert not client.connection.is_busy
