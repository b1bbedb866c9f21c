"""The authentication of one connection: SASL from its first request on, and again before a session
ends (KIP-43, KIP-152, KIP-368).

    VERSIONS      ApiVersions, once, or SaslHandshake
    HANDSHAKE     SaslHandshake
    TOKENS        SaslAuthenticate until the exchange ends; bare tokens after SaslHandshake v0
    DONE          any request; SaslHandshake begins a re-authentication if the session has an end
    FAILED        nothing: the connection is closed once the response is sent

Until it is authenticated, the requests of a connection go to a pipeline that has only these APIs.
"""

import asyncio
from collections.abc import Mapping
from enum import Enum, auto
from typing import TYPE_CHECKING

from barnabas.net.failure_log import FailureLog
from barnabas.security.authentication.exchange import (
    ConnectionAborted,
    Login,
    LoginFailed,
    ServerExchange,
)
from barnabas.security.authentication.sasl_server import SaslServer
from barnabas.server.handlers import Handler
from barnabas.server.network.authentication_metrics import AuthenticationMetrics
from barnabas.server.network.bare_tokens import BareTokenPipeline
from barnabas.server.request_context import RequestContext
from barnabas.server.timer import Timer
from barnabas.wire.apis import ApiKey
from barnabas.wire.errors import ErrorCode, KafkaError, ProtocolViolation
from barnabas.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from barnabas.wire.messages.sasl import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)

if TYPE_CHECKING:
    from barnabas.server.network._connection import ClientConnection, FramePipeline

MIN_REAUTHENTICATION_INTERVAL_NS = 1_000_000_000

_SASL_HANDSHAKE = ApiKey.SASL_HANDSHAKE.to_bytes(2, "big")
_SASL_AUTHENTICATE = ApiKey.SASL_AUTHENTICATE.to_bytes(2, "big")


class AuthenticationState(Enum):
    VERSIONS = auto()
    HANDSHAKE = auto()
    TOKENS = auto()
    DONE = auto()
    FAILED = auto()


