"""Options that all connections of a node or of a client share, and the counters of connections."""

import asyncio
import socket
from dataclasses import dataclass, field

from barnabas.net.buffers import BufferPool
from barnabas.net.sasl import SaslClient
from barnabas.net.tls import TlsContext

MAX_RESPONSE_BYTES = 100 << 20
"""A fetch returns at least one whole batch of any size: as much as a request may hold."""

_MAX_LARGE_RESPONSES = 8
_RETAINED_BYTES = 32 << 20
_MAX_RETAINED_BUFFER_BYTES = 16 << 20
"""A lagging follower gets responses of 10 MiB and more (replica.fetch.response.max.bytes)."""


@dataclass(slots=True, frozen=True, kw_only=True)
class PeerSecurity:
    """How connections to other nodes are secured."""

    tls: TlsContext | None = None
    sasl: SaslClient | None = None


@dataclass(slots=True, frozen=True, kw_only=True)
class ConnectionOptions:
    loop: asyncio.AbstractEventLoop
    buffers: BufferPool  # that responses are received into
    max_response_bytes: int = MAX_RESPONSE_BYTES
    connect_timeout_ms: int | None = None  # None: the timeouts of the waiting requests apply
    max_idle_ms: int = 0  # 0: no limit
    send_buffer_bytes: int = 0  # 0: the system's default
    receive_buffer_bytes: int = 0
    tls: TlsContext | None = None
    sasl: SaslClient | None = None

    def configure_socket(self, sock: socket.socket) -> None:
        """Sets a socket's options, before it connects."""
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        if self.send_buffer_bytes:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, self.send_buffer_bytes)
        if self.receive_buffer_bytes:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, self.receive_buffer_bytes)


def response_buffers(max_response_bytes: int) -> BufferPool:
    """Returns a pool for responses up to that size."""
    return BufferPool(
        _MAX_LARGE_RESPONSES * max_response_bytes, _RETAINED_BYTES, _MAX_RETAINED_BUFFER_BYTES
    )


@dataclass(slots=True)
class ConnectionCounters:
    """For metrics, and to select the least loaded node.

    Totals since the start; `connections`, `in_flight` and `throttle_ms` are current values.
    """

    requests: int = 0
    responses: int = 0
    bytes_out: int = 0
    bytes_in: int = 0
    latency_s: float = 0.0  # of all responses together
    latency_max_s: float = 0.0
    in_flight: int = 0
    timeouts: int = 0
    connections: int = 0
    connects: int = 0
    disconnects: int = 0
    failed_authentications: int = 0
    throttled: int = 0  # responses that a quota delayed
    throttle_ms: int = 0  # the delay of the last of them
    requests_by_api: dict[int, int] = field(default_factory=dict)
