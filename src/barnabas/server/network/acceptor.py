"""A listening socket, which accepts clients a batch at a time."""

import errno
import logging
import socket
from typing import TYPE_CHECKING

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
    """One address of the node. `port` is the actual port, also if port 0 was requested.

    Clients may connect at once; they wait in the kernel's queue until `resume` is called.
    """

    __slots__ = ("_is_accepting", "_server", "_socket", "host", "name", "port")

    def __init__(self, server: "SocketServer", name: str, host: str, port: int) -> None:
        self._server = server
        self._is_accepting = False
        self.name = name
        self.host = host
        self._socket = _listen(name, host, port, server.settings.receive_buffer_bytes)
        self._socket.listen(max(server.settings.backlog, _MIN_BACKLOG))
        self.port: int = self._socket.getsockname()[1]

    def resume(self) -> None:
        """Accepts clients, if it does not yet."""
        if not self._is_accepting and self._socket.fileno() >= 0:
            self._is_accepting = True
            self._server.loop.add_reader(self._socket, self._on_readable)

    def close(self) -> None:
        self._stop_accepting()
        self._socket.close()

    def _on_readable(self) -> None:
        server = self._server
        for _ in range(_MAX_ACCEPTS_PER_TURN):
            if server.is_full:
                # They wait in the kernel's queue until a connection is closed.
                log.warning(
                    "Listener %s accepts no clients: there are %d connections (max.connections)",
                    self.name,
                    len(server),
                )
                self._stop_accepting()
                return
            try:
                sock, address = self._socket.accept()
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
            server.add_connection(sock, _plain_host(address[0]), self.name)

    def _stop_accepting(self) -> None:
        if self._is_accepting:
            self._is_accepting = False
            self._server.loop.remove_reader(self._socket)


def _listen(name: str, host: str, port: int, receive_buffer_bytes: int) -> socket.socket:
    """Binds a socket. An empty host means every interface, by IPv6 and IPv4 if both exist."""
    if not host and socket.has_dualstack_ipv6():
        sock = socket.socket(socket.AF_INET6, socket.SOCK_STREAM)
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    else:
        sock = socket.socket(_family(name, host, port), socket.SOCK_STREAM)
    try:
        sock.setblocking(False)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if receive_buffer_bytes >= 0:
            # Before listening, so that accepted sockets inherit it in time to scale their window.
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)
        sock.bind((host, port))
    except OSError as error:
        sock.close()
        raise OSError(
            error.errno, f"listener {name} cannot bind {host or '*'}:{port}: {error.strerror}"
        ) from None
    return sock


def _family(name: str, host: str, port: int) -> socket.AddressFamily:
    try:
        return socket.getaddrinfo(host or "0.0.0.0", port, type=socket.SOCK_STREAM)[0][0]
    except OSError as error:
        raise OSError(
            error.errno, f"listener {name} cannot resolve {host}: {error.strerror}"
        ) from None


def _plain_host(host: str) -> str:
    """Returns the usual form of an IPv4 address that a dual-stack socket reports."""
    return host.removeprefix("::ffff:")


def _configure(sock: socket.socket, send_buffer_bytes: int) -> None:
    sock.setblocking(False)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if send_buffer_bytes >= 0:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, send_buffer_bytes)
