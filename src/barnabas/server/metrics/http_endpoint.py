"""An HTTP endpoint on the node's own loop: /metrics for Prometheus, /health for probes.

Where clients must authenticate, /metrics needs a login, and the operation DESCRIBE on the cluster
if ACLs decide. /health needs neither: a probe learns nothing but that the node is up.
"""

import asyncio
import logging
import socket
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, NamedTuple, Protocol

from barnabas.net.failure_log import FailureLog
from barnabas.net.http_acceptor import HttpAcceptor
from barnabas.net.http_authorization import challenges
from barnabas.net.listening_sockets import bind_sockets, plain_host
from barnabas.security.authentication.exchange import LoginFailed
from barnabas.security.principal import KafkaPrincipal

if TYPE_CHECKING:
    from barnabas.server.metrics.exposition import Exposition
    from barnabas.server.metrics.registry import MetricsRegistry

log = logging.getLogger(__name__)

MAX_REQUEST_BYTES = 32_768
"""Of the request line and the headers; a token in them can have some kilobytes."""

MAX_CLIENTS = 64
TIMEOUT_S = 10.0
_PLAIN = "text/plain; charset=utf-8"
_NAME = "the metrics endpoint"


class ClientAuthenticator(Protocol):
    """Knows the users of a node."""

    methods: tuple[str, ...]

    async def authenticate(self, header: str | None) -> KafkaPrincipal:
        """Returns the principal of an Authorization header. Raises LoginFailed."""


@dataclass(slots=True, frozen=True)
class HttpSecurity:
    """Without TLS, without logins and with everything allowed, unless the fields say otherwise."""

    tls: Callable[[], ssl.SSLContext] | None = None
    authenticator: ClientAuthenticator | None = None
    may_read_metrics: Callable[[KafkaPrincipal, str], bool] = lambda principal, host: True
    failure_delay_ms: int = 100


_OPEN = HttpSecurity()


class HttpResponse(NamedTuple):
    status: HTTPStatus
    body: bytes
    content_type: str = _PLAIN
    headers: str = ""


class HttpRequest(NamedTuple):
    method: str
    path: str
    authorization: str | None


class BadRequest(Exception):  # noqa: N818 - the protocol's name for it
    def __init__(self, status: HTTPStatus) -> None:
        super().__init__(status.phrase)
        self.status = status


class HttpEndpoint:
    """Serves GET and HEAD, one request per connection, if a port is bound."""

    def __init__(self, metrics: "MetricsRegistry", security: HttpSecurity = _OPEN) -> None:
        self._metrics = metrics
        self._security = security
        self._exposition: Exposition | None = None
        self._clients = 0
        self._sockets: list[socket.socket] = []
        self._acceptor: HttpAcceptor | None = None
        self._failures = FailureLog(log)

    def bind(self, host: str, port: int) -> int:
        """Listens on a port; returns the actual port, also if port 0 was requested.

        Requests wait until `serve` is called.
        """
        self._sockets = bind_sockets(host, port)
        return int(self._sockets[0].getsockname()[1])

    async def serve(self) -> None:
        """Responds to requests on the port that is bound."""
        if self._sockets:
            self._acceptor = HttpAcceptor(
                _NAME,
                self._sockets,
                self._protocol,
                lambda: self._clients,
                max_connections=MAX_CLIENTS,
                tls=self._security.tls,
            )
            self._acceptor.start()

    def close(self) -> None:
        if self._acceptor is not None:
            self._acceptor.close()
        for sock in self._sockets:
            sock.close()

    def _protocol(self) -> asyncio.Protocol:
        reader = asyncio.StreamReader(limit=MAX_REQUEST_BYTES)
        return asyncio.StreamReaderProtocol(reader, self._respond_to)

    async def _respond_to(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._clients += 1
        try:
            async with asyncio.timeout(TIMEOUT_S):
                await self._respond(reader, writer)
                writer.close()
                await writer.wait_closed()
        except (TimeoutError, OSError):
            writer.transport.abort()
        finally:
            self._clients -= 1
            writer.close()

    async def _respond(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        method = "GET"
        try:
            request = await _read_request(reader)
            method = request.method
            host = plain_host(writer.get_extra_info("peername")[0])
            response = await self._response(request, host)
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

    async def _response(self, request: HttpRequest, host: str) -> HttpResponse:
        if request.path not in ("/metrics", "/health"):
            raise BadRequest(HTTPStatus.NOT_FOUND)
        if request.method not in ("GET", "HEAD"):
            status = HTTPStatus.METHOD_NOT_ALLOWED
            return HttpResponse(status, status.phrase.encode(), headers="Allow: GET, HEAD\r\n")
        if request.path == "/health":
            return HttpResponse(HTTPStatus.OK, b"ok\n")
        if (rejection := await self._rejection(request.authorization, host)) is not None:
            return rejection
        from barnabas.server.metrics.exposition import (  # slow to import, rarely needed
            CONTENT_TYPE,
            Exposition,
        )

        if self._exposition is None:
            self._exposition = Exposition(self._metrics, asyncio.get_running_loop().time)
        return HttpResponse(HTTPStatus.OK, await self._exposition.text(), CONTENT_TYPE)

    async def _rejection(self, authorization: str | None, host: str) -> HttpResponse | None:
        """Returns the response to a client that may not read metrics, or None if it may."""
        authenticator = self._security.authenticator
        if authenticator is None:
            return None
        try:
            principal = await authenticator.authenticate(authorization)
        except LoginFailed as failure:
            if authorization is not None:
                self._failures.warn(
                    "Authentication of %s at %s failed: %s", host, _NAME, failure.reason
                )
                await asyncio.sleep(self._security.failure_delay_ms / 1000)
            headers = "".join(
                f"WWW-Authenticate: {challenge}\r\n"
                for challenge in challenges(authenticator.methods, "barnabas")
            )
            status = HTTPStatus.UNAUTHORIZED
            return HttpResponse(status, status.phrase.encode(), headers=headers)
        if self._security.may_read_metrics(principal, host):
            return None
        status = HTTPStatus.FORBIDDEN
        return HttpResponse(status, b"Metrics need the operation DESCRIBE on the cluster\n")


async def _read_request(reader: asyncio.StreamReader) -> HttpRequest:
    """Returns a request, with the one header that is used."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.LimitOverrunError:
        raise BadRequest(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE) from None
    except asyncio.IncompleteReadError:
        raise BadRequest(HTTPStatus.BAD_REQUEST) from None
    line, *headers = head.decode("latin-1").split("\r\n")
    words = line.split(" ")
    if len(words) != 3 or not words[1].startswith("/") or not words[2].startswith("HTTP/1."):
        raise BadRequest(HTTPStatus.BAD_REQUEST)
    authorization = None
    for header in headers:
        name, _, value = header.partition(":")
        if name.lower() == "authorization":
            if authorization is not None:
                raise BadRequest(HTTPStatus.BAD_REQUEST)
            authorization = value.strip()
    return HttpRequest(words[0], words[1].partition("?")[0], authorization)
