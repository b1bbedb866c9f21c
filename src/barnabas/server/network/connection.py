"""One client's socket: frames in, responses out, in order and within bounds.

A wake-up of the loop receives once, handles every complete frame that arrived, and sends all
their responses with one context. While the client does not read its responses, the next of them is
loaded from disk, its next request may not start yet, or it is over its quota, nothing more is read
from the socket: TCP makes the client wait.
"""

import asyncio
import logging
import socket
from collections.abc import Callable
from contextlib import suppress
from struct import Struct
from typing import TYPE_CHECKING, Protocol

from barnabas.log import ColdRead
from barnabas.net.buffers import FIRST_STEP_BYTES, BuffersExhausted, ReceiveBuffer
from barnabas.net.tls_socket import TlsSocket
from barnabas.security.authentication.sasl_server import SaslServer
from barnabas.security.principal import ANONYMOUS, KafkaPrincipal
from barnabas.server.disk_reads import PendingRead
from barnabas.server.network.authentication import ConnectionAuthentication
from barnabas.server.network.foreign_protocol import ForeignProtocol, invalid_length
from barnabas.server.network.listener_security import ListenerSecurity
from barnabas.server.network.response_queue import ResponseQueue
from barnabas.wire.apis import ApiKey
from barnabas.wire.errors import ProtocolViolation

if TYPE_CHECKING:
    from barnabas.server.network.socket_server import SocketServer

log = logging.getLogger(__name__)

MAX_IN_FLIGHT_REQUESTS = 256
"""Requests of one connection that may be in flight; a producer has five by default."""

MAX_UNSENT_BYTES = 1 << 20
"""While more bytes of responses than this wait in memory, no further request is started."""

_MAX_DISCARDED_READS = 16
"""After a failed handshake unread bytes are discarded: they would make the kernel drop the alert
that says why."""

_MAX_LOGGED_CHARACTERS = 200
_MAX_CLOSE_CALLBACKS = 16

_LENGTH = Struct(">i")
_PRODUCE_KEY = ApiKey.PRODUCE.to_bytes(2, "big")


class FramePipeline(Protocol):
    """Handles the frames of a connection."""

    def handle(self, connection: "ClientConnection", frame: memoryview) -> None:
        """Handles one frame, or starts to. Raises ProtocolViolation if it cannot be read."""


class IgnoringPipeline:
    """Ignores what arrives on a connection that is about to be closed."""

    def handle(self, connection: "ClientConnection", frame: memoryview) -> None:
        pass


_IGNORE_FRAMES = IgnoringPipeline()


class SuspendedFrame(Protocol):
    """A frame whose handler awaits something."""

    @property
    def allows_next_produce(self) -> bool: ...

    def abandon(self) -> None:
        """Called when the client disconnects."""


