"""The server's side of the simulated network: in the place of `barnabas.server.network.socket_server.SocketServer`.

Requests go through the real pipeline, so they are read, routed, handled and answered as ever.
"""

import asyncio
from collections import deque
from time import perf_counter_ns
from typing import Any

from tests.simulation.cluster.network import End, Network
from tests.simulation.cluster.processes import current_process

from barnabas.server.metrics.registry import RequestMetrics
from barnabas.server.network.socket_server import SocketServerSettings
from barnabas.server.network.response_queue import QueuedResponse
from barnabas.server.network.pipeline import SuspendedRequest, RequestPipeline
from barnabas.wire.errors import ProtocolViolation
from barnabas.wire.outgoing import Outgoing

DRAIN_POLL_S = 0.01
CLIENT_ADDRESS = "10.0.0.1"
"""Where every connection seems to come from: an envelope has room for numbers only."""


class Taken:
    """An address that is listened at."""

    def __init__(self, port: int) -> None:
        self.port = port


class ListeningNetwork:
    """The listeners of a broker, or of a controller, and their connections."""

    def __init__(
        self,
        network: Network,
        node: Any,
        settings: SocketServerSettings,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self.process = current_process()
        self.settings = settings
        self.pipeline = RequestPipeline(node, loop)
        self.clock = node.clock
        self._network = network
        self._purgatory = node.purgatory
        self._listener = ""
        self._connections: dict[ServedConnection, None] = {}
        self._is_open = False

    def listen(self, name: str, host: str, port: int) -> Taken:
        self._network.listen((host, port), self)
        self._listener = name
        return Taken(port)

    def open(self) -> None:
        self._is_open = True
        for connection in list(self._connections):
            connection.go_on()

    def accept(self, end: End) -> None:
        self._connections[ServedConnection(self, end, self._listener)] = None

    @property
    def is_open(self) -> bool:
        """Before, who has connected waits."""
        return self._is_open

    async def drain(self, timeout_ms: int) -> None:
        self._network.unlisten(self)
        for connection in list(self._connections):
            connection.drain()
        self._purgatory.release_all()
        loop = asyncio.get_running_loop()
        deadline_s = loop.time() + timeout_ms / 1000
        while self._connections and loop.time() < deadline_s:
            await asyncio.sleep(DRAIN_POLL_S)
        for connection in list(self._connections):
            connection.close()

    def forget(self, connection: "ServedConnection") -> None:
        self._connections.pop(connection, None)


class ServedConnection:
    """In the place of `barnabas.server.network.connection.ClientConnection`: one request at a time."""

    def __init__(self, network: ListeningNetwork, end: End, listener: str) -> None:
        self.host = CLIENT_ADDRESS
        self.listener = listener
        self.principal = "User:ANONYMOUS"
        self.software = ("", "")
        self.is_closed = False
        self.received_ns = 0
        self.received_ms = 0
        self.responses = _ResponseQueue(end)
        self._network = network
        self._end = end
        self._frames: deque[bytes] = deque()
        self._suspended: SuspendedRequest | None = None
        self._is_draining = False
        end.received, end.broken = self._received, lambda _: self.close()

    def decode_client_id(self, encoded: memoryview) -> str:
        return encoded.tobytes().decode()

    def add_suspended(self, request: SuspendedRequest) -> None:
        self._suspended = request

    def remove_suspended(self, _: SuspendedRequest) -> None:
        self._suspended = None
        self.go_on()

    def go_on(self) -> None:
        """Begin what has arrived, as far as one request lets the next begin."""
        while self._frames and self._suspended is None and self._network.is_open:
            if self.is_closed:
                return
            self._handle(bytearray(self._frames.popleft()))
        if self._is_draining and self._suspended is None:
            self.close()

    def drain(self) -> None:
        self._is_draining = True
        self.go_on()

    def close(self, reason: str | None = None) -> None:
        if self.is_closed:
            return
        self.is_closed = True
        self._end.close()
        if self._suspended is not None:
            self._suspended.abandon()
            self._suspended = None
        self._network.forget(self)

    def _received(self, frame: memoryview) -> None:
        self.received_ns = perf_counter_ns()
        self.received_ms = self._network.clock()
        if not self._is_draining:
            self._frames.append(bytes(frame))
            self.go_on()

    def _handle(self, memory: bytearray) -> None:
        connection: Any = self
        try:
            self._network.pipeline.handle(connection, memoryview(memory))
        except ProtocolViolation as violation:
            self.close(str(violation))
        finally:
            memory[:] = b"\xee" * len(memory)  # the buffer is used for the next request


class _ResponseQueue:
    """Answers leave in the order of the requests, each as soon as it may."""

    def __init__(self, end: End) -> None:
        self.unsent: list[object] = []
        self._end = end
        self._waiting: deque[QueuedResponse] = deque()

    def buffer(self) -> None:
        """Every answer takes a place."""

    def reserve(self, metrics: RequestMetrics, received_ns: int) -> QueuedResponse:
        answer = QueuedResponse(metrics, received_ns)
        self._waiting.append(answer)
        return answer

    def complete(self, answer: QueuedResponse, outgoing: Outgoing | None, completed_ns: int) -> None:
        answer.outgoing = outgoing
        answer.completed_ns = completed_ns
        while self._waiting and self._waiting[0].completed_ns:
            first = self._waiting.popleft()
            if first.outgoing is not None:
                self._end.send([with_regions(first.outgoing)])


def with_regions(outgoing: Outgoing) -> bytes:
    """The whole frame, with the records that lie in files."""
    if not outgoing.regions:
        return bytes(outgoing)
    whole = bytearray()
    done = 0
    for position, region in outgoing.regions:
        whole += outgoing[done:position]
        whole += region.read()  # type: ignore[attr-defined]
        done = position
    return bytes(whole + outgoing[done:])
