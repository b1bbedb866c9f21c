"""An HTTP endpoint on the node's own loop: /metrics for Prometheus, /health for probes."""

import asyncio
import contextlib
import socket
from http import HTTPStatus
from typing import TYPE_CHECKING, NamedTuple

from barnabas.net.listening_sockets import bind_sockets

if TYPE_CHECKING:
    from barnabas.server.metrics.exposition import Exposition
    from barnabas.server.metrics.registry import MetricsRegistry

MAX_REQUEST_BYTES = 8192
MAX_CLIENTS = 64
TIMEOUT_S = 10.0
_PLAIN = "text/plain; charset=utf-8"


class HttpResponse(NamedTuple):
    status: HTTPStatus
    body: bytes
    content_type: str = _PLAIN
    headers: str = ""


class BadRequest(Exception):  # noqa: N818 - the protocol's name for it
    def __init__(self, status: HTTPStatus) -> None:
        super().__init__(status.phrase)
        self.status = status


class HttpEndpoint:
    """Serves GET and HEAD, one request per connection, if a port is bound."""

    def __init__(self, metrics: "MetricsRegistry") -> None:
        self._metrics = metrics
        self._exposition: Exposition | None = None
        self._clients = 0
        self._sockets: list[socket.socket] = []
        self._servers: list[asyncio.Server] = []

    def bind(self, host: str, port: int) -> int:
        """Listens on a port; returns the actual port, also if port 0 was requested.

        Requests wait until `serve` is called.
        """
        self._sockets = bind_sockets(host, port)
        return int(self._sockets[0].getsockname()[1])

    async def serve(self) -> None:
        """Responds to requests on the port that is bound."""
        for sock in self._sockets:
            self._servers.append(
                await asyncio.start_server(self._respond_to, sock=sock, limit=MAX_REQUEST_BYTES)
            )

    def close(self) -> None:
        for server in self._servers:
            server.close()
        for sock in self._sockets:
            sock.close()

    async def _respond_to(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._clients += 1
        try:
            async with asyncio.timeout(TIMEOUT_S):
                await self._respond(reader, writer)
        except (TimeoutError, ConnectionError):
            pass
        finally:
            self._clients -= 1
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()

    async def _respond(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        method = "GET"
        try:
            if self._clients > MAX_CLIENTS:
                raise BadRequest(HTTPStatus.SERVICE_UNAVAILABLE)
            method, path = await _read_request(reader)
            response = await self._response(method, path)
        except BadRequest as error:
            response = HttpResponse(error.status, error.status.phrase.encode())
        head = (
            f"HTTP/1.1 {response.status.value} {response.status.phrase}\r\n"
            f"Content-Type: {response.content_type}\r\n"
            f"Content-Length: {len(response.body)}\r\n"
            f"{response.headers}Connection: close\r\n\r\n"
        )
        writer.write(head.encode() + (b"" if method == "HEAD" else response.body))
        await writer.drain()

    async def _response(self, method: str, path: str) -> HttpResponse:
        if path not in ("/metrics", "/health"):
            raise BadRequest(HTTPStatus.NOT_FOUND)
        if method not in ("GET", "HEAD"):
            status = HTTPStatus.METHOD_NOT_ALLOWED
            return HttpResponse(status, status.phrase.encode(), headers="Allow: GET, HEAD\r\n")
        if path == "/health":
            return HttpResponse(HTTPStatus.OK, b"ok\n")
        from barnabas.server.metrics.exposition import (  # slow to import, rarely needed
            CONTENT_TYPE,
            Exposition,
        )

        if self._exposition is None:
            self._exposition = Exposition(self._metrics, asyncio.get_running_loop().time)
        return HttpResponse(HTTPStatus.OK, await self._exposition.text(), CONTENT_TYPE)


async def _read_request(reader: asyncio.StreamReader) -> tuple[str, str]:
    """Returns the method and path of a request; its headers are ignored."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.LimitOverrunError:
        raise BadRequest(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE) from None
    except asyncio.IncompleteReadError:
        raise BadRequest(HTTPStatus.BAD_REQUEST) from None
    words = head.split(b"\r\n", 1)[0].decode("latin-1").split(" ")
    if len(words) != 3 or not words[1].startswith("/") or not words[2].startswith("HTTP/1."):
        raise BadRequest(HTTPStatus.BAD_REQUEST)
    return words[0], words[1].partition("?")[0]
