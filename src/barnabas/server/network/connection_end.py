"""How connections end: the reasons, and what is still done before the socket is closed."""

import logging
import socket
from contextlib import suppress
from typing import TYPE_CHECKING

from barnabas.net.buffers import BuffersExhausted
from barnabas.server.network.foreign_protocol import ForeignProtocol
from barnabas.wire.errors import ProtocolViolation

if TYPE_CHECKING:
    from barnabas.server.network._connection import ClientConnection

log = logging.getLogger(__name__)

_MAX_DISCARDED_READS = 16
"""After a failed handshake unread bytes are discarded: they would make the kernel drop the alert
that says why."""

_MAX_LOGGED_CHARACTERS = 200


class IgnoringPipeline:
    """Ignores what arrives on a connection that is about to be closed."""

    def handle(self, connection: "ClientConnection", frame: memoryview) -> None:
        pass


def close_on_error(connection: "ClientConnection", failure: Exception) -> None:
    """Closes a connection, with one line in the log if the client or this broker is at fault."""
    match failure:
        case ForeignProtocol():
            with suppress(OSError):
                connection.sock.send(failure.response)
            connection.close(str(failure))
        case ProtocolViolation() | BuffersExhausted():
            connection.close(str(failure))
        case ConnectionError() | TimeoutError():
            connection.close()  # the client, or the network to it, is gone
        case OSError():
            connection.close(str(failure))
        case _:
            log.error("Failed to handle a request from %s", connection, exc_info=failure)
            connection.close("internal error")


def log_close(connection: "ClientConnection", reason: str) -> None:
    log.warning("Closed the connection of %s: %s", connection, reason)


def discard_and_close(connection: "ClientConnection", buffer: memoryview) -> None:
    """Closes a connection whose handshake has failed, so that its client can read the alert."""
    if connection.is_closed:
        return
    assert isinstance(connection.sock, socket.socket)
    with suppress(OSError):
        for _ in range(_MAX_DISCARDED_READS):
            if not connection.sock.recv_into(buffer):
                break
    connection.close()


def printable(client_id: str) -> str:
    """Returns a client id for a log line, which no client must be able to forge."""
    shortened = client_id[:_MAX_LOGGED_CHARACTERS]
    return shortened if shortened.isprintable() else ascii(shortened)
