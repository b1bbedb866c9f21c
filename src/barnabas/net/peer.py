"""One peer: requests are sent in order, responses arrive in the same order, each has a deadline.

The first request opens the connection and waits for the handshake: API versions, authentication
(see `barnabas.net.handshake`). When the connection breaks, every request in flight fails, and the
next one opens a new connection. The peer never retries: that is up to its users.
"""

import asyncio
import errno
import logging
import random
import socket
from collections.abc import Callable
from math import inf

from barnabas.net.api_versions import ApiCodec, NegotiatedVersions
from barnabas.net.connect_attempt import ConnectAttempt
from barnabas.net.connection_options import ConnectionCounters, ConnectionOptions
from barnabas.net.frame_transport import FrameTransport, Socket, frame_buffers
from barnabas.net.handshake import Handshake, HandshakeResult, SaslSession, authenticate, negotiate
from barnabas.net.in_flight import InFlightRequest, InFlightRequests
from barnabas.net.sasl import AuthenticationFailed, SaslClient
from barnabas.net.tls_errors import explain_to_client
from barnabas.net.tls_socket import TlsHandshake
from barnabas.wire.apis import ApiKey
from barnabas.wire.errors import ProtocolViolation
from barnabas.wire.peer import ResponseCallback
from barnabas.wire.schema import Message

log = logging.getLogger(__name__)

MAX_IN_FLIGHT = 1000
"""Requests to one peer that may be sent or waiting for the connection."""

_MAX_CORRELATION_ID = 2**31 - 1
_REAUTHENTICATION_WINDOW = (0.85, 0.95)
"""The fraction of a session after which to re-authenticate, random to spread the load."""


def _ignore(*_: object) -> None:
    pass


