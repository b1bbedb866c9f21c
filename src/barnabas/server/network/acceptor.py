"""The listening sockets of one listener, which accept clients a batch at a time."""

import errno
import logging
import socket
from functools import partial
from typing import TYPE_CHECKING

from barnabas.net.listening_sockets import bind_sockets, plain_host
from barnabas.server.network.listener_security import ListenerSecurity

if TYPE_CHECKING:
    from barnabas.server.network.socket_server import SocketServer

log = logging.getLogger(__name__)

_MAX_ACCEPTS_PER_TURN = 64
"""Clients accepted in one turn of the loop."""

_MIN_BACKLOG = 1024
"""Kafka has a thread that only accepts; here clients wait while the loop is busy.

A burst of clients would overflow Kafka's default of 50 (socket.listen.backlog.size), and a client
that finds the queue full retries only after a second.
"""

_OUT_OF_FILES = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}
_RETRY_S = 1.0


class Acceptor:
    """One listener of the node, with a socket for each address of its host.

    `port` is the actual port, also if port 0 was requested. Clients may connect at once; they wait
    in the kernel's queue until `resume` is called.
    """

    __slots__ = (
        "_is_delayed",
        "_security",
        "_server",
        "_sockets",
        "host",
        "is_accepting",
        "name",
        "port",
    )

    def __init__(
        self, server: "SocketServer", name: str, host: str, port: int, security: ListenerSecurity
    ) -> None:
        self._server = server
        self._security = security
        self.is_accepting = False
        self._is_delayed = False  # by the rate of new connections
        self.name = name
        self.host = host
        self._sockets = _bind(name, host, port, server.settings.receive_buffer_bytes)
        for sock in self._sockets:
            sock.listen(max(server.settings.backlog, _MIN_BACKLOG))
        self.port: int = self._sockets[0].getsockname()[1]

    def resume(self) -> None:
        """Accepts clients, if it does not yet."""
        if self.is_accepting or self._is_delayed:
            return
        for sock in self._sockets:
            self.is_accepting = True
            self._server.loop.add_reader(sock, self._on_readable, sock)

    def close(self) -> None:
        self._stop_accepting()
        for sock in self._sockets:
            sock.close()
        self._sockets = []
        self._security.close()

    def _on_readable(self, listening: socket.socket) -> None:
        server = self._server
        for _ in range(_MAX_ACCEPTS_PER_TURN):
            if server.is_full(self.name):
                # They wait in the kernel's queue until a connection is closed.
                log.warning(
                    "Listener %s accepts no clients: there are %d connections (max.connections)",
                    self.name,
                    len(server),
                )
                self._stop_accepting()
                return
            try:
                sock, address = listening.accept()
            except (BlockingIOError, InterruptedError):
                return
            except ConnectionError:
                continue  # it disconnected before it was accepted
            except OSError as error:
                if error.errno not in _OUT_OF_FILES:
                    raise
                log.error(
                    "Listener %s cannot accept clients: %s; raise ulimit -n",
                    self.name,
                    error.strerror,
                )
                self._stop_accepting()
                server.loop.call_later(_RETRY_S, self.resume)
                return
            _configure(sock, server.settings.send_buffer_bytes)
            server.add_connection(
                sock,
                plain_host(address[0]),
                plain_host(sock.getsockname()[0]),
                self.name,
                self._security,
            )
            delay_ms = server.connection_quotas.record_accepted(self.name, server.now_ms())
            if delay_ms:
                self._delay(delay_ms)
                return

    def _delay(self, delay_ms: int) -> None:
        """Leaves clients in the kernel's queue, because they connect too fast."""
        self._stop_accepting()
        self._is_delayed = True
        self._server.loop.call_later(delay_ms / 1000, self._end_delay)

    def _end_delay(self) -> None:
        self._is_delayed = False
        self.resume()

    def _stop_accepting(self) -> None:
        if self.is_accepting:
            self.is_accepting = False
            for sock in self._sockets:
                self._server.loop.remove_reader(sock)


def _bind(name: str, host: str, port: int, receive_buffer_bytes: int) -> list[socket.socket]:
    """Binds the addresses of the host. Raises OSError, which names the listener."""
    configure = partial(_set_receive_buffer, receive_buffer_bytes)
    try:
        return bind_sockets(host, port, configure if receive_buffer_bytes >= 0 else None)
    except socket.gaierror as error:
        raise OSError(
            error.errno, f"listener {name} cannot resolve {host}: {error.strerror}"
        ) from None
    except OSError as error:
        reason = error.strerror
        if error.errno == errno.EACCES:
            reason = f"{reason}; ports below 1024 are for root"
        raise OSError(
            error.errno, f"listener {name} cannot bind {host or '*'}:{port}: {reason}"
        ) from None


def _set_receive_buffer(size_bytes: int, sock: socket.socket) -> None:
    """Called before listening: accepted sockets must inherit it in time to scale their window."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, size_bytes)


def _configure(sock: socket.socket, send_buffer_bytes: int) -> None:
    sock.setblocking(False)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if send_buffer_bytes >= 0:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, send_buffer_bytes)
