"""All connections to the listeners of a broker, or of a controller, and the bounds they share."""

import asyncio
import logging
import socket
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

from barnabas.config.addresses import parse_ip_overrides
from barnabas.net.buffers import BufferPool
from barnabas.server.metrics.registry import Gauge
from barnabas.server.network.acceptor import Listener
from barnabas.server.network.connection import Connection
from barnabas.server.network.pipeline import Pipeline
from barnabas.server.network.routes import Routes

if TYPE_CHECKING:
    from barnabas.server.broker_node import Broker
    from barnabas.server.controller_node import ControllerNode

log = logging.getLogger(__name__)

_LARGEST_REQUESTS_AT_ONCE = 8
"""How many of the largest requests may be arriving where queued.max.request.bytes sets no bound."""

_SWEEPS_AN_IDLE_TIME = 8
_SHORTEST_SWEEP_S = 0.05
_LONGEST_SWEEP_S = 10.0
_DRAIN_POLL_S = 0.01


@dataclass(slots=True, frozen=True)
class NetworkSettings:
    """The settings of sockets and connections."""

    request_max_bytes: int = 100 << 20
    queued_max_requests: int = 500
    queued_max_request_bytes: int = -1
    idle_ms: int = 600_000
    send_buffer_bytes: int = 102_400
    receive_buffer_bytes: int = 102_400
    backlog: int = 50
    max_connections: int = 2**31 - 1
    max_connections_per_ip: int = 2**31 - 1
    per_ip_overrides: dict[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> "NetworkSettings":
        return cls(
            request_max_bytes=settings["socket.request.max.bytes"],
            queued_max_requests=settings["queued.max.requests"],
            queued_max_request_bytes=settings["queued.max.request.bytes"],
            idle_ms=settings["connections.max.idle.ms"],
            send_buffer_bytes=settings["socket.send.buffer.bytes"],
            receive_buffer_bytes=settings["socket.receive.buffer.bytes"],
            backlog=settings["socket.listen.backlog.size"],
            max_connections=settings["max.connections"],
            max_connections_per_ip=settings["max.connections.per.ip"],
            per_ip_overrides=parse_ip_overrides(settings["max.connections.per.ip.overrides"]),
        )

    @property
    def receiving_limit_bytes(self) -> int:
        bound = self.queued_max_request_bytes
        return bound if bound > 0 else _LARGEST_REQUESTS_AT_ONCE * self.request_max_bytes


class Network:
    """Accepts clients, keeps their number and their memory bounded, and lets go of idle ones."""

    __slots__ = (
        "_connections",
        "_listeners",
        "_per_host",
        "_purgatory",
        "_settings",
        "_sweep_handle",
        "buffers",
        "clock",
        "loop",
        "pipeline",
        "touch",
    )

    def __init__(
        self,
        node: "Broker | ControllerNode",
        settings: NetworkSettings,
        loop: asyncio.AbstractEventLoop,
        routes: Routes | None = None,
    ) -> None:
        self.loop = loop
        self._settings = settings
        self.clock = node.clock
        self.buffers = BufferPool(settings.receiving_limit_bytes)
        self.pipeline = Pipeline(node, loop, routes)
        self._purgatory = node.purgatory
        self._connections: OrderedDict[Connection, None] = OrderedDict()  # idle longest first
        self.touch = self._connections.move_to_end
        """To be called with a connection that is not idle."""
        self._per_host: dict[str, int] = {}
        self._listeners: list[Listener] = []
        self._sweep_handle: asyncio.TimerHandle | None = None
        node.metrics.register(self)

    def __len__(self) -> int:
        return len(self._connections)

    def __iter__(self) -> Iterator[Gauge]:
        """What a scrape wants to know."""
        counts: dict[str, int] = {listener.name: 0 for listener in self._listeners}
        for connection in self._connections:
            counts[connection.listener] = counts.get(connection.listener, 0) + 1
        for listener, count in counts.items():
            labels = {"listener": listener, "networkProcessor": "0"}
            yield Gauge("kafka_server_socket_server_metrics_connection_count", count, labels)

    @property
    def settings(self) -> NetworkSettings:
        return self._settings

    @settings.setter
    def settings(self, settings: NetworkSettings) -> None:
        """Hold to new bounds from now on; whoever is connected already stays."""
        self._settings = settings
        self.buffers.limit_bytes = settings.receiving_limit_bytes
        for listener in self._listeners:
            listener.accept_on()

    def listen(self, name: str, host: str, port: int) -> Listener:
        """Take an address, to be served from `open` on; OSError says which one is taken."""
        listener = Listener(self, name, host, port)
        self._listeners.append(listener)
        return listener

    def open(self) -> None:
        """Serve the clients of all listeners."""
        for listener in self._listeners:
            listener.accept_on()
        if self._sweep_handle is None:
            self._sweep_later()

    def adopt(self, sock: socket.socket, host: str, listener: str) -> Connection | None:
        """Serve a connected socket, unless its host has too many already."""
        limits = self.settings
        allowed = limits.per_ip_overrides.get(host, limits.max_connections_per_ip)
        if self._per_host.get(host, 0) >= allowed:
            log.info("refused %s: it has %d connections (max.connections.per.ip)", host, allowed)
            sock.close()
            return None
        self._per_host[host] = self._per_host.get(host, 0) + 1
        connection = Connection(self, sock, host, listener)
        self._connections[connection] = None
        connection.start()
        return connection

    @property
    def is_full(self) -> bool:
        return len(self._connections) >= self.settings.max_connections

    def forget(self, connection: Connection) -> None:
        """It is closed."""
        if connection not in self._connections:
            return
        was_full = self.is_full
        del self._connections[connection]
        left = self._per_host[connection.host] - 1
        if left:
            self._per_host[connection.host] = left
        else:
            del self._per_host[connection.host]
        if was_full and not self.is_full:
            for listener in self._listeners:
                listener.accept_on()

    def close_idle(self, now_ns: int) -> int:
        """Close every connection without traffic for `idle_ms`; how many that were."""
        closed = 0
        idle_since_ns = now_ns - self.settings.idle_ms * 1_000_000
        for connection in list(self._idle_before(idle_since_ns)):
            if connection.is_busy:
                self.touch(connection)
            else:
                connection.close()
                closed += 1
        return closed

    async def drain(self, timeout_ms: int) -> None:
        """Accept nobody, answer what has arrived, and close; what takes longer is cut off."""
        for listener in self._listeners:
            listener.close()
        if self._sweep_handle is not None:
            self._sweep_handle.cancel()
        for connection in list(self._connections):
            connection.drain()
        self._purgatory.release_all()
        deadline = self.loop.time() + timeout_ms / 1000
        while self._connections and self.loop.time() < deadline:
            await asyncio.sleep(_DRAIN_POLL_S)
        for connection in list(self._connections):
            connection.close("its requests took longer than the broker could wait to stop")

    def _idle_before(self, then_ns: int) -> Iterator[Connection]:
        for connection in self._connections:
            if connection.received_ns > then_ns:
                return
            yield connection

    def _sweep_later(self) -> None:
        interval = self.settings.idle_ms / 1000 / _SWEEPS_AN_IDLE_TIME
        interval = min(max(interval, _SHORTEST_SWEEP_S), _LONGEST_SWEEP_S)
        self._sweep_handle = self.loop.call_later(interval, self._sweep)

    def _sweep(self) -> None:
        if self.settings.idle_ms >= 0:
            self.close_idle(perf_counter_ns())
        self._sweep_later()
