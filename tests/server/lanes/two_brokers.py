"""Two equal brokers that get the same frames: one with the lane, one with the handler only."""

import asyncio
import socket
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

from tests.replication.world import CLIENT, CLIENT_HOST, LISTENER, World

from barnabas.server.api import HANDLERS
from barnabas.server.fetching.session_cache import FetchSessionCache
from barnabas.server.lanes._lane import Lane
from barnabas.server.network._pipeline import RequestPipeline, RequestSource
from barnabas.server.network._response_queue import ResponseQueue
from barnabas.server.network.routes import RouteTable
from barnabas.server.nodes import BrokerNode
from barnabas.server.quotas import RequestQuotas
from barnabas.server.request_context import RequestContext
from barnabas.wire.apis import ApiKey
from barnabas.wire.errors import ProtocolViolation
from barnabas.wire.headers import RequestHeader, write_request_header
from barnabas.wire.messages.fetch import FetchRequest
from barnabas.wire.outgoing import Outgoing
from barnabas.wire.schema import Message

LaneFactory = Callable[[BrokerNode], dict[ApiKey, Lane]]


class StubConnection(RequestSource):
    """A connection whose responses stay in the queue."""

    def __init__(self) -> None:
        self._sockets = socket.socketpair()
        super().__init__(ResponseQueue(self._sockets[0]))
        self.principal = CLIENT
        self.host = CLIENT_HOST
        self.local_host = "127.0.0.1"
        self.listener = LISTENER
        self.is_closed = False
        self.suspended: set[Any] = set()
        self.delays_ms: list[int] = []

    def add_suspended(self, request: Any) -> None:
        self.suspended.add(request)

    def remove_suspended(self, request: Any) -> None:
        self.suspended.discard(request)

    def throttle(self, delay_ms: int) -> None:
        self.delays_ms.append(delay_ms)

    def close(self, reason: str | None = None) -> None:
        self.is_closed = True
        for request in tuple(self.suspended):
            request.abandon()
        self.suspended.clear()
        for sock in self._sockets:
            sock.close()

    def take_responses(self) -> bytes | None:
        """Returns what would be sent; None while a response is delayed."""
        ready = self.responses.buffer()
        if ready is None:
            return None
        content = b""
        start = 0
        for position, region in ready.regions:
            content += ready[start:position] + region.read()  # type: ignore[attr-defined]
            start = position
        content += ready[start:]
        del ready[:]
        ready.regions.clear()
        self.responses.record_sent(0, 0)
        return bytes(content)


class OneBroker:
    """A broker and its pipeline. `handled` counts the requests that the handler got."""

    def __init__(
        self, folder: Path, loop: asyncio.AbstractEventLoop, lanes: LaneFactory, **settings: str
    ) -> None:
        self.world = World(folder, **settings)
        self.handled = 0
        broker = self.world.broker
        broker.monotonic_ns = lambda: 1  # 0 is that of responses that are not complete
        broker.quotas = RequestQuotas(now_ms=lambda: self.world.now_ms)
        broker.fetch_sessions = FetchSessionCache(10, random=Random(1))
        fetch = HANDLERS[ApiKey.FETCH]

        async def counted(request: FetchRequest, context: RequestContext) -> Any:
            self.handled += 1
            return await fetch(request, context)

        handlers = {**HANDLERS, ApiKey.FETCH: counted}
        routes = RouteTable(broker.metrics, handlers, lanes(broker))
        self._pipeline = RequestPipeline(broker, loop, routes)
        self.connections = [StubConnection() for _ in range(3)]

    def handle(self, number: int, frame: bytes) -> bytes | str | None:
        """Returns the response, why there is none, or None if it is delayed."""
        connection = self.connections[number]
        connection.received_ms = self.world.now_ms
        try:
            self._pipeline.handle(connection, memoryview(bytearray(frame)))
        except ProtocolViolation as violation:
            return str(violation)
        return connection.take_responses()

    def disconnect(self, number: int) -> None:
        """A client disconnects; another one connects."""
        self.connections[number].close()
        self.connections[number] = StubConnection()

    def close(self) -> None:
        for connection in self.connections:
            connection.close()
        self.world.partitions.close(clean=False)


def quotas_of(broker: BrokerNode) -> Any:
    """Returns what the quotas of a broker have measured."""
    quotas = broker.quotas
    now_ms = quotas.now_ms()
    return [
        (part.key, tags, sensor.rate.per_second(now_ms), sensor.throttle_time.average(now_ms))
        for part in (quotas.produce, quotas.fetch, quotas.request_time)
        for tags, sensor in part.sensors
    ] + [(kind, channels.count(now_ms)) for kind, channels in quotas.delays.items()]


def frame_of(request: Message, version: int, correlation_id: int = 0) -> bytes:
    """Returns a request without its length, as the pipeline gets it."""
    out = Outgoing()
    write_request_header(RequestHeader(request.API_KEY, version, correlation_id, "test"), out)
    return bytes(out) + request.write(version)
