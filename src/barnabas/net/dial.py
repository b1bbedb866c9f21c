"""Opens a connection without ever holding up the loop."""

import asyncio
import errno
import os
import socket
from collections import deque
from collections.abc import Callable
from typing import Any

_Address = tuple[Any, ...]
"""As getaddrinfo tells them: family, type, protocol, canonical name, socket address."""


class Dial:
    """One attempt: finds the addresses of a name and tries them in turn until one accepts.

    `prepare` sets a socket's options. Calls `connected` or `failed` once, in a later turn of the
    loop than it was made in.
    """

    __slots__ = ("_addresses", "_connected", "_failed", "_is_over", "_loop", "_prepare", "_socket")

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        host: str,
        port: int,
        prepare: Callable[[socket.socket], None],
        connected: Callable[[socket.socket], None],
        failed: Callable[[OSError], None],
    ) -> None:
        self._loop = loop
        self._prepare = prepare
        self._connected = connected
        self._failed = failed
        self._addresses: deque[_Address] = deque()
        self._socket: socket.socket | None = None  # that waits to be accepted
        self._is_over = False
        try:
            self._addresses.extend(_addresses(host, port, socket.AI_NUMERICHOST))
        except socket.gaierror:
            # A name: it may take a server far away to tell whose.
            finding = loop.run_in_executor(None, _addresses, host, port)
            finding.add_done_callback(self._found)
        else:
            loop.call_soon(self._try_next)

    def cancel(self) -> None:
        """Nobody wants the connection any more."""
        self._is_over = True
        self._hang_up()

    def _found(self, finding: "asyncio.Future[list[_Address]]") -> None:
        failure = finding.exception()
        if self._is_over:
            return
        if isinstance(failure, OSError):
            self._end(failure)
        else:
            self._addresses.extend(finding.result())
            self._try_next()

    def _try_next(self) -> None:
        if self._is_over:
            return
        family, kind, protocol, _, address = self._addresses.popleft()
        try:
            sock = self._socket = socket.socket(family, kind, protocol)
            self._prepare(sock)
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
        except OSError as failure:  # the other side has hung up already
            self._refused(failure)
            return
        if is_itself:
            # Nobody listens, and the kernel chose that very port for our own end.
            self._refused(ConnectionRefusedError(errno.ECONNREFUSED, "met only itself"))
            return
        self._socket = None
        self._is_over = True
        self._connected(sock)

    def _refused(self, failure: OSError) -> None:
        self._hang_up()
        if self._addresses:
            self._try_next()
        else:
            self._end(failure)

    def _end(self, failure: OSError) -> None:
        self._is_over = True
        self._failed(failure)

    def _hang_up(self) -> None:
        if self._socket is not None:
            self._loop.remove_writer(self._socket)
            self._socket.close()
            self._socket = None


def _addresses(host: str, port: int, flags: int = 0) -> list[_Address]:
    return list(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=flags))
