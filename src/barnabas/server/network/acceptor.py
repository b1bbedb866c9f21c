"""A listening socket: takes in clients as they come, a batch at a time."""

import errno
import logging
import socket
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from barnabas.server.network.socket_server import Network

log = logging.getLogger(__name__)

_BATCH = 64
"""Clients accepted in one turn of the loop."""

_LEAST_BACKLOG = 1024
"""Kafka has a thread that only accepts; here clients wait while the loop is busy otherwise.

With its default of 50 places (socket.listen.backlog.size), a burst of clients would overflow
them, and who finds the queue full tries again after a whole second.
"""

_OUT_OF_FILES = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}
_RETRY_S = 1.0


class Listener:
    """One address of the broker. `port` is the real one, also where 0 was asked for.

    Clients may connect from the beginning; they wait in the kernel's queue until `accept_on`.
    """

    __slots__ = ("_is_accepting", "_network", "_socket", "host", "name", "port")

    def __init__(self, network: "Network", name: str, host: str, port: int) -> None:
        self._network = network
        self._is_accepting = False
        self.name = name
        self.host = host
        self._socket = _listen(name, host, port, network.settings.receive_buffer_bytes)
        self._socket.listen(max(network.settings.backlog, _LEAST_BACKLOG))
        self.port: int = self._socket.getsockname()[1]

    def accept_on(self) -> None:
        """Accept, now that there may be room for more."""
        if not self._is_accepting and self._socket.fileno() >= 0:
            self._is_accepting = True
            self._network.loop.add_reader(self._socket, self._on_readable)

    def close(self) -> None:
        self._stop_accepting()
        self._socket.close()

    def _on_readable(self) -> None:
        network = self._network
        for _ in range(_BATCH):
            if network.is_full:
                # They wait in the kernel's queue until somebody leaves.
                log.warning(
                    "%s accepts no one: %d connections (max.connections)", self.name, len(network)
                )
                self._stop_accepting()
                return
            try:
                sock, address = self._socket.accept()
            except (BlockingIOError, InterruptedError):
                return
            except ConnectionError:
                continue  # gone before we got to it
            except OSError as error:
                if error.errno not in _OUT_OF_FILES:
                    raise
                log.error(
                    "%s cannot accept clients: %s; raise ulimit -n", self.name, error.strerror
                )
                self._stop_accepting()
                network.loop.call_later(_RETRY_S, self.accept_on)
                return
            _configure(sock, network.settings.send_buffer_bytes)
            network.adopt(sock, _plain_host(address[0]), self.name)

    def _stop_accepting(self) -> None:
        if self._is_accepting:
            self._is_accepting = False
            self._network.loop.remove_reader(self._socket)


def _listen(name: str, host: str, port: int, receive_buffer_bytes: int) -> socket.socket:
    """An empty host is every interface, over IPv6 and IPv4 where both are there."""
    if not host and socket.has_dualstack_ipv6():
        sock = socket.socket(socket.AF_INET6, socket.SOCK_STREAM)
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    else:
        sock = socket.socket(_family(name, host, port), socket.SOCK_STREAM)
    try:
        sock.setblocking(False)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if receive_buffer_bytes >= 0:
            # Before listening: accepted sockets inherit it in time to scale their window.
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)
        sock.bind((host, port))
    except OSError as error:
        sock.close()
        raise OSError(
            error.errno, f"listener {name} cannot use {host or '*'}:{port}: {error.strerror}"
        ) from None
    return sock


def _family(name: str, host: str, port: int) -> socket.AddressFamily:
    try:
        return socket.getaddrinfo(host or "0.0.0.0", port, type=socket.SOCK_STREAM)[0][0]
    except OSError as error:
        raise OSError(
            error.errno, f"listener {name} cannot find {host}: {error.strerror}"
        ) from None


def _plain_host(host: str) -> str:
    """An IPv4 client of a socket for both kinds comes under the name it has everywhere else."""
    return host.removeprefix("::ffff:")


def _configure(sock: socket.socket, send_buffer_bytes: int) -> None:
    sock.setblocking(False)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if send_buffer_bytes >= 0:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, send_buffer_bytes)
