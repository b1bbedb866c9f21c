"""The server side of simulated connections: stands in for `barnabas.server.network.SocketServer`.

Requests go through the real pipeline: they are decoded, routed and handled as in a real node.
"""

import asyncio
from collections import deque
from time import perf_counter_ns
from typing import Any

from tests.simulation.world.connections import ConnectionEnd, ConnectionNetwork
from tests.simulation.world.process import current_process

from barnabas.security.principal import ANONYMOUS
from barnabas.security.quotas.connection_quotas import ConnectionQuotas
from barnabas.server.metrics.registry import RequestMetrics
from barnabas.server.network._pipeline import RequestPipeline, RequestSource
from barnabas.server.network._response_queue import QueuedResponse
from barnabas.server.network.socket_server import SocketServerSettings
from barnabas.server.network.suspended_request import SuspendedRequest
from barnabas.wire.errors import ProtocolViolation
from barnabas.wire.outgoing import Outgoing

DRAIN_POLL_S = 0.01
CLIENT_ADDRESS = "10.0.0.1"
"""The address of every client: an envelope contains an IP address, not a name."""


class SimulatedAcceptor:
    """A listening address."""

    def __init__(self, port: int) -> None:
        self.port = port


class SimulatedSocketServer:
    """The listeners of a broker, or of a controller, and their connections."""

    def __init__(
        self,
        network: ConnectionNetwork,
        node: Any,
        settings: SocketServerSettings,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self.process = current_process()
        self.settings = settings
        self.pipeline = RequestPipeline(node, loop)
        self.connection_quotas = ConnectionQuotas()
        self.clock = node.clock
        self._network = network
        self._purgatory = node.purgatory
        self._listener = ""
        self._connections: dict[SimulatedClientConnection, None] = {}
        self._is_open = False

    def listen(self, name: str, host: str, port: int, _: object) -> SimulatedAcceptor:
        self._network.listen((host, port), self)
        self._listener = name
        return SimulatedAcceptor(port)

    def open(self) -> None:
        self._is_open = True
        for connection in list(self._connections):
            connection.handle_frames()

    def accept(self, end: ConnectionEnd) -> None:
        self._connections[SimulatedClientConnection(self, end, self._listener)] = None

    @property
    def is_open(self) -> bool:
        """Until it is open, requests wait."""
        return self._is_open

    async def drain(self, timeout_ms: int) -> None:
        self._network.stop_listening(self)
        for connection in list(self._connections):
            connection.drain()
        self._purgatory.release_all()
        loop = asyncio.get_running_loop()
        deadline_s = loop.time() + timeout_ms / 1000
        while self._connections and loop.time() < deadline_s:
            await asyncio.sleep(DRAIN_POLL_S)
        for connection in list(self._connections):
            connection.close()

    def close(self) -> None:
        self._network.stop_listening(self)
        for connection in list(self._connections):
            connection.close()

    def forget(self, connection: "SimulatedClientConnection") -> None:
        self._connections.pop(connection, None)


class SimulatedClientConnection(RequestSource):
    """Stands in for `barnabas.server.network._connection.ClientConnection`.

    It handles one request at a time.
    """

    def __init__(self, network: SimulatedSocketServer, end: ConnectionEnd, listener: str) -> None:
        super().__init__(_ResponseQueue(end))
        self.host = CLIENT_ADDRESS
        self.local_host = "127.0.0.1"
        self.listener = listener
        self.principal = ANONYMOUS
        self.software = ("", "")
        self.is_closed = False
        self._network = network
        self._end = end
        self._frames: deque[bytes] = deque()
        self._suspended: SuspendedRequest | None = None
        self._is_draining = False
        end.on_frame, end.on_error = self._on_frame, lambda _: self.close()

    def add_suspended(self, request: SuspendedRequest) -> None:
        self._suspended = request

    def remove_suspended(self, _: SuspendedRequest) -> None:
        self._suspended = None
        self.handle_frames()

    def handle_frames(self) -> None:
        """Handles the received frames, as far as one request lets the next begin."""
        while self._frames and self._can_handle:
            memory = bytearray(self._frames.popleft())
            self._handle(memoryview(memory))
            memory[:] = b"\xee" * len(memory)  # a real buffer is reused for the next request
        if self._is_draining and self._suspended is None:
            self.close()

    def drain(self) -> None:
        self._is_draining = True
        self.handle_frames()

    def close(self, reason: str | None = None) -> None:
        if self.is_closed:
            return
        self.is_closed = True
        self._end.close()
        if self._suspended is not None:
            self._suspended.abandon()
            self._suspended = None
        self._network.forget(self)

    def _on_frame(self, frame: memoryview) -> None:
        self.received_ns = perf_counter_ns()
        self.received_ms = self._network.clock()
        if self._is_draining:
            return
        if self._frames or not self._can_handle:
            self._frames.append(bytes(frame))
        else:
            self._handle(frame)

    @property
    def _can_handle(self) -> bool:
        return self._suspended is None and self._network.is_open and not self.is_closed

    def _handle(self, frame: memoryview) -> None:
        try:
            self._network.pipeline.handle(self, frame)
        except ProtocolViolation as violation:
            self.close(str(violation))


class _ResponseQueue:
    """Responses are sent in the order of the requests, as soon as they are complete."""

    def __init__(self, end: ConnectionEnd) -> None:
        self._end = end
        self._waiting: deque[QueuedResponse] = deque()

    def buffer(self) -> None:
        """Every response is queued."""

    def reserve(self, metrics: RequestMetrics, received_ns: int) -> QueuedResponse:
        response = QueuedResponse(metrics, received_ns)
        self._waiting.append(response)
        return response

    def complete(
        self, response: QueuedResponse, outgoing: Outgoing | None, completed_ns: int
    ) -> None:
        response.outgoing = outgoing
        response.completed_ns = completed_ns
        while self._waiting and self._waiting[0].completed_ns:
            first = self._waiting.popleft()
            if first.outgoing is not None:
                self._end.send([with_regions(first.outgoing)])


def with_regions(outgoing: Outgoing) -> bytes:
    """Returns the whole frame, with the records that are in files."""
    if not outgoing.regions:
        return bytes(outgoing)
    frame = bytearray()
    done = 0
    for position, region in outgoing.regions:
        frame += outgoing[done:position]
        frame += region.read()  # type: ignore[attr-defined]
        done = position
    return bytes(frame + outgoing[done:])
