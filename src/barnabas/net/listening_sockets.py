"""Binding the sockets of a listening address: a host name can have several addresses."""

import errno
import socket
from collections.abc import Callable

_PORTS_TO_TRY = 10
"""Attempts to find a port that is free on every address of a host, if any port will do."""


def bind_sockets(
    host: str, port: int, configure: Callable[[socket.socket], None] | None = None
) -> list[socket.socket]:
    """Listens on each address of the host, all on one port; 0 selects a free port.

    Connections wait in the kernel's queue until they are accepted. A socket that is only bound
    would not reserve its port: with SO_REUSEADDR another process could bind it as well.

    An empty host means every interface, by IPv6 and IPv4 if both exist. `localhost` is 127.0.0.1
    and ::1 where the resolver says so; an address that this machine does not have is left out.
    Raises OSError if an address is in use, or if none is left.
    """
    addresses = _resolve(host, port)
    for _ in range(_PORTS_TO_TRY):
        try:
            return _bind_all(addresses, port, configure)
        except OSError as error:
            if port or error.errno != errno.EADDRINUSE:
                raise
    return _bind_all(addresses, port, configure)


def is_port_free(host: str, port: int) -> bool:
    """Whether the port can be bound on every address of the host, by this user.

    Raises OSError if the host is not one of this machine.
    """
    try:
        require_free_port(host, port)
    except OSError as error:
        if error.errno in (errno.EADDRINUSE, errno.EACCES):
            return False
        raise
    return True


def require_free_port(host: str, port: int) -> int:
    """Returns the port, or one that the system selects if it is 0. It is free now.

    Raises OSError if it cannot be bound on every address of the host, by this user.
    """
    sockets = bind_sockets(host, port)
    free_port = int(sockets[0].getsockname()[1])
    for sock in sockets:
        sock.close()
    return free_port


def plain_host(host: str) -> str:
    """Returns the usual form of an IPv4 address that a dual-stack socket reports."""
    return host.removeprefix("::ffff:")


def _resolve(host: str, port: int) -> list[tuple[socket.AddressFamily, str]]:
    if not host:
        has_both = socket.has_dualstack_ipv6()
        return [(socket.AF_INET6, "::") if has_both else (socket.AF_INET, "0.0.0.0")]
    resolved = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys((family, str(address[0])) for family, *_, address in resolved))


def _bind_all(
    addresses: list[tuple[socket.AddressFamily, str]],
    port: int,
    configure: Callable[[socket.socket], None] | None,
) -> list[socket.socket]:
    bound: list[socket.socket] = []
    missing: OSError | None = None
    for family, address in addresses:
        try:
            sock = _bind(family, address, port, configure)
        except OSError as error:
            if error.errno in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT):
                missing = error
                continue
            for other in bound:
                other.close()
            raise
        bound.append(sock)
        port = sock.getsockname()[1]
    if missing is not None and not bound:
        raise missing
    return bound


def _bind(
    family: socket.AddressFamily,
    address: str,
    port: int,
    configure: Callable[[socket.socket], None] | None,
) -> socket.socket:
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setblocking(False)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, address != "::")
        if configure is not None:
            configure(sock)
        sock.bind((address, port))
        sock.listen()
    except OSError:
        sock.close()
        raise
    return sock