class SocketPeer:
    """A `barnabas.wire.peer.Peer` over TCP.

    `on_change` is called with None when a connection is ready, and with the error when it broke
    or could not be made; `on_close` when it was closed by this side.
    """

    __slots__ = (
        "_authenticating",
        "_client_id",
        "_counters",
        "_handshake",
        "_in_flight",
        "_last_correlation_id",
        "_last_used_s",
        "_loop",
        "_on_change",
        "_on_close",
        "_opening",
        "_options",
        "_timer",
        "_timers",
        "_transport",
        "_versions",
        "host",
        "port",
    )

    def __init__(
        self,
        options: ConnectionOptions,
        host: str,
        port: int,
        client_id: str,
        *,
        counters: ConnectionCounters | None = None,
        on_change: Callable[[OSError | None], None] = _ignore,
        on_close: Callable[[], None] = _ignore,
    ) -> None:
        self.host = host
        self.port = port
        self._client_id = client_id.encode()
        self._options = options
        self._loop = options.loop
        self._counters = counters or ConnectionCounters()
        self._on_change = on_change
        self._on_close = on_close
        self._opening: ConnectAttempt | TlsHandshake | None = None
        self._transport: FrameTransport | None = None  # while connected
        self._authenticating: asyncio.Task[None] | None = None  # while credentials are fetched
        self._handshake: Handshake | None = None  # while it is in progress
        self._versions: NegotiatedVersions | None = None  # once negotiated
        self._in_flight = InFlightRequests()
        self._last_correlation_id = 0
        self._last_used_s = 0.0
        self._timer: asyncio.TimerHandle | None = None  # of the requests
        self._timers: list[asyncio.TimerHandle] = []  # of the connection

    def send(
        self,
        request: Message,
        timeout_ms: int,
        on_response: ResponseCallback | None,
        *,
        max_version: int | None = None,
    ) -> None:
        """Sends a request, in no later version than `max_version`.

        A Produce request with acks=0 has no response: `on_response` is then called with None
        once the request is sent.
        """
        deadline_s = self._loop.time() + timeout_ms / 1000
        entry = InFlightRequest(request, on_response, deadline_s, max_version)
        if len(self._in_flight) >= MAX_IN_FLIGHT:
            failure = OSError(errno.ENOBUFS, f"{MAX_IN_FLIGHT} requests are already in flight")
            self._loop.call_soon(self._complete, entry, self._with_address(failure))
            return
        self._schedule_deadline_check(deadline_s)
        if self._versions is not None and self._handshake is None:
            self._send_request(entry, self._versions)
            return
        self._in_flight.waiting.append(entry)
        self.open()

    def open(self) -> None:
        """Connects, unless connected or connecting."""
        if self._opening is not None or self._transport is not None:
            return
        options = self._options
        self._opening = ConnectAttempt(
            self._loop,
            self.host,
            self.port,
            options.configure_socket,
            self._on_connected,
            self._fail,
        )
        if options.connect_timeout_ms is not None:
            self._after(options.connect_timeout_ms, self._on_connect_timeout)

    @property
    def is_open(self) -> bool:
        """Whether a request would be sent at once."""
        return self._versions is not None

    @property
    def is_opening(self) -> bool:
        return self._versions is None and (self._opening is not None or self._transport is not None)

    def version(self, key: int) -> int | None:
        """Returns the negotiated version of an API, or None if not connected or not served."""
        return None if self._versions is None else self._versions.version(key)

    def close(self) -> None:
        self._on_close()
        self._disconnect(ConnectionAbortedError(errno.ECONNABORTED, "closed by this node"))

    # Connecting

    def _on_connected(self, sock: socket.socket) -> None:
        tls = self._options.tls
        if tls is None:
            self._on_secured(sock)
            return
        self._opening = TlsHandshake(
            self._loop, sock, tls.context, self.host, self._on_secured, self._on_tls_error
        )

    def _on_tls_error(self, failure: OSError) -> None:
        self._fail(explain_to_client(failure))

    def _on_secured(self, sock: Socket) -> None:
        self._opening = None
        options = self._options
        self._transport = FrameTransport(
            sock,
            self._loop,
            options.buffers,
            options.max_response_bytes,
            on_frame=self._on_frame,
            on_error=self._on_transport_error,
        )
        self._counters.connections += 1
        self._counters.connects += 1
        if options.sasl is None:
            self._start_handshake(negotiate(None))
        else:
            self._authenticate(options.sasl, negotiate)

    def _authenticate(
        self, sasl: SaslClient, handshake: Callable[[SaslSession], Handshake]
    ) -> None:
        """Gets the credentials (a token may have to be fetched), then starts the handshake."""

        async def authenticate_peer() -> None:
            try:
                sasl_session = SaslSession(sasl.mechanism, await sasl.exchange(self.host))
            except AuthenticationFailed as failure:
                self._fail(failure)
            else:
                self._start_handshake(handshake(sasl_session))

        self._authenticating = self._loop.create_task(authenticate_peer())

    def _start_handshake(self, handshake: Handshake) -> None:
        self._authenticating = None
        self._handshake = handshake
        self._step_handshake(None)

    def _step_handshake(self, response: object) -> None:
        if self._handshake is None or isinstance(response, OSError):
            return  # the connection broke, and every request in flight fails
        try:
            request, codec = self._handshake.send(response)
        except StopIteration as done:
            self._on_handshake_done(done.value)
        except OSError as failure:
            self._fail(failure)
        except ProtocolViolation as violation:
            self._fail(ConnectionAbortedError(errno.ECONNABORTED, str(violation)))
        else:
            self._write(InFlightRequest(request, self._step_handshake, inf), codec)

    def _on_handshake_done(self, result: HandshakeResult) -> None:
        is_new = self._versions is None
        self._handshake = None
        self._cancel_timers()
        versions = self._versions = result.versions
        if self._options.max_idle_ms:
            self._last_used_s = self._loop.time()
            self._after(self._options.max_idle_ms, self._check_idle)
        if result.session_lifetime_ms and self._options.sasl is not None:
            spent = random.uniform(*_REAUTHENTICATION_WINDOW)
            self._after(result.session_lifetime_ms * spent, self._reauthenticate)
        if is_new:
            self._on_change(None)
        for request in self._in_flight.take_waiting():
            self._send_request(request, versions)

    def _reauthenticate(self) -> None:
        """Re-authenticates. Requests from here on wait until it is done."""
        sasl, versions = self._options.sasl, self._versions
        assert sasl is not None
        assert versions is not None
        self._authenticate(sasl, lambda sasl_session: authenticate(versions, sasl_session))

    # Requests and responses

    def _send_request(self, request: InFlightRequest, versions: NegotiatedVersions) -> None:
        try:
            codec = versions.codec(request.message.API_KEY, request.max_version)
            self._write(request, codec)
        except OSError as error:
            self._loop.call_soon(self._complete, request, self._with_address(error))

    def _write(self, request: InFlightRequest, codec: ApiCodec) -> None:
        if self._transport is None:
            return  # a callback has closed the connection; no request is left
        request.codec = codec
        correlation_id = self._last_correlation_id % _MAX_CORRELATION_ID + 1
        request.correlation_id = self._last_correlation_id = correlation_id
        frame = codec.encode(request.message, correlation_id, self._client_id)
        self._last_used_s = request.sent_s = self._loop.time()
        counters = self._counters
        counters.requests += 1
        counters.bytes_out += frame.size_bytes
        by_api = counters.requests_by_api
        by_api[codec.key] = by_api.get(codec.key, 0) + 1
        if codec.key == ApiKey.PRODUCE and not request.message.acks:  # type: ignore[attr-defined]
            self._in_flight.without_response.append(request)
            self._transport.send(frame_buffers(frame), lambda: self._on_sent(request))
            return
        counters.in_flight += 1
        self._in_flight.sent.append(request)
        self._transport.send(frame_buffers(frame))

    def _on_sent(self, request: InFlightRequest) -> None:
        unsent = self._in_flight.without_response
        if unsent and unsent[0] is request:
            unsent.popleft()
            self._complete(request, None)

    def _on_frame(self, frame: memoryview) -> None:
        sent = self._in_flight.sent
        if not sent:
            raise ProtocolViolation("the peer sent a response to no request")
        request = sent[0]
        response = request.codec.decode(frame, request.correlation_id)
        sent.popleft()
        self._last_used_s = self._loop.time()
        self._count(request, response, len(frame))
        self._complete(request, response)

    def _count(self, request: InFlightRequest, response: Message, size_bytes: int) -> None:
        counters = self._counters
        latency_s = self._last_used_s - request.sent_s
        counters.responses += 1
        counters.in_flight -= 1
        counters.bytes_in += size_bytes + 4
        counters.latency_s += latency_s
        counters.latency_max_s = max(counters.latency_max_s, latency_s)
        throttle_ms = getattr(response, "throttle_time_ms", 0)
        if throttle_ms:
            counters.throttled += 1
            counters.throttle_ms = throttle_ms

    def _complete(self, request: InFlightRequest, outcome: Message | OSError | None) -> None:
        if request.on_response is None:
            return
        try:
            request.on_response(outcome)
        except Exception:
            # The callback is at fault, not the connection or its other users.
            log.exception("the callback of a response of %s:%d failed", self.host, self.port)

    # Disconnecting

    def _on_transport_error(self, failure: OSError) -> None:
        if self._versions is None and isinstance(failure, ConnectionResetError):
            reason = "disconnected at the first request (is security.protocol right?)"
            failure = ConnectionResetError(errno.ECONNRESET, reason)
        self._fail(failure)

    def _fail(self, failure: OSError) -> None:
        """Handles a broken connection, or one that cannot be made."""
        error = self._with_address(failure)
        if isinstance(failure, AuthenticationFailed):
            self._counters.failed_authentications += 1
        self._on_change(error)
        self._disconnect(failure)

    def _disconnect(self, reason: OSError) -> None:
        """Closes the connection and fails every request in flight."""
        if self._opening is not None:
            self._opening.cancel()
        if self._authenticating is not None:
            self._authenticating.cancel()
        if self._transport is not None:
            self._transport.close()
            self._counters.connections -= 1
            self._counters.disconnects += 1
        if self._timer is not None:
            self._timer.cancel()
        self._cancel_timers()
        self._opening = self._transport = self._versions = None
        self._authenticating = self._handshake = self._timer = None
        self._counters.in_flight -= len(self._in_flight.sent)
        error = self._with_address(reason)
        for request in self._in_flight.take_all():
            self._complete(request, error)

    def _with_address(self, failure: OSError) -> OSError:
        """Returns the same error with the address of the peer."""
        reason = f"{self.host}:{self.port}: {failure.strerror or failure}"
        return type(failure)(failure.errno, reason)

    # Time

    def _after(self, pause_ms: float, then: Callable[[], None]) -> None:
        now_s = self._loop.time()
        self._timers = [timer for timer in self._timers if timer.when() > now_s]
        self._timers.append(self._loop.call_at(now_s + pause_ms / 1000, then))

    def _cancel_timers(self) -> None:
        for timer in self._timers:
            timer.cancel()
        self._timers.clear()

    def _on_connect_timeout(self) -> None:
        timeout_ms = self._options.connect_timeout_ms
        self._fail(OSError(errno.EHOSTUNREACH, f"no connection within {timeout_ms} ms"))

    def _check_idle(self) -> None:
        max_idle_ms = self._options.max_idle_ms
        idle_ms = (self._loop.time() - self._last_used_s) * 1000
        if self._in_flight or idle_ms < max_idle_ms:
            self._after(max(1, max_idle_ms - idle_ms), self._check_idle)
        else:
            self._disconnect(ConnectionAbortedError(errno.ECONNABORTED, "idle for too long"))

    def _schedule_deadline_check(self, deadline_s: float) -> None:
        """Checks the deadlines at that time, if not earlier. One timer serves all requests."""
        if self._timer is not None:
            if self._timer.when() <= deadline_s:
                return
            self._timer.cancel()
        self._timer = self._loop.call_at(deadline_s, self._check_deadlines)

    def _check_deadlines(self) -> None:
        self._timer = None
        now_s = self._loop.time()
        if self._options.connect_timeout_ms is not None:
            # Connecting has its own timeout; the request still fails at its deadline.
            error = self._with_address(TimeoutError(errno.ETIMEDOUT, "not connected in time"))
            for request in self._in_flight.take_expired(now_s):
                self._complete(request, error)
        earliest_s = self._in_flight.earliest_deadline_s()
        if earliest_s == inf:
            return
        if earliest_s > now_s:
            self._schedule_deadline_check(earliest_s)
        else:
            # The requests behind it wait for the same silent peer.
            self._counters.timeouts += 1
            self._fail(TimeoutError(errno.ETIMEDOUT, "no response in time"))
