"""A socket server without ports: clients on socket pairs, handlers in memory."""

import asyncio
import functools
import socket
from collections.abc import Awaitable, Callable, Mapping
from struct import Struct
from time import perf_counter_ns
from typing import Any

from barnabas.metadata.image import MetadataImage
from barnabas.server.api import HANDLERS
from barnabas.server.fetching.session_cache import FetchSessionCache
from barnabas.server.handlers import Handler
from barnabas.server.lanes._lane import Lane
from barnabas.server.network._clock import wall_clock_ms
from barnabas.server.network._connection import ClientConnection
from barnabas.server.network.listener_security import PLAINTEXT, ListenerSecurity
from barnabas.server.network.routes import NO_LANES, RouteTable
from barnabas.server.network.socket_server import SocketServer, SocketServerSettings
from barnabas.server.nodes import BrokerNode
from barnabas.server.purgatory import DelayedOperation, Purgatory
from barnabas.server.request_context import RequestContext
from barnabas.server.timer import Timer
from barnabas.wire.apis import ApiKey, api
from barnabas.wire.headers import RequestHeader, read_response_header, write_request_header
from barnabas.wire.messages.configs import (
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)
from barnabas.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from barnabas.wire.outgoing import Outgoing
from barnabas.wire.schema import Message

LIST = ApiKey.LIST_CONFIG_RESOURCES
PRODUCE = ApiKey.PRODUCE

DEADLINE_S = 60.0
"""A test that takes longer hangs."""

_LENGTH = Struct(">i")


