"""Tokens of a SASL exchange without requests around them, as clients send after SaslHandshake v0.

Each is a length and that many bytes, both ways. There is no error response: the connection is
closed.
"""

import asyncio
import logging
from struct import Struct
from typing import TYPE_CHECKING, Any

from barnabas.security.authentication.exchange import LoginFailed
from barnabas.server.metrics.registry import RequestMetrics
from barnabas.server.network.suspended_handler import SuspendedHandler
from barnabas.wire.outgoing import Outgoing

if TYPE_CHECKING:
    from barnabas.server.network._connection import ClientConnection
    from barnabas.server.network.authentication import ConnectionAuthentication

log = logging.getLogger(__name__)

_LENGTH = Struct(">i")
_NO_REAUTHENTICATION = -1
"""The version of SaslAuthenticate that stands for clients that do not know it."""


class BareTokenPipeline:
    """Handles the frames of one connection as tokens, until it is authenticated."""

    __slots__ = ("_authentication",)

    def __init__(self, authentication: "ConnectionAuthentication") -> None:
        self._authentication = authentication

    def handle(self, connection: "ClientConnection", frame: memoryview) -> None:
        SuspendedToken(connection, self._authentication, frame.tobytes())


class SuspendedToken:
    """One token, until its response is queued."""

    __slots__ = ("_authentication", "_connection", "_handler", "_response")

    allows_next_produce = False

    def __init__(
        self,
        connection: "ClientConnection",
        authentication: "ConnectionAuthentication",
        token: bytes,
    ) -> None:
        self._connection = connection
        self._authentication = authentication
        self._handler: SuspendedHandler | None = None
        coroutine = self._evaluate(token)
        try:
            awaited = coroutine.send(None)
        except StopIteration as returned:
            self._respond(returned.value)
            return
        self._response = connection.responses.reserve(RequestMetrics(), connection.received_ns)
        connection.add_suspended(self)
        self._handler = SuspendedHandler(
            coroutine, awaited, self._on_end, asyncio.get_running_loop()
        )

    def abandon(self) -> None:
        """Called when the client disconnects; the exchange runs to its end."""

    async def _evaluate(self, token: bytes) -> bytes | None:
        """Returns the response, or None if the connection is closed."""
        try:
            response, _ = await self._authentication.evaluate(
                token, self._connection.received_ms, _NO_REAUTHENTICATION
            )
        except LoginFailed:
            await self._authentication.end_after_failure()
            return None
        return response

    def _respond(self, response: bytes | None) -> None:
        if response is not None:
            out = self._connection.responses.buffer()
            assert out is not None, "a token is handled after all requests before it"
            out += _LENGTH.pack(len(response)) + response

    def _on_end(self, response: Any, failure: BaseException | None) -> None:
        self._handler = None
        connection = self._connection
        if connection.is_closed:
            return
        if failure is not None:
            log.error("Failed to authenticate %s", connection, exc_info=failure)
            connection.close("internal error")
            return
        if response is None:  # it is closed later
            return
        out = Outgoing()
        out += _LENGTH.pack(len(response)) + response
        connection.responses.complete(self._response, out, connection.now_ns())
        connection.remove_suspended(self)
