"""Servers on loopback sockets: one with real handlers, and one that sends the bytes of a test."""

import asyncio
import base64
import hashlib
import hmac
import socket
from collections.abc import Mapping
from struct import Struct
from typing import Any

from tests.server.harness import Server

from barnabas.net import SocketPeers
from barnabas.net.peer import SocketPeer
from barnabas.net.sasl import SaslExchange
from barnabas.server.handlers import Handler
from barnabas.server.request_context import RequestContext
from barnabas.wire.apis import ApiKey, api
from barnabas.wire.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
)
from barnabas.wire.messages.configs import ListConfigResourcesRequest
from barnabas.wire.peer import Peer
from barnabas.wire.schema import Message

HOST = "127.0.0.1"
A_MINUTE_MS = 60_000
REQUEST = ListConfigResourcesRequest()

_LENGTH = Struct(">i")
_LENGTH_AND_ID = Struct(">ii")


def api_versions_handler(*keys: ApiKey) -> Handler:
    """Returns a handler of ApiVersions that lists these APIs."""

    async def handle(_: ApiVersionsRequest, __: RequestContext) -> ApiVersionsResponse:
        return api_versions_response(*keys)

    return handle


def api_versions_response(*keys: ApiKey) -> ApiVersionsResponse:
    api_keys = [
        ApiVersion(api_key=key, min_version=api(key).versions.min, max_version=version)
        for key in keys
        for version in [api(key).stable_versions.max]
    ]
    return ApiVersionsResponse(api_keys=api_keys)


def start_server(handlers: Mapping[ApiKey, Handler], **settings: Any) -> tuple[Server, int]:
    """Starts a server with these handlers, which ApiVersions lists. Returns it and its port."""
    server = Server({ApiKey.API_VERSIONS: api_versions_handler(*handlers), **handlers}, **settings)
    port = server.network.listen("PLAINTEXT", HOST, 0).port
    server.network.open()
    return server, port


def a_peer(port: int, **settings: Any) -> SocketPeer:
    return SocketPeers(asyncio.get_running_loop(), "node-1", **settings).at(HOST, port, "test")


async def send_request(peer: Peer, request: Message, timeout_ms: int = A_MINUTE_MS) -> Any:
    """Returns the response, or the OSError that came instead of it."""
    response = asyncio.get_running_loop().create_future()
    peer.send(request, timeout_ms, response.set_result)
    assert not response.done(), "no callback is called before send returns"
    return await response


class RawServer:
    """Accepts one connection after the other, and sends each what the test wants."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._listening = socket.create_server((HOST, 0))
        self._listening.setblocking(False)
        self.port: int = self._listening.getsockname()[1]
        self.client = socket.socket()

    async def accept(self) -> None:
        self.client, _ = await self._loop.sock_accept(self._listening)
        self.client.setblocking(False)

    async def negotiate(self, *keys: ApiKey) -> None:
        """Accepts a connection, and responds to its ApiVersions request with these APIs."""
        await self.accept()
        await self.receive_request()
        await self.send_response(1, api_versions_response(*keys).write(3))

    async def receive_request(self) -> bytes:
        """Returns the frame of the next request."""
        (length,) = _LENGTH.unpack(await self._receive(4))
        return await self._receive(length)

    async def send_response(self, correlation_id: int, body: bytes) -> None:
        await self.send_bytes(_LENGTH_AND_ID.pack(4 + len(body), correlation_id) + body)

    async def send_bytes(self, content: bytes) -> None:
        await self._loop.sock_sendall(self.client, content)

    def disconnect(self) -> None:
        self.client.close()

    async def is_disconnected(self) -> bool:
        """Waits until the other end disconnects."""
        try:
            return await self._loop.sock_recv(self.client, 1) == b""
        except ConnectionResetError:
            return True

    async def _receive(self, count: int) -> bytes:
        received = b""
        while len(received) < count:
            more = await self._loop.sock_recv(self.client, count - len(received))
            assert more, "the other end disconnected"
            received += more
        return received


def scram_broker(digest: str, password: str, iterations: int = 4096) -> SaslExchange:
    """The broker's side of SCRAM: yields its responses, for tests of whole connections."""
    first = (yield b"").decode().removeprefix("n,,")
    nonce = first.partition("r=")[2] + "broker"
    challenge = f"r={nonce},s={base64.b64encode(b'salt').decode()},i={iterations}"
    last, _, proof = (yield challenge.encode()).decode().rpartition(",p=")
    signed = ",".join((first, challenge, last)).encode()
    salted = hashlib.pbkdf2_hmac(digest, password.encode(), b"salt", iterations)
    client_key = hmac.digest(salted, b"Client Key", digest)
    signature = hmac.digest(hashlib.new(digest, client_key).digest(), signed, digest)
    expected = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
    if base64.b64decode(proof) != expected:
        yield b"e=invalid-proof"
    server_key = hmac.digest(salted, b"Server Key", digest)
    yield b"v=" + base64.b64encode(hmac.digest(server_key, signed, digest))
