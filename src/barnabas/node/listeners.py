"""Binds the listeners of a role."""

import socket
from collections.abc import Iterable

from barnabas.config import Listener
from barnabas.server.network.socket_server import SocketServer


def listen(
    network: SocketServer, listeners: Iterable[Listener], advertised: Iterable[Listener]
) -> list[Listener]:
    """Binds `listeners`. Returns the advertised ones, with host and port filled in if open."""
    ports = {
        listener.name: network.listen(listener.name, listener.host, listener.port).port
        for listener in listeners
    }
    return [
        listener._replace(
            host=listener.host or socket.getfqdn(), port=listener.port or ports[listener.name]
        )
        for listener in advertised
    ]