def on_a_loop(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """Runs an async test on a loop of its own, with a deadline."""

    @functools.wraps(test)
    def run(*arguments: Any, **fixtures: Any) -> None:
        async def bounded() -> None:
            await asyncio.wait_for(test(*arguments, **fixtures), DEADLINE_S)

        asyncio.run(bounded())

    return run


def a_broker() -> BrokerNode:
    """A broker that has nothing but what a socket server needs."""
    timer = Timer(asyncio.get_running_loop())
    nothing: Any = None
    return BrokerNode(
        node_id=1,
        cluster_id="castle",
        settings=nothing,
        resolver=nothing,
        image=MetadataImage(),
        partitions=nothing,
        controller=nothing,
        timer=timer,
        purgatory=Purgatory(timer),
        fetch_sessions=FetchSessionCache(10),
        disk_reads=nothing,
    )


class Server:
    """A socket server with the handlers and lanes of the test, or the handlers of the broker."""

    def __init__(
        self,
        handlers: Mapping[ApiKey, Handler] = HANDLERS,
        now_ns: Callable[[], int] = perf_counter_ns,
        now_ms: Callable[[], int] = wall_clock_ms,
        lanes: Mapping[ApiKey, Lane] = NO_LANES,
        **settings: Any,
    ) -> None:
        self.broker = a_broker()
        self.broker.monotonic_ns, self.broker.clock = now_ns, now_ms
        self.network = SocketServer(
            self.broker,
            SocketServerSettings(**settings),
            asyncio.get_running_loop(),
            RouteTable(self.broker.metrics, handlers, lanes),
        )

    def connect(
        self,
        host: str = "10.0.0.1",
        security: ListenerSecurity = PLAINTEXT,
        kind: socket.SocketKind = socket.SOCK_STREAM,
    ) -> "Client":
        ours, theirs = socket.socketpair(type=kind)
        for sock in ours, theirs:
            sock.setblocking(False)
        listener = security.protocol.name
        return Client(
            theirs, self.network.add_connection(ours, host, "127.0.0.1", listener, security)
        )


class Client:
    """The client's end of a connection."""

    def __init__(self, sock: socket.socket, connection: ClientConnection | None) -> None:
        self.socket = sock
        self._served_by = connection
        self._loop = asyncio.get_running_loop()

    @property
    def connection(self) -> ClientConnection:
        assert self._served_by is not None
        return self._served_by

    async def send_bytes(self, content: bytes) -> None:
        await self._loop.sock_sendall(self.socket, content)

    async def send(self, *requests: tuple[Message, int, int]) -> None:
        """Sends requests, with their versions and correlation ids, in one call."""
        await self.send_bytes(b"".join(frame(*request) for request in requests))

    async def receive_bytes(self, count: int) -> bytes:
        received = b""
        while len(received) < count:
            more = await self._loop.sock_recv(self.socket, count - len(received))
            if not more:
                raise EOFError(f"closed after {len(received)} of {count} bytes")
            received += more
        return received

    async def receive_rest(self) -> bytes:
        """Returns everything until the other end closes the connection."""
        received = b""
        while more := await self._loop.sock_recv(self.socket, 65_536):
            received += more
        return received

    async def receive_frame(self) -> bytes:
        (length,) = _LENGTH.unpack(await self.receive_bytes(4))
        return await self.receive_bytes(length)

    async def receive(self, key: ApiKey, version: int) -> tuple[int, Any]:
        """Returns the correlation id of the next response, and the response."""
        response = await self.receive_frame()
        header, body = read_response_header(response, key, version)
        return header.correlation_id, api(key).response.read_exactly(response, version, body)

    async def is_closed(self) -> bool:
        """Waits for the other end to close; returns False if it sends anything else."""
        try:
            return await self._loop.sock_recv(self.socket, 1) == b""
        except ConnectionResetError:
            return True


def frame(
    request: Message, version: int, correlation_id: int = 0, client_id: str | None = "k"
) -> bytes:
    out = Outgoing()
    write_request_header(RequestHeader(request.API_KEY, version, correlation_id, client_id), out)
    content = bytes(out) + request.write(version)
    return _LENGTH.pack(len(content)) + content


async def name_the_client(
    _: ListConfigResourcesRequest, context: RequestContext
) -> ListConfigResourcesResponse:
    return ListConfigResourcesResponse(
        config_resources=[ConfigResource(resource_name=f"{context.client_id}@{context.host}")]
    )


class Gate:
    """A handler that delays every request until the test opens the gate for it.

    Produce requests are delayed after their append, unless `have_appended` is False.
    """

    def __init__(self, *, have_appended: bool = True) -> None:
        self.begun: list[int] = []
        self.parked: dict[int, asyncio.Future[Any]] = {}
        self._have_appended = have_appended

    async def handle(
        self, request: ProduceRequest | ListConfigResourcesRequest, context: RequestContext
    ):  # type: ignore[no-untyped-def]
        self.begun.append(context.correlation_id)
        if isinstance(request, ProduceRequest) and self._have_appended:
            context.allows_next_produce = True
            purgatory = context.broker.purgatory
            pending: Any = purgatory.delay([], 60_000, lambda *_: False, "Produce")
        else:
            pending = asyncio.get_running_loop().create_future()
        self.parked[context.correlation_id] = pending
        await self.parked[context.correlation_id]
        if isinstance(request, ProduceRequest):
            return ProduceResponse()
        return ListConfigResourcesResponse()

    def open(self, correlation_id: int) -> None:
        parked = self.parked.pop(correlation_id)
        if isinstance(parked, DelayedOperation):
            parked.complete(True)
        else:
            parked.set_result(None)

    async def until_begun(self, *correlation_ids: int) -> None:
        while self.begun != list(correlation_ids):
            await asyncio.sleep(0)


def a_list(correlation_id: int) -> tuple[ListConfigResourcesRequest, int, int]:
    return ListConfigResourcesRequest(), 1, correlation_id


def a_produce(correlation_id: int, size_bytes: int = 10) -> tuple[ProduceRequest, int, int]:
    partition = PartitionProduceData(index=0, records=bytes(size_bytes))
    topic = TopicProduceData(name="t", partition_data=[partition])
    return ProduceRequest(acks=1, timeout_ms=1, topic_data=[topic]), 9, correlation_id


async def turns(count: int = 20) -> None:
    """Runs the loop for some turns, so that everything that can happen has happened."""
    for _ in range(count):
        await asyncio.sleep(0)
