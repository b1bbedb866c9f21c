"""The listeners of a broker or of a controller, their connections, and the limits these share."""

import asyncio
import logging
import socket
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from barnabas.config.addresses import parse_ip_overrides
from barnabas.net.buffers import BufferPool
from barnabas.security.quotas.connection_quotas import UNLIMITED, ConnectionQuotas
from barnabas.security.quotas.rate import DEFAULT_WINDOW, RateWindow
from barnabas.server.metrics.registry import Gauge
from barnabas.server.network._clock import ServerClock
from barnabas.server.network._connection import ClientConnection
from barnabas.server.network._pipeline import RequestPipeline
from barnabas.server.network._turns import ConnectionTurns
from barnabas.server.network.acceptor import Acceptor
from barnabas.server.network.authentication_metrics import AuthenticationMetrics
from barnabas.server.network.listener_security import PLAINTEXT, ListenerSecurity
from barnabas.server.network.routes import RouteTable
from barnabas.server.network.tls_handshakes import TlsHandshakes
from barnabas.server.network.unauthenticated import UnauthenticatedConnections
from barnabas.server.quotas import request_window

if TYPE_CHECKING:
    from barnabas.server.nodes import BrokerNode, ControllerNode

log = logging.getLogger(__name__)

_DEFAULT_RECEIVE_LIMIT_REQUESTS = 8
"""The receive limit, in requests of the largest size, if queued.max.request.bytes is not set."""

_IDLE_CHECKS_PER_TIMEOUT = 8
_MIN_IDLE_CHECK_S = 0.05
_MAX_IDLE_CHECK_S = 10.0
_DRAIN_POLL_S = 0.01

_MAX_HELD_SOCKETS = 1000
"""Clients that connect too often and wait for the end of their connection; others do not wait."""

_METRICS = "kafka_server_socket_server_metrics_"


