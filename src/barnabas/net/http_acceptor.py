"""Accepts HTTP clients, with or without TLS: a bounded number, and handshakes in bounded time."""

import asyncio
import errno
import logging
import socket
import ssl
from collections.abc import Callable

from barnabas.net.failure_log import FailureLog
from barnabas.net.listening_sockets import plain_host
from barnabas.net.tls_errors import explain_to_server

log = logging.getLogger(__name__)

HANDSHAKE_TIMEOUT_S = 10.0
"""How long a client may take for its TLS handshake."""

UNREAD_TIMEOUT_MS = 30_000
"""The kernel closes a connection whose client reads nothing of a response for this long."""

_MAX_HANDSHAKES_PER_S = 100
"""Handshakes are computed on the event loop, a millisecond each: others must get their turn."""

_OUT_OF_FILES = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}
_RETRY_S = 1.0
_PLAIN_TEXT = ("HTTP_REQUEST", "WRONG_VERSION_NUMBER")


class HttpAcceptor:
    """Accepts on the sockets of one address until `close`.

    `count_connections` returns how many connections the protocols have. At the limit, new clients
    are closed at once.
    """

    def __init__(
        self,
        name: str,
        sockets: list[socket.socket],
        create_protocol: Callable[[], asyncio.Protocol],
        count_connections: Callable[[], int],
        *,
        max_connections: int,
        tls: Callable[[], ssl.SSLContext] | None = None,
        handshake_timeout_s: float = HANDSHAKE_TIMEOUT_S,
    ) -> None:
        """`name` is for the log. `tls` returns the current context, for each connection anew."""
        self._name = name
        self._sockets = sockets
        self._create_protocol = create_protocol
        self._count_connections = count_connections
        self._max_connections = max_connections
        self._tls = tls
        self._handshake_timeout_s = handshake_timeout_s
        self._starting: set[asyncio.Task[None]] = set()
        self._accepting: list[asyncio.Task[None]] = []
        self._failures = FailureLog(log)

    def start(self) -> None:
        self._accepting = [asyncio.create_task(self._accept(sock)) for sock in self._sockets]

    def close(self) -> None:
        """Closes the listening sockets. Established connections stay open."""
        for task in (*self._accepting, *self._starting):
            task.cancel()
        for sock in self._sockets:
            sock.close()

    async def wait_closed(self) -> None:
        await asyncio.gather(*self._accepting, *self._starting, return_exceptions=True)

    async def _accept(self, listening: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                sock, address = await loop.sock_accept(listening)
            except ConnectionError:
                continue  # it disconnected before it was accepted
            except OSError as error:
                if error.errno not in _OUT_OF_FILES:
                    raise
                log.error("%s cannot accept clients: %s; raise ulimit -n", self._name, error)
                await asyncio.sleep(_RETRY_S)
                continue
            host = plain_host(address[0])
            if len(self._starting) + self._count_connections() >= self._max_connections:
                sock.close()
                self._log_closed(host, f"there are {self._max_connections} connections")
                continue
            task = asyncio.create_task(self._start(sock, host))
            self._starting.add(task)
            task.add_done_callback(self._starting.discard)
            if self._tls is not None:
                await asyncio.sleep(1 / _MAX_HANDSHAKES_PER_S)

    async def _start(self, sock: socket.socket, host: str) -> None:
        """Makes the handshake, if there is one, and connects the socket with its protocol."""
        try:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, UNREAD_TIMEOUT_MS)
            await asyncio.get_running_loop().connect_accepted_socket(
                self._create_protocol,
                sock,
                ssl=self._tls() if self._tls is not None else None,
                ssl_handshake_timeout=None if self._tls is None else self._handshake_timeout_s,
            )
        except OSError as failure:
            sock.close()
            if self._tls is not None:
                self._log_closed(host, _explain(failure))
        except asyncio.CancelledError:
            sock.close()
            raise

    def _log_closed(self, host: str, reason: str) -> None:
        self._failures.warn("Closed the connection of %s to %s: %s", host, self._name, reason)


def _explain(failure: OSError) -> str:
    if isinstance(failure, ssl.SSLError) and failure.reason in _PLAIN_TEXT:
        return "it sent plain text, and this port is for https"
    if isinstance(failure, ConnectionAbortedError):
        return "it made no TLS handshake in time"
    return explain_to_server(failure) or str(failure)
