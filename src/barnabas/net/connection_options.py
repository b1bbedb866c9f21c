"""Options that all connections of a node, or of a client, have in common."""

import asyncio
import socket
from dataclasses import dataclass

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
