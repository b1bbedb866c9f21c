"""The HTTP server of a service: uvicorn, with bounded connections, handshakes and requests."""

import asyncio
import contextlib
import logging
import socket
import ssl
from collections.abc import Callable, Iterator
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from barnabas.net.http_acceptor import HttpAcceptor

MAX_CONNECTIONS = 1024
REQUEST_HEAD_TIMEOUT_S = 30.0
"""How long a client may take for the first line and the headers of a request."""

_KEEP_ALIVE_S = 75
_GRACE_S = 5


def build_server(
    app: Any,
    sockets: list[socket.socket],
    tls: Callable[[], ssl.SSLContext] | None,
    service: str,
) -> uvicorn.Server:
    """`service` is what log lines call it, such as "the schema registry"."""
    config = uvicorn.Config(
        app,
        http=BoundedHttpProtocol,
        access_log=False,
        log_config=None,
        log_level="warning",
        lifespan="off",
        ws="none",
        proxy_headers=False,  # anybody can send them: they would hide who logs in
        timeout_keep_alive=_KEEP_ALIVE_S,
        timeout_graceful_shutdown=_GRACE_S,
    )
    _OTHER_PROTOCOLS.service = service
    logging.getLogger("uvicorn.error").addFilter(_OTHER_PROTOCOLS)
    return ServiceServer(config, sockets, tls, service)


class ServiceServer(uvicorn.Server):
    """Accepts with `HttpAcceptor`, and leaves signals to the process that runs the service."""

    def __init__(
        self,
        config: uvicorn.Config,
        listening: list[socket.socket],
        tls: Callable[[], ssl.SSLContext] | None,
        service: str,
    ) -> None:
        super().__init__(config)
        self._service = service
        self._listening = listening
        self._tls = tls

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await self.lifespan.startup()
        acceptor = HttpAcceptor(
            self._service,
            self._listening,
            self._create_protocol,
            lambda: len(self.server_state.connections),
            max_connections=MAX_CONNECTIONS,
            tls=self._tls,
        )
        acceptor.start()
        servers: list[Any] = [acceptor]
        self.servers = servers
        self.started = True

    def _create_protocol(self) -> asyncio.Protocol:
        return BoundedHttpProtocol(self.config, self.server_state, self.lifespan.state)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class BoundedHttpProtocol(H11Protocol):
    """Closes a connection whose client takes too long to send the head of a request.

    uvicorn limits only the time between requests; a body has a limit where it is read.
    """

    _head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._expect_head()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            self._stop_timer()
        elif self._head_timer is None and not self.transport.is_closing():
            self._expect_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        super().connection_lost(exc)

    def _expect_head(self) -> None:
        self._head_timer = self.loop.call_later(REQUEST_HEAD_TIMEOUT_S, self._on_timeout)

    def _on_timeout(self) -> None:
        self._head_timer = None
        if self.cycle is None or self.cycle.response_complete:
            self.transport.abort()

    def _stop_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None


class _OtherProtocolFilter(logging.Filter):
    """Says what an invalid request often is, which uvicorn does not know, once a minute."""

    service = ""
    _last_s = 0.0

    def filter(self, record: logging.LogRecord) -> bool:
        if record.msg != "Invalid HTTP request received.":
            return True
        if record.created - self._last_s < _OTHER_PROTOCOL_INTERVAL_S:
            return False
        self._last_s = record.created
        record.msg = (
            f"A client sent a request that is not HTTP: this port is for clients of {self.service}."
            " Kafka clients connect to a broker's port"
        )
        return True


_OTHER_PROTOCOL_INTERVAL_S = 60
_OTHER_PROTOCOLS = _OtherProtocolFilter()