class ConnectionAuthentication:
    """The state of a connection to a listener with SASL."""

    __slots__ = (
        "_authenticated_ns",
        "_authenticated_pipeline",
        "_began_ns",
        "_connection",
        "_exchange",
        "_failures",
        "_mechanism",
        "_metrics",
        "_rejection",
        "_requested_mechanism",
        "_sasl",
        "_timer",
        "expires_ns",
        "state",
    )

    def __init__(
        self,
        connection: "ClientConnection",
        sasl: SaslServer,
        pipeline: "FramePipeline",
        metrics: AuthenticationMetrics,
        failures: FailureLog,
        timer: Timer,
    ) -> None:
        """`pipeline` handles the requests of authenticated connections."""
        self._connection = connection
        self._sasl = sasl
        self._authenticated_pipeline = pipeline
        self._metrics = metrics
        self._failures = failures
        self._timer = timer
        self.state = AuthenticationState.VERSIONS
        self._mechanism: str | None = None  # of the last authentication that succeeded
        self._requested_mechanism = ""
        self._exchange: ServerExchange | None = None  # in state TOKENS
        self._rejection: LoginFailed | None = None  # for the client's next message
        self._began_ns = 0
        self._authenticated_ns = 0
        self.expires_ns: int | None = None  # by the monotonic clock; None: the session has no end

    # Requests

    def require_versions_allowed(self) -> None:
        """Raises an error if the client may not send ApiVersions now."""
        match self.state:
            case AuthenticationState.TOKENS:
                raise self._illegal_state("ApiVersions")
            case AuthenticationState.HANDSHAKE:
                raise ProtocolViolation("a second ApiVersions request before SaslHandshake")

    def on_versions_sent(self) -> None:
        if self.state is AuthenticationState.VERSIONS:
            self.state = AuthenticationState.HANDSHAKE

    def handshake(self, request: SaslHandshakeRequest, version: int) -> SaslHandshakeResponse:
        """Starts an exchange. Raises ILLEGAL_SASL_STATE."""
        now_ns = self._connection.received_ns
        match self.state:
            case AuthenticationState.DONE:
                self._require_reauthentication_allowed(now_ns)
            case AuthenticationState.TOKENS | AuthenticationState.FAILED:
                raise self._illegal_state("SaslHandshake")
        self._exchange = self._sasl.start(request.mechanism)
        if self._exchange is None:
            enabled = self._sasl.enabled
            self._fail(f"SASL mechanism {request.mechanism!a:.60} is not one of {enabled}")
            return SaslHandshakeResponse(
                error_code=ErrorCode.UNSUPPORTED_SASL_MECHANISM, mechanisms=enabled
            )
        self.state = AuthenticationState.TOKENS
        self._requested_mechanism = request.mechanism
        self._began_ns = now_ns
        if version == 0:
            self._connection.pipeline = BareTokenPipeline(self)
        return SaslHandshakeResponse(error_code=ErrorCode.NONE, mechanisms=self._sasl.enabled)

    async def authenticate(
        self, request: SaslAuthenticateRequest, version: int, now_ms: int
    ) -> SaslAuthenticateResponse:
        """Continues the exchange. Raises ILLEGAL_SASL_STATE."""
        if self.state is AuthenticationState.DONE:
            raise KafkaError(
                ErrorCode.ILLEGAL_SASL_STATE, "The connection is authenticated already."
            )
        if self.state is not AuthenticationState.TOKENS:
            raise self._illegal_state("SaslAuthenticate")
        try:
            message, lifetime_ms = await self.evaluate(bytes(request.auth_bytes), now_ms, version)
        except LoginFailed as failure:
            await self._delay()
            return SaslAuthenticateResponse(
                error_code=ErrorCode.SASL_AUTHENTICATION_FAILED, error_message=failure.message
            )
        return SaslAuthenticateResponse(auth_bytes=message, session_lifetime_ms=lifetime_ms)

    async def evaluate(self, message: bytes, now_ms: int, version: int) -> tuple[bytes, int]:
        """Returns the response to a message of the exchange, and the lifetime of the session.

        Raises LoginFailed; the connection is closed once its responses are sent.
        """
        assert self._exchange is not None
        if self._rejection is not None:
            self._end()
            raise self._rejection
        try:
            if self._mechanism not in (None, self._requested_mechanism):
                raise ConnectionAborted(
                    "", f"it re-authenticated with another mechanism than {self._mechanism}"
                )
            response = await self._exchange.evaluate(message)
            if self._exchange.login is None:
                return response, 0
            return response, self._complete(self._exchange.login, now_ms, version)
        except ConnectionAborted as failure:
            self._fail(failure.reason)
            self._connection.close()
            raise
        except LoginFailed as failure:
            if failure.response is None:
                self._fail(failure.reason)
                raise
            self._record_failure(failure.reason)
            self._rejection = failure
            return failure.response, 0
        except Exception as failure:
            # A bug of a mechanism must neither authenticate nor flood the log.
            self._fail(f"internal error: {type(failure).__name__}: {failure}")
            raise LoginFailed("Authentication failed.") from failure

    async def end_after_failure(self) -> None:
        """Closes the connection of a client that sends bare tokens, for which there is no error."""
        await self._delay()
        self._connection.close()

    # Results

    def _complete(self, login: Login, now_ms: int, version: int) -> int:
        """Returns the session's lifetime in milliseconds; 0 if it has no end."""
        connection, metrics = self._connection, self._metrics
        if self._mechanism is None:
            metrics.successful_authentications += 1
            metrics.authentications_without_reauthentication += version < 1
        elif login.principal != connection.principal:
            raise LoginFailed(
                "Authentication failed: the principal may not change on a connection.",
                f"it was {connection.principal} and re-authenticated as {login.principal}",
            )
        self._exchange = None
        lifetime_ms = self._sasl.session_lifetime_ms(self._requested_mechanism, login, now_ms)
        now_ns = self._authenticated_ns = connection.now_ns()
        if self._mechanism is not None:
            metrics.record_reauthentication(now_ns - self._began_ns)
        self._mechanism = self._requested_mechanism
        self.state = AuthenticationState.DONE
        connection.set_authenticated(login.principal, self._authenticated_pipeline)
        if lifetime_ms is None:
            self.expires_ns = None
            return 0
        self.expires_ns = now_ns + lifetime_ms * 1_000_000
        connection.pipeline = SessionPipeline(self, self._authenticated_pipeline, self._metrics)
        return lifetime_ms

    def _fail(self, reason: str) -> None:
        self._record_failure(reason)
        self._end()

    def _record_failure(self, reason: str) -> None:
        if self._mechanism is None:
            self._metrics.failed_authentications += 1
        else:
            self._metrics.failed_reauthentications += 1
        mechanism = f" with {self._requested_mechanism}" if self._requested_mechanism else ""
        line = "Authentication of %s%s failed: %s"
        self._failures.warn(line, str(self._connection), mechanism, reason)

    def _end(self) -> None:
        """Serves nothing more, and closes the connection once its responses are sent."""
        self.state = AuthenticationState.FAILED
        self._exchange = None
        self._connection.close_after_responses()

    def _illegal_state(self, api_name: str) -> KafkaError:
        self._fail(f"{api_name} is not allowed in this state")
        return KafkaError(
            ErrorCode.ILLEGAL_SASL_STATE, f"{api_name} is not allowed at this point of SASL."
        )

    def _require_reauthentication_allowed(self, now_ns: int) -> None:
        if self.expires_ns is None:
            raise KafkaError(
                ErrorCode.ILLEGAL_SASL_STATE, "The session has no end: it is authenticated already."
            )
        if now_ns - self._authenticated_ns < MIN_REAUTHENTICATION_INTERVAL_NS:
            raise KafkaError(
                ErrorCode.ILLEGAL_SASL_STATE, "Re-authentication is allowed once a second."
            )

    def _delay(self) -> "asyncio.Future[None]":
        """Returns a future that is done when a failure may be reported: guessing must be slow."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._timer.call_after(self._sasl.failure_delay_ms, lambda: future.set_result(None))
        return future


class SessionPipeline:
    """Handles the requests of a connection whose session has an end."""

    __slots__ = ("_authentication", "_metrics", "_pipeline")

    def __init__(
        self,
        authentication: ConnectionAuthentication,
        pipeline: "FramePipeline",
        metrics: AuthenticationMetrics,
    ) -> None:
        self._authentication = authentication
        self._pipeline = pipeline
        self._metrics = metrics

    def handle(self, connection: "ClientConnection", frame: memoryview) -> None:
        authentication = self._authentication
        key = frame[:2].tobytes()
        if authentication.state is AuthenticationState.TOKENS:
            if key != _SASL_AUTHENTICATE:
                raise ProtocolViolation("a request other than SaslAuthenticate during one")
        elif key != _SASL_HANDSHAKE:
            expires_ns = authentication.expires_ns
            if expires_ns is not None and connection.received_ns >= expires_ns:
                self._metrics.expired_connections_killed += 1
                connection.close("its session has expired, and it did not re-authenticate")
                return
        self._pipeline.handle(connection, frame)


def authentication_handlers(handlers: Mapping[ApiKey, Handler]) -> dict[ApiKey, Handler]:
    """Returns the handlers for clients that are not authenticated yet."""

    async def api_versions(
        request: ApiVersionsRequest, context: RequestContext
    ) -> ApiVersionsResponse:
        authentication = context.connection.authentication
        assert authentication is not None
        authentication.require_versions_allowed()
        response: ApiVersionsResponse = await handlers[ApiKey.API_VERSIONS](request, context)
        authentication.on_versions_sent()
        return response

    return {
        ApiKey.API_VERSIONS: api_versions,
        ApiKey.SASL_HANDSHAKE: handlers[ApiKey.SASL_HANDSHAKE],
        ApiKey.SASL_AUTHENTICATE: handlers[ApiKey.SASL_AUTHENTICATE],
    }
