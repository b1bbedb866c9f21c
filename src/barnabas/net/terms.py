"""On what terms connections are made: what all those of a node, or of a client, have in common."""

import asyncio
import socket
from dataclasses import dataclass

from barnabas.net.buffers import Buffers
from barnabas.net.sasl import Sasl
from barnabas.net.tls import Tls

LARGEST_ANSWER_BYTES = 100 << 20
"""A fetch brings at least one batch whole, however large: no less than a request may have."""

_LARGEST_ANSWERS_AT_ONCE = 8
_KEPT_BYTES = 32 << 20
_LARGEST_KEPT_BYTES = 16 << 20
"""An answer to a follower that lags brings 10 MiB (replica.fetch.response.max.bytes), then more."""


@dataclass(slots=True, frozen=True, kw_only=True)
class Terms:
    loop: asyncio.AbstractEventLoop
    buffers: Buffers  # that answers are received into
    largest_answer_bytes: int = LARGEST_ANSWER_BYTES
    connect_timeout_ms: int | None = None  # None: requests that wait have a time of their own
    max_idle_ms: int = 0  # 0: for ever
    send_buffer_bytes: int = 0  # 0: what the system gives
    receive_buffer_bytes: int = 0
    tls: Tls | None = None
    sasl: Sasl | None = None

    def prepare(self, sock: socket.socket) -> None:
        """Set a socket's options, before it connects."""
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        if self.send_buffer_bytes:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, self.send_buffer_bytes)
        if self.receive_buffer_bytes:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, self.receive_buffer_bytes)


def buffers_for(largest_answer_bytes: int) -> Buffers:
    """Memory for answers of that size."""
    return Buffers(
        _LARGEST_ANSWERS_AT_ONCE * largest_answer_bytes, _KEPT_BYTES, _LARGEST_KEPT_BYTES
    )