class ClientConnection:
    """The connection of one client to a listener."""

    __slots__ = (
        "_buffers",
        "_client_id",
        "_client_id_bytes",
        "_frame_end",
        "_is_blocked",
        "_is_draining",
        "_is_exclusive",
        "_is_reading",
        "_is_resume_scheduled",
        "_is_send_blocked",
        "_length_prefix",
        "_loading",
        "_loop",
        "_max_frame_bytes",
        "_security",
        "_server",
        "_socket",
        "_suspended",
        "_throttle",
        "_tls",
        "_unprocessed",
        "_when_closed",
        "authentication",
        "host",
        "is_closed",
        "listener",
        "local_host",
        "monotonic_ns",
        "pipeline",
        "principal",
        "received_ms",
        "received_ns",
        "responses",
        "software",
    )

    def __init__(
        self,
        server: "SocketServer",
        sock: socket.socket,
        host: str,
        local_host: str,
        listener: str,
        security: ListenerSecurity,
    ) -> None:
        self.host = host
        self.local_host = local_host
        """The address of this machine that the client connected to."""
        self.listener = listener
        self.principal = ANONYMOUS
        self.pipeline: FramePipeline = server.pipeline
        """Handles the frames of this connection, as long as it is in its current state."""
        self.authentication: ConnectionAuthentication | None = None
        """The state of SASL; None if the listener has none."""
        self.software = ("unknown", "unknown")
        """The client library's name and version, from its ApiVersions request."""
        self.responses = ResponseQueue(sock)
        self.monotonic_ns = server.monotonic_ns
        self.received_ns = self.monotonic_ns()
        """When bytes last arrived, by the monotonic clock."""
        self.received_ms = 0
        self.is_closed = False
        self._when_closed: dict[object, Callable[[], None]] = {}
        self._server = server
        self._security = security
        self._socket: socket.socket | TlsSocket = sock
        self._tls: TlsSocket | None = None  # once the handshake is done
        self._loop: asyncio.AbstractEventLoop = server.loop
        self._client_id = ""
        self._client_id_bytes = b""
        self._buffers = server.buffers
        self._max_frame_bytes = 0  # 0: socket.request.max.bytes
        self._suspended: set[SuspendedFrame] = set()
        self._is_exclusive = False  # no other request may start before the suspended one ends
        self._length_prefix = b""  # up to three bytes of a frame's length
        self._unprocessed: ReceiveBuffer | None = None
        # The start of a frame, or frames that may not start yet.
        self._frame_end = 0  # where the first frame of _unprocessed will end
        self._is_blocked = False  # _unprocessed starts with a complete frame that must wait
        self._is_send_blocked = False  # by a full socket, or by the disk while _loading is set
        self._loading: PendingRead[None] | None = None
        self._is_reading = False
        self._is_resume_scheduled = False
        self._is_draining = False
        self._throttle: asyncio.TimerHandle | None = None  # until it ends, no request is started
        if security.sasl is not None:
            self._require_authentication(security.sasl)

    def __str__(self) -> str:
        client = f"client {_printable(self._client_id)}, " if self._client_id else ""
        return f"{self.host} ({client}listener {self.listener})"

    def start(self) -> None:
        tls = self._security.tls
        if tls is None:
            self._start_reading()
        else:
            assert isinstance(self._socket, socket.socket)
            self._server.handshakes.start(self, self._socket, tls)

    def on_secured(self, sock: TlsSocket, principal: KafkaPrincipal) -> None:
        """Called when the TLS handshake is done."""
        self._socket = self._tls = sock
        self.responses = ResponseQueue(sock)
        self.principal = principal
        self._record_activity()
        self._start_reading()

    def on_handshake_failed(self) -> None:
        """Called when the TLS handshake has failed. The client has time to read the alert."""
        delay_s = self._server.settings.failed_authentication_delay_ms / 1000
        self._loop.call_later(delay_s, self._discard_and_close)

    @property
    def is_busy(self) -> bool:
        """Whether the client still waits for a response."""
        is_waiting = bool(self._suspended) or self._is_blocked or self._throttle is not None
        return is_waiting or not self.responses.is_empty

    def decode_client_id(self, encoded: memoryview) -> str:
        """Returns the client id of a request header; nearly always that of the previous request."""
        raw = encoded.tobytes()
        if raw != self._client_id_bytes:
            try:
                self._client_id = raw.decode()
            except UnicodeDecodeError:
                raise ProtocolViolation("the client id is not UTF-8") from None
            self._client_id_bytes = raw
        return self._client_id

    def add_suspended(self, request: SuspendedFrame) -> None:
        """Called when the handler of a request suspends."""
        self._suspended.add(request)
        self._is_exclusive = not request.allows_next_produce

    def remove_suspended(self, request: SuspendedFrame) -> None:
        """Called when a suspended request has put its response into the queue."""
        self._suspended.discard(request)
        if not request.allows_next_produce:
            self._is_exclusive = False
        if self._suspended:
            # More may end in this turn of the loop; their responses are sent together.
            self._resume_soon()
        else:
            self._resume()

    def throttle(self, delay_ms: int) -> None:
        """Reads nothing and starts no request for this time; the longest of several counts."""
        if self.is_closed or self._is_draining:
            return
        until_s = self._loop.time() + delay_ms / 1000
        if self._throttle is not None:
            if self._throttle.when() >= until_s:
                return
            self._throttle.cancel()
        self._throttle = self._loop.call_at(until_s, self._on_throttle_end)

    def _on_throttle_end(self) -> None:
        self._throttle = None
        self._resume()

    def _cancel_throttle(self) -> None:
        if self._throttle is not None:
            self._throttle.cancel()
            self._throttle = None

    # Authentication

    def _require_authentication(self, sasl: SaslServer) -> None:
        """Allows only small frames of a few APIs until the client is authenticated."""
        server = self._server
        self.authentication = ConnectionAuthentication(
            self, sasl, server.pipeline, server.authentication_metrics(self.listener), server.timer
        )
        self.pipeline = server.unauthenticated.pipeline
        self._buffers = server.unauthenticated.buffers
        self._max_frame_bytes = sasl.max_receive_bytes

    def set_authenticated(self, principal: KafkaPrincipal, pipeline: FramePipeline) -> None:
        """Called when the client is authenticated: it may send any request from now on."""
        self.principal = principal
        self.pipeline = pipeline
        self._buffers = self._server.buffers
        self._max_frame_bytes = 0
        self._server.unauthenticated.discard(self)

    def close_after_responses(self) -> None:
        """Handles nothing more, and closes when the responses to earlier requests are sent."""
        self._is_draining = True
        self.pipeline = _IGNORE_FRAMES
        self._pause_reading()

    # Ending

    def drain(self) -> None:
        """Handles the requests that have arrived, and closes when all responses are sent."""
        self._is_draining = True
        self._cancel_throttle()
        self._pause_reading()
        self._resume()

    def close(self, reason: str | None = None) -> None:
        """Closes the socket. A `reason` is logged; a client that merely disconnects has none."""
        if self.is_closed:
            return
        self.is_closed = True
        self._pause_reading()
        self._cancel_throttle()
        if self._loading is not None:
            self._loading.cancel()
        elif self._is_send_blocked:
            self._loop.remove_writer(self._socket)
        if reason is not None:
            log.warning("Closed the connection of %s: %s", self, reason)
        if self._security.tls is not None:
            self._server.handshakes.cancel(self)
        self._socket.close()
        if self._unprocessed is not None:
            self._unprocessed.release()
            self._unprocessed = None
        for request in tuple(self._suspended):
            request.abandon()
        self._suspended.clear()
        self._server.remove_connection(self)
        for callback in self._when_closed.values():
            callback()
        self._when_closed.clear()

    def call_when_closed(self, key: object, callback: Callable[[], None]) -> None:
        """Calls back once when the connection is closed. A later callback of a key replaces it."""
        if len(self._when_closed) >= _MAX_CLOSE_CALLBACKS and key not in self._when_closed:
            del self._when_closed[next(iter(self._when_closed))]
        self._when_closed[key] = callback

    @property
    def port(self) -> int:
        """The port of the client."""
        with suppress(OSError, AttributeError):
            return int(self._socket.getpeername()[1])
        return 0

    # Reading

    def _on_readable(self) -> None:
        if self._is_blocked or self._is_send_blocked:
            self._pause_reading()
            return
        try:
            self._receive()
        except (BlockingIOError, InterruptedError):
            return
        except Exception as failure:
            self._send_and_close(failure)
        self._finish_turn()

    def _on_encrypted_readable(self) -> None:
        """Reads, and reads again if bytes are left for which the loop gets no event."""
        if not self._is_reading:
            return
        self._on_readable()
        self._read_pending_soon()

    def _read_pending_soon(self) -> None:
        if self._is_reading and self._tls is not None and self._tls.has_pending:
            self._loop.call_soon(self._on_encrypted_readable)

    def _receive(self) -> None:
        shared = self._server.buffers.shared
        buffer = self._unprocessed
        if buffer is not None:
            self._receive_rest_of_frame(buffer, shared)
            return
        start = len(self._length_prefix)
        if start:
            shared[:start] = self._length_prefix
            count = self._socket.recv_into(shared[start:])
            self._length_prefix = b""  # kept if nothing could be received
        else:
            count = self._socket.recv_into(shared)
        if not count:
            self.close()
            return
        self._record_activity()
        self._handle_received(shared, start + count)

    def _receive_rest_of_frame(self, buffer: ReceiveBuffer, shared: memoryview) -> None:
        """Receives more of a frame; bytes after its end go to the shared buffer."""
        missing = buffer.view[buffer.filled : self._frame_end]
        if len(buffer.view) < self._frame_end:
            count = self._socket.recv_into(missing)
        else:
            count = self._socket.recvmsg_into((missing, shared))[0]
        if not count:
            self.close()
            return
        self._record_activity()
        beyond = max(count - len(missing), 0)
        buffer.filled += count - beyond
        missing.release()
        if buffer.filled < self._frame_end:
            if buffer.filled == len(buffer.view):
                buffer.reserve(self._frame_end)
            return
        self._handle_unprocessed(buffer)
        if beyond and not self.is_closed:
            if self._unprocessed is None:
                self._handle_received(shared, beyond)
            else:
                self._unprocessed.append(shared[:beyond])

    def _record_activity(self) -> None:
        self.received_ns = self.monotonic_ns()
        self.received_ms = self._server.clock()
        self._server.mark_active(self)

    # Handling

    def _handle_received(self, view: memoryview, filled: int) -> None:
        """Handles the frames in the shared buffer; the rest is copied to a buffer of its own."""
        position = self._handle_frames(view, filled)
        if position == filled or self.is_closed:
            return
        if filled - position < 4:
            self._length_prefix = view[position:filled].tobytes()
            return
        size = filled - position
        if not self._is_blocked:
            self._frame_end = 4 + _LENGTH.unpack_from(view, position)[0]
            size = max(size, min(self._frame_end, FIRST_STEP_BYTES))
        self._unprocessed = self._buffers.acquire(size)
        self._unprocessed.append(view[position:filled])

    def _handle_unprocessed(self, buffer: ReceiveBuffer) -> None:
        """Handles the frames in a buffer of this connection, which is kept if bytes remain."""
        self._unprocessed = None
        self._is_blocked = False
        try:
            position = self._handle_frames(buffer.view, buffer.filled)
        except BaseException:
            buffer.release()
            raise
        if self.is_closed or position == buffer.filled:
            buffer.release()
            return
        if position:
            buffer.consume(position)
        if buffer.filled < 4:
            self._length_prefix = buffer.view[: buffer.filled].tobytes()
            buffer.release()
            return
        self._unprocessed = buffer
        if not self._is_blocked:
            self._frame_end = 4 + _LENGTH.unpack_from(buffer.view)[0]
            buffer.reserve(self._frame_end)

    def _handle_frames(self, view: memoryview, filled: int) -> int:
        """Handles complete frames; returns the position after the last one that was started."""
        settings = self._server.settings
        budget = settings.queued_max_requests
        max_bytes = self._max_frame_bytes or settings.request_max_bytes
        responses = self.responses
        position = 0
        while filled - position >= 4:
            length = _LENGTH.unpack_from(view, position)[0]
            if not 0 <= length <= max_bytes:
                raise self._invalid_length(length, max_bytes)
            start = position + 4
            end = start + length
            if end > filled:
                break
            if (self._suspended and not self._may_start(view, start)) or not budget:
                self._is_blocked = True
                break
            if self._throttle is not None:
                self._is_blocked = True
                break
            if responses.unsent_bytes > MAX_UNSENT_BYTES and not self._send():
                self._is_blocked = True
                break
            self.pipeline.handle(self, view[start:end])
            if self.is_closed:
                break
            position = end
            budget -= 1
        return position

    def _invalid_length(self, length: int, max_bytes: int) -> ProtocolViolation:
        if self._max_frame_bytes:
            return invalid_length(length, max_bytes, "sasl.server.max.receive.size")
        return invalid_length(length, max_bytes)

    def _may_start(self, view: memoryview, start: int) -> bool:
        """Returns whether a request may start while others are suspended.

        Only Produce may, and only behind Produce requests whose records are appended already.
        """
        if self._is_exclusive or self.responses.pending_count >= MAX_IN_FLIGHT_REQUESTS:
            return False
        return view[start : start + 2].tobytes() == _PRODUCE_KEY

    # Continuing

    def _resume(self) -> None:
        """Starts the requests that had to wait, if they may start now."""
        self._is_resume_scheduled = False
        if self.is_closed:
            return
        if self._is_blocked and self._unprocessed is not None and not self._is_send_blocked:
            try:
                self._handle_unprocessed(self._unprocessed)
            except Exception as failure:
                self._send_and_close(failure)
        self._finish_turn()

    def _finish_turn(self) -> None:
        """Sends what is ready, then reads again unless a request has to wait."""
        if self.is_closed or not self._send():
            return
        if self._throttle is not None:
            self._pause_reading()
        elif self._is_blocked:
            if not self._suspended:  # other connections have their turn first
                self._resume_soon()
        elif self._is_draining:
            if not self.is_busy:
                self.close()
        elif not self._is_reading:
            self._start_reading()

    def _resume_soon(self) -> None:
        if not self._is_resume_scheduled:
            self._is_resume_scheduled = True
            self._loop.call_soon(self._resume)

    def _send(self) -> bool:
        """Sends what is ready; returns False if more must wait, or the connection is closed."""
        if self._loading is not None:
            return False
        responses = self.responses
        began_ns = self.monotonic_ns()
        try:
            done = responses.send()
        except ColdRead as cold:
            self._load_and_resume(cold)
            return False
        except OSError as failure:
            self._close_on_error(failure)
            return False
        if not done:
            if not self._is_send_blocked:
                self._is_send_blocked = True
                self._loop.add_writer(self._socket, self._on_writable)
            return False
        if self._is_send_blocked:
            self._is_send_blocked = False
            self._loop.remove_writer(self._socket)
        if responses.unsent:
            responses.record_sent(began_ns, self.monotonic_ns())
        return True

    def _on_writable(self) -> None:
        self._server.mark_active(self)
        self._resume()

    def _load_and_resume(self, cold: ColdRead) -> None:
        """Has the next bytes of the responses loaded from disk, and continues to send then."""
        if self._is_send_blocked:
            self._loop.remove_writer(self._socket)
        self._is_send_blocked = True
        self._loading = self._server.disk_reads.run(cold.load)
        self._loading.add_done_callback(self._on_loaded)

    def _on_loaded(self, loading: "asyncio.Future[None]") -> None:
        if self.is_closed:
            return
        self._loading = None
        self._is_send_blocked = False
        try:
            loading.result()
        except Exception as failure:
            self._close_on_error(failure)
        else:
            self._resume()

    def _send_and_close(self, failure: Exception) -> None:
        """Sends the responses to the requests before the failure, then closes."""
        if not self.is_closed and not isinstance(failure, OSError):
            self._send()
        self._close_on_error(failure)

    def _close_on_error(self, failure: Exception) -> None:
        match failure:
            case ForeignProtocol():
                with suppress(OSError):
                    self._socket.send(failure.response)
                self.close(str(failure))
            case ProtocolViolation() | BuffersExhausted():
                self.close(str(failure))
            case ConnectionError() | TimeoutError():
                self.close()  # the client, or the network to it, is gone
            case OSError():
                self.close(str(failure))
            case _:
                log.error("Failed to handle a request from %s", self, exc_info=failure)
                self.close("internal error")

    def _discard_and_close(self) -> None:
        if self.is_closed:
            return
        assert isinstance(self._socket, socket.socket)
        with suppress(OSError):
            for _ in range(_MAX_DISCARDED_READS):
                if not self._socket.recv_into(self._server.buffers.shared):
                    break
        self.close()

    def _start_reading(self) -> None:
        self._is_reading = True
        if self._tls is None:
            self._loop.add_reader(self._socket, self._on_readable)
        else:
            self._loop.add_reader(self._socket, self._on_encrypted_readable)
            self._read_pending_soon()

    def _pause_reading(self) -> None:
        if self._is_reading:
            self._is_reading = False
            self._loop.remove_reader(self._socket)


def _printable(client_id: str) -> str:
    """Returns a client id for a log line, which no client must be able to forge."""
    shortened = client_id[:_MAX_LOGGED_CHARACTERS]
    return shortened if shortened.isprintable() else ascii(shortened)
