"""Two ends of a TLS connection in one process."""

import asyncio
import socket

from tests.tls_certificates import castle_authority

from barnabas.net.tls import TlsSettings
from barnabas.net.tls_socket import TlsHandshake, TlsSocket

BUFFER_BYTES = 8192


def socket_pair() -> tuple[socket.socket, socket.socket]:
    """Returns connected sockets that take little at a time."""
    pair = socket.socketpair()
    for sock in pair:
        sock.setblocking(False)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, BUFFER_BYTES)
    return pair


def tls_settings(*versions: str) -> TlsSettings:
    """Returns the settings of both ends."""
    issued = castle_authority().issue("CN=server")
    return TlsSettings(
        ca_pem=castle_authority().pem,
        certificate_pem=issued.certificate_pem,
        key_pem=issued.key_pem,
        versions=versions,
    )


async def tls_pair(*versions: str) -> tuple[TlsSocket, TlsSocket]:
    """Makes a handshake. Returns the client's and the server's end."""
    loop = asyncio.get_running_loop()
    settings = tls_settings(*versions)
    near, far = socket_pair()
    client: asyncio.Future[TlsSocket] = loop.create_future()
    server: asyncio.Future[TlsSocket] = loop.create_future()
    TlsHandshake(
        loop,
        near,
        settings.client_context(),
        "localhost",
        client.set_result,
        client.set_exception,
    )
    TlsHandshake(
        loop, far, settings.server_context(), None, server.set_result, server.set_exception
    )
    return await client, await server
