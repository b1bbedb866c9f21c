"""Opens a connection without blocking the loop."""

import asyncio
import contextlib
import errno
import os
import socket
from collections import deque
from collections.abc import Callable
from typing import Any

_Address = tuple[Any, ...]
"""As getaddrinfo returns them: family, type, protocol, canonical name, socket address."""


class ConnectAttempt:
    """Resolves a name and tries its addresses in turn until one accepts.

    `prepare` sets a socket's options. Calls `connected` or `failed` once, in a later turn of the
    loop than it was made in.
    """

    __slots__ = (
        "_addresses",
        "_configure_socket",
        "_is_over",
        "_loop",
        "_on_connected",
        "_on_failed",
        "_socket",
    )

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        host: str,
        port: int,
        configure_socket: Callable[[socket.socket], None],
        on_connected: Callable[[socket.socket], None],
        on_failed: Callable[[OSError], None],
    ) -> None:
        self._loop = loop
        self._configure_socket = configure_socket
        self._on_connected = on_connected
        self._on_failed = on_failed
        self._addresses: deque[_Address] = deque()
        self._socket: socket.socket | None = None  # while it is connecting
        self._is_over = False
        try:
            self._addresses.extend(_addresses(host, port, socket.AI_NUMERICHOST))
        except socket.gaierror:
            # A name: resolving it may block. A process that ends can start no thread for it, and
            # the attempt is abandoned with the process.
            with contextlib.suppress(RuntimeError):
                lookup = loop.run_in_executor(None, _addresses, host, port)
                lookup.add_done_callback(self._on_resolved)
        else:
            loop.call_soon(self._try_next)

    def cancel(self) -> None:
        """Abandons the attempt."""
        self._is_over = True
        self._close_socket()

    def _on_resolved(self, lookup: "asyncio.Future[list[_Address]]") -> None:
        failure = lookup.exception()
        if self._is_over:
            return
        if isinstance(failure, OSError):
            self._end(failure)
        else:
            self._addresses.extend(lookup.result())
            self._try_next()

    def _try_next(self) -> None:
        if self._is_over:
            return
        family, kind, protocol, _, address = self._addresses.popleft()
        try:
            sock = self._socket = socket.socket(family, kind, protocol)
            self._configure_socket(sock)
            sock.connect(address)
        except BlockingIOError:
            self._loop.add_writer(sock, self._on_writable, sock)
        except OSError as failure:
            self._refused(failure)
        else:
            self._on_accepted(sock)

    def _on_writable(self, sock: socket.socket) -> None:
        self._loop.remove_writer(sock)
        code = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if code:
            self._refused(OSError(code, os.strerror(code)))
        else:
            self._on_accepted(sock)

    def _on_accepted(self, sock: socket.socket) -> None:
        try:
            is_itself = sock.getsockname() == sock.getpeername()
        except OSError as failure:  # the peer has already disconnected
            self._refused(failure)
            return
        if is_itself:
            # No one listens, and the kernel chose that port for this end: a self-connection.
            self._refused(ConnectionRefusedError(errno.ECONNREFUSED, "connected to itself"))
            return
        self._socket = None
        self._is_over = True
        self._on_connected(sock)

    def _refused(self, failure: OSError) -> None:
        self._close_socket()
        if self._addresses:
            self._try_next()
        else:
            self._end(failure)

    def _end(self, failure: OSError) -> None:
        self._is_over = True
        self._on_failed(failure)

    def _close_socket(self) -> None:
        if self._socket is not None:
            self._loop.remove_writer(self._socket)
            self._socket.close()
            self._socket = None


def _addresses(host: str, port: int, flags: int = 0) -> list[_Address]:
    return list(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=flags))