@dataclass(slots=True, frozen=True)
class SocketServerSettings:
    """The settings of sockets and connections."""

    request_max_bytes: int = 100 << 20
    queued_max_requests: int = 500
    queued_max_request_bytes: int = -1
    idle_ms: int = 600_000
    failed_authentication_delay_ms: int = 100
    send_buffer_bytes: int = 102_400
    receive_buffer_bytes: int = 102_400
    backlog: int = 50
    max_connections: int = UNLIMITED
    listener_max_connections: Mapping[str, int] = field(default_factory=dict)
    max_creation_rate: int = UNLIMITED
    listener_creation_rates: Mapping[str, int] = field(default_factory=dict)
    protected_listener: str | None = None
    """The inter-broker listener, which ignores the limits of the whole broker."""
    quota_window: RateWindow = DEFAULT_WINDOW
    max_connections_per_ip: int = UNLIMITED
    per_ip_overrides: dict[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> "SocketServerSettings":
        return cls(
            request_max_bytes=settings["socket.request.max.bytes"],
            queued_max_requests=settings["queued.max.requests"],
            queued_max_request_bytes=settings["queued.max.request.bytes"],
            idle_ms=settings["connections.max.idle.ms"],
            failed_authentication_delay_ms=settings["connection.failed.authentication.delay.ms"],
            send_buffer_bytes=settings["socket.send.buffer.bytes"],
            receive_buffer_bytes=settings["socket.receive.buffer.bytes"],
            backlog=settings["socket.listen.backlog.size"],
            max_connections=settings["max.connections"],
            listener_max_connections=_by_listener(settings, "max.connections"),
            max_creation_rate=settings["max.connection.creation.rate"],
            listener_creation_rates=_by_listener(settings, "max.connection.creation.rate"),
            protected_listener=settings["inter.broker.listener.name"]
            or settings["security.inter.broker.protocol"],
            quota_window=request_window(settings),
            max_connections_per_ip=settings["max.connections.per.ip"],
            per_ip_overrides=parse_ip_overrides(settings["max.connections.per.ip.overrides"]),
        )

    @property
    def receiving_limit_bytes(self) -> int:
        limit = self.queued_max_request_bytes
        return limit if limit > 0 else _DEFAULT_RECEIVE_LIMIT_REQUESTS * self.request_max_bytes


def _by_listener(settings: Mapping[str, Any], name: str) -> dict[str, int]:
    """Returns the values that single listeners have, by the names of the listeners in lower case.

    A setting is not case-sensitive in the name of its listener.
    """
    prefix, suffix = "listener.name.", f".{name}"
    return {
        key[len(prefix) : -len(suffix)]: value
        for key, value in settings.items()
        if key.startswith(prefix) and key.endswith(suffix)
    }


class SocketServer:
    """Accepts clients, limits their number and their memory, and closes idle connections."""

    __slots__ = (
        "_acceptors",
        "_authentication_metrics",
        "_connections",
        "_held",
        "_idle_check",
        "_per_host",
        "_per_listener",
        "_purgatory",
        "_settings",
        "buffers",
        "connection_quotas",
        "disk_reads",
        "handshakes",
        "loop",
        "mark_active",
        "monotonic_ns",
        "pipeline",
        "timer",
        "turns",
        "unauthenticated",
    )

    def __init__(
        self,
        node: "BrokerNode | ControllerNode",
        settings: SocketServerSettings,
        loop: asyncio.AbstractEventLoop,
        routes: RouteTable | None = None,
    ) -> None:
        self.loop = loop
        self._settings = settings
        self.monotonic_ns = node.monotonic_ns
        self.buffers = BufferPool(settings.receiving_limit_bytes)
        self.disk_reads = node.disk_reads
        self.pipeline = RequestPipeline(node, loop, routes)
        self.handshakes = TlsHandshakes(loop)
        self.timer = node.timer
        self._authentication_metrics: dict[str, AuthenticationMetrics] = {}
        self.unauthenticated = UnauthenticatedConnections(node, loop)
        self._purgatory = node.purgatory
        self._connections: OrderedDict[ClientConnection, None] = OrderedDict()  # idle longest first
        self.mark_active = self._connections.move_to_end
        """Records that a connection is not idle."""
        self.turns = ConnectionTurns(
            loop, ServerClock(node.clock, node.monotonic_ns), self.buffers.shared, self.mark_active
        )
        self._per_host: dict[str, int] = {}
        self._per_listener: dict[str, int] = {}
        self._held: set[socket.socket] = set()
        self.connection_quotas = ConnectionQuotas(settings.quota_window)
        self._acceptors: list[Acceptor] = []
        self._idle_check: asyncio.TimerHandle | None = None
        self._set_turn_bounds()
        self._set_connection_rates()
        node.metrics.register(self)

    def __len__(self) -> int:
        return len(self._connections)

    def __iter__(self) -> Iterator[Gauge]:
        """Returns the gauges of the connections, by listener."""
        counts = {acceptor.name: 0 for acceptor in self._acceptors} | self._per_listener
        for listener, count in counts.items():
            labels = {"listener": listener, "networkProcessor": "0"}
            yield Gauge(_METRICS + "connection_count", count, labels)
        yield from self.handshakes.gauges()
        for listener, metrics in self._authentication_metrics.items():
            yield from metrics.gauges({"listener": listener, "networkProcessor": "0"})
        yield from self._quota_gauges()

    def _quota_gauges(self) -> Iterator[Gauge]:
        quotas, now_ms = self.connection_quotas, self.now_ms()
        for listener, rate in quotas.listeners.items():
            labels = {"listener": listener}
            yield Gauge(_METRICS + "connection_accept_rate", rate.per_second(now_ms), labels)
        for listener, waited in quotas.throttle_times.items():
            labels = {"listener": listener}
            waited_ms = waited.average(now_ms)
            yield Gauge(_METRICS + "connection_accept_throttle_time", waited_ms, labels)
        for listener, waited in quotas.ip_throttle_times.items():
            labels = {"listener": listener}
            waited_ms = waited.average(now_ms)
            yield Gauge(_METRICS + "ip_connection_accept_throttle_time", waited_ms, labels)
        for host, per_second in quotas.ip_rates(now_ms):
            yield Gauge(_METRICS + "connection_accept_rate", per_second, {"ip": host})
        yield Gauge(_METRICS + "broker_connection_accept_rate", quotas.broker.per_second(now_ms))

    @property
    def settings(self) -> SocketServerSettings:
        return self._settings

    @settings.setter
    def settings(self, settings: SocketServerSettings) -> None:
        """Applies new limits; existing connections stay open."""
        self._settings = settings
        self._set_turn_bounds()
        self._set_connection_rates()
        self.buffers.limit_bytes = settings.receiving_limit_bytes
        for acceptor in self._acceptors:
            acceptor.resume()

    def now_ms(self) -> int:
        """Returns the time of the event loop, by which connections are delayed."""
        return int(self.loop.time() * 1000)

    def authentication_metrics(self, listener: str) -> AuthenticationMetrics:
        """Returns the metrics of a listener whose clients authenticate."""
        return self._authentication_metrics.setdefault(listener, AuthenticationMetrics())

    def listen(
        self, name: str, host: str, port: int, security: ListenerSecurity = PLAINTEXT
    ) -> Acceptor:
        """Binds an address; clients are served from `open` on.

        Raises OSError, which names the address, if it cannot be used.
        """
        acceptor = Acceptor(self, name, host, port, security)
        self._acceptors.append(acceptor)
        self._set_connection_rates()
        return acceptor

    def _set_turn_bounds(self) -> None:
        self.turns.max_frame_bytes = self._settings.request_max_bytes
        self.turns.max_requests = self._settings.queued_max_requests

    def _set_connection_rates(self) -> None:
        settings = self._settings
        self.connection_quotas.set_bounds(
            settings.max_creation_rate,
            settings.listener_creation_rates,
            self._protected_listener,
        )

    @property
    def _protected_listener(self) -> str | None:
        """The listener that ignores the limits of the broker; a single listener does not."""
        return self._settings.protected_listener if len(self._acceptors) > 1 else None

    def open(self) -> None:
        """Starts to serve the clients of all listeners."""
        for acceptor in self._acceptors:
            acceptor.resume()
        if self._idle_check is None:
            self._schedule_idle_check()

    def add_connection(
        self,
        sock: socket.socket,
        host: str,
        local_host: str,
        listener: str,
        security: ListenerSecurity = PLAINTEXT,
    ) -> ClientConnection | None:
        """Serves a connected socket, unless its host has too many connections."""
        limits = self.settings
        allowed = limits.per_ip_overrides.get(host, limits.max_connections_per_ip)
        if self._per_host.get(host, 0) >= allowed:
            log.info(
                "Rejected a connection of %s, which has %d (max.connections.per.ip)", host, allowed
            )
            sock.close()
            return None
        quotas = self.connection_quotas
        if quotas.has_ip_quotas and (delay_ms := quotas.record_ip(listener, host, self.now_ms())):
            self._hold_and_close(sock, delay_ms)
            return None
        self._per_host[host] = self._per_host.get(host, 0) + 1
        connection = ClientConnection(self, sock, host, local_host, listener, security)
        self._connections[connection] = None
        self._per_listener[listener] = self._per_listener.get(listener, 0) + 1
        if connection.authentication is not None:
            self.unauthenticated.add(connection)
        if len(self._connections) > limits.max_connections:
            self._close_least_recently_used()
        connection.start()
        return connection

    def is_full(self, listener: str) -> bool:
        """Returns whether a listener must not accept more clients."""
        settings = self.settings
        allowed = settings.listener_max_connections.get(listener.lower(), UNLIMITED)
        if self._per_listener.get(listener, 0) >= allowed:
            return True
        is_protected = listener == self._protected_listener
        return not is_protected and len(self._connections) >= settings.max_connections

    def _close_least_recently_used(self) -> None:
        """Makes room for a connection of another broker."""
        for connection in self._connections:
            if connection.listener != self._protected_listener:
                connection.close("another broker needs the connection (max.connections)")
                return

    def _hold_and_close(self, sock: socket.socket, delay_ms: int) -> None:
        """Leaves a client that connects too often waiting, and closes the socket then."""
        if len(self._held) >= _MAX_HELD_SOCKETS:
            sock.close()
            return
        self._held.add(sock)
        self.loop.call_later(delay_ms / 1000, self._close_held, sock)

    def _close_held(self, sock: socket.socket) -> None:
        self._held.discard(sock)
        sock.close()

    def remove_connection(self, connection: ClientConnection) -> None:
        """Called by a connection when it is closed."""
        if connection not in self._connections:
            return
        del self._connections[connection]
        self._per_listener[connection.listener] -= 1
        self.unauthenticated.discard(connection)
        left = self._per_host[connection.host] - 1
        if left:
            self._per_host[connection.host] = left
        else:
            del self._per_host[connection.host]
        for acceptor in self._acceptors:
            if not acceptor.is_accepting and not self.is_full(acceptor.name):
                acceptor.resume()

    def close_idle(self) -> int:
        """Closes the connections without traffic for `idle_ms`; returns how many."""
        closed = 0
        idle_since_ns = self.monotonic_ns() - self.settings.idle_ms * 1_000_000
        for connection in list(self._idle_before(idle_since_ns)):
            if connection.is_busy:
                self.mark_active(connection)
            else:
                connection.close()
                closed += 1
        return closed

    async def drain(self, timeout_ms: int) -> None:
        """Stops accepting, responds to the requests that have arrived, and closes all connections.

        Connections whose requests take longer than `timeout_ms` are closed without a response.
        """
        for acceptor in self._acceptors:
            acceptor.close()
        if self._idle_check is not None:
            self._idle_check.cancel()
        for connection in list(self._connections):
            connection.drain()
        self._purgatory.release_all()
        deadline = self.loop.time() + timeout_ms / 1000
        while self._connections and self.loop.time() < deadline:
            await asyncio.sleep(_DRAIN_POLL_S)
        self._close_all_held()
        for connection in list(self._connections):
            connection.close("its requests took longer than the timeout of the shutdown")
        self.handshakes.close()
        self.turns.close()

    def close(self) -> None:
        """Closes the listeners and all connections at once."""
        for acceptor in self._acceptors:
            acceptor.close()
        if self._idle_check is not None:
            self._idle_check.cancel()
        self._close_all_held()
        for connection in list(self._connections):
            connection.close()
        self.handshakes.close()
        self.turns.close()

    def _close_all_held(self) -> None:
        for sock in tuple(self._held):
            self._close_held(sock)

    def _idle_before(self, deadline_ns: int) -> Iterator[ClientConnection]:
        for connection in self._connections:
            if connection.received_ns > deadline_ns:
                return
            yield connection

    def _schedule_idle_check(self) -> None:
        interval = self.settings.idle_ms / 1000 / _IDLE_CHECKS_PER_TIMEOUT
        interval = min(max(interval, _MIN_IDLE_CHECK_S), _MAX_IDLE_CHECK_S)
        self._idle_check = self.loop.call_later(interval, self._check_idle)

    def _check_idle(self) -> None:
        if self.settings.idle_ms >= 0:
            self.close_idle()
        self.unauthenticated.close_overdue()
        self._schedule_idle_check()
