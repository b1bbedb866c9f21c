"""A network without ports: clients on socket pairs, handlers in memory."""

import asyncio
import functools
import socket
from collections.abc import Awaitable, Callable, Mapping
from struct import Struct
from typing import Any

from barnabas.metadata.image import Image
from barnabas.server.api import HANDLERS
from barnabas.server.broker_node import Broker
from barnabas.server.fetching.session_cache import FetchSessions
from barnabas.server.handlers import Handler
from barnabas.server.network.connection import Connection
from barnabas.server.network.routes import Routes
from barnabas.server.network.socket_server import Network, NetworkSettings
from barnabas.server.purgatory import Parked, Purgatory
from barnabas.server.request_context import Call
from barnabas.server.timer import Timer
from barnabas.wire.apis import ApiKey, api
from barnabas.wire.headers import RequestHeader, read_response_header, write_request_header
from barnabas.wire.messages.list_config_resources import (
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
"""For anything: what takes longer hangs."""

_LENGTH = Struct(">i")


def on_a_loop(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """Run an async test on a loop of its own, with a deadline."""

    @functools.wraps(test)
    def run(*arguments: Any, **fixtures: Any) -> None:
        async def bounded() -> None:
            await asyncio.wait_for(test(*arguments, **fixtures), DEADLINE_S)

        asyncio.run(bounded())

    return run


def a_broker() -> Broker:
    """A broker of which only the network's side is there."""
    timer = Timer(asyncio.get_running_loop())
    nothing: Any = None
    return Broker(
        node_id=1,
        cluster_id="castle",
        settings=nothing,
        resolver=nothing,
        image=Image(),
        partitions=nothing,
        controller=nothing,
        timer=timer,
        purgatory=Purgatory(timer),
        fetch_sessions=FetchSessions(10),
    )


class Server:
    """A network that answers with the given handlers, if not with the broker's own."""

    def __init__(self, handlers: Mapping[ApiKey, Handler] = HANDLERS, **settings: Any) -> None:
        self.broker = a_broker()
        self.network = Network(
            self.broker,
            NetworkSettings(**settings),
            asyncio.get_running_loop(),
            Routes(self.broker.metrics, handlers),
        )

    def connect(self, host: str = "10.0.0.1") -> "Client":
        ours, theirs = socket.socketpair()
        for sock in ours, theirs:
            sock.setblocking(False)
        return Client(theirs, self.network.adopt(ours, host, "PLAINTEXT"))


class Client:
    """The other end of a connection."""

    def __init__(self, sock: socket.socket, connection: Connection | None) -> None:
        self.socket = sock
        self._served_by = connection
        self._loop = asyncio.get_running_loop()

    @property
    def connection(self) -> Connection:
        assert self._served_by is not None
        return self._served_by

    async def send_bytes(self, content: bytes) -> None:
        await self._loop.sock_sendall(self.socket, content)

    async def send(self, *requests: tuple[Message, int, int]) -> None:
        """Each a request, its version and its correlation id; all in one go."""
        await self.send_bytes(b"".join(frame(*request) for request in requests))

    async def receive_bytes(self, count: int) -> bytes:
        received = b""
        while len(received) < count:
            more = await self._loop.sock_recv(self.socket, count - len(received))
            if not more:
                raise EOFError(f"closed after {len(received)} of {count} bytes")
            received += more
        return received

    async def receive_frame(self) -> bytes:
        (length,) = _LENGTH.unpack(await self.receive_bytes(4))
        return await self.receive_bytes(length)

    async def receive(self, key: ApiKey, version: int) -> tuple[int, Any]:
        """The correlation id of the next answer, and the answer."""
        answer = await self.receive_frame()
        header, body = read_response_header(answer, key, version)
        return header.correlation_id, api(key).response.read_exactly(answer, version, body)

    async def is_closed(self) -> bool:
        """Waits for the other end to hang up; anything else it says is a failure."""
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


async def name_the_client(_: ListConfigResourcesRequest, call: Call) -> ListConfigResourcesResponse:
    return ListConfigResourcesResponse(
        config_resources=[ConfigResource(resource_name=f"{call.client_id}@{call.host}")]
    )


class Gate:
    """A handler that holds each request until the test opens the gate for it.

    Produce requests are parked, as those are that have appended; unless told that they wait for
    something else before they append.
    """

    def __init__(self, *, have_appended: bool = True) -> None:
        self.begun: list[int] = []
        self.parked: dict[int, asyncio.Future[Any]] = {}
        self._have_appended = have_appended

    async def handle(self, request: ProduceRequest | ListConfigResourcesRequest, call: Call):  # type: ignore[no-untyped-def]
        self.begun.append(call.correlation_id)
        if isinstance(request, ProduceRequest) and self._have_appended:
            purgatory = call.broker.purgatory
            waiting: Any = purgatory.park([], 60_000, lambda *_: False, "Produce")
        else:
            waiting = asyncio.get_running_loop().create_future()
        self.parked[call.correlation_id] = waiting
        await self.parked[call.correlation_id]
        if isinstance(request, ProduceRequest):
            return ProduceResponse()
        return ListConfigResourcesResponse()

    def open(self, correlation_id: int) -> None:
        parked = self.parked.pop(correlation_id)
        if isinstance(parked, Parked):
            parked.finish(True)
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
    """Let the loop go round, so that what could happen has happened."""
    for _ in range(count):
        await asyncio.sleep(0)
