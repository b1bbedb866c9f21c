# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
"""One client's socket: frames in, responses out, in order and within bounds.

In its turn a connection receives once, handles every complete frame that arrived, and sends all
their responses with one call. While the client does not read its responses, the next of them is
loaded from disk, its next request may not start yet, or it is over its quota, nothing more is read
from the socket: TCP makes the client wait.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Protocol

from barnabas.log import ColdRead
from barnabas.security.principal import ANONYMOUS
from barnabas.server.network._frames import ReceivedFrames
from barnabas.server.network._pipeline import RequestSource
from barnabas.server.network._response_queue import ResponseQueue
from barnabas.server.network._turns import READABLE, WRITABLE
from barnabas.server.network.authentication import ConnectionAuthentication
from barnabas.server.network.connection_end import (
    IgnoringPipeline,
    close_on_error,
    discard_and_close,
    log_close,
    printable,
)
from barnabas.server.network.foreign_protocol import invalid_length
from barnabas.server.network.throttle import ConnectionThrottle

try:
    import cython

    if not cython.compiled:  # Cython's own stand-in for itself is many times slower than ours
        raise ImportError
except ImportError:
    from barnabas.wire.records import _uncompiled as cython

if cython.compiled:
    from cython.cimports.barnabas.server.network._pipeline import RequestPipeline
    from cython.cimports.barnabas.server.network._system import get_int32

    Data = cython.typedef(cython.pointer[cython.const[cython.uchar]])
    Size = cython.typedef(cython.Py_ssize_t)

MAX_IN_FLIGHT_REQUESTS = 256
"""Requests of one connection that may be in flight; a producer has five by default."""

MAX_UNSENT_BYTES = 1 << 20
"""While more bytes of responses than this wait in memory, no further request is started."""

_MAX_CLOSE_CALLBACKS = 16

# The same as integers in C.
_MAX_UNSENT = cython.declare(cython.Py_ssize_t, MAX_UNSENT_BYTES)
_READABLE = cython.declare(cython.Py_ssize_t, READABLE)
_WRITABLE = cython.declare(cython.Py_ssize_t, WRITABLE)

_IGNORE_FRAMES = IgnoringPipeline()


class FramePipeline(Protocol):
    """Handles the frames of a connection."""

    def handle(self, connection, frame):
        """Handles one frame, or starts to. Raises ProtocolViolation if it cannot be read."""


class SuspendedFrame(Protocol):
    """A frame whose handler awaits something."""

    @property
    def allows_next_produce(self): ...

    def abandon(self):
        """Called when the client disconnects."""


@cython.final
@cython.cclass
class ClientConnection(RequestSource):
    """The connection of one client to a listener. `_connection.pxd` has its fields.

    `pipeline` handles its frames, as long as the connection is in its current state, and
    `authentication` is the state of SASL, or None if the listener has none. `local_host` is the
    address of this machine that the client connected to. `software` are the name and the version
    of the client library, from its ApiVersions request. `suspended` has the requests that await
    something; if `is_exclusive` is set, no other request may start before the last of them ends.
    """

    def __init__(self, server, sock, host, local_host, listener, security):
        self.queue = ResponseQueue(sock)
        RequestSource.__init__(self, self.queue)
        self.host = host
        self.local_host = local_host
        self.listener = listener
        self.principal = ANONYMOUS
        self.pipeline = server.pipeline
        self.authentication = None
        self.software = ("unknown", "unknown")
        self.turns = server.turns
        self.received_ns = self.turns.clock.now_ns()
        self.is_closed = False
        self.when_closed = {}
        self.server = server
        self.security = security
        self.sock = sock
        self.tls = None
        self.fd = sock.fileno()
        self.watched = 0
        self.frames = ReceivedFrames(self.turns, sock, server.buffers)
        self.max_frame_bytes = 0  # 0: socket.request.max.bytes
        self.suspended = set()
        self.is_exclusive = False
        self.is_blocked = False  # a complete frame was received that must wait
        self.is_send_blocked = False  # by a full socket, or by the disk while `loading` is set
        self.loading = None
        self.is_reading = False
        self.is_resume_scheduled = False
        self.is_draining = False
        self.is_throttled = False
        self.delay = None
        if security.sasl is not None:
            self._require_authentication(security.sasl)

    def __str__(self):
        client = f"client {printable(self.client_id)}, " if self.client_id else ""
        return f"{self.host} ({client}listener {self.listener})"

    @property
    def is_busy(self):
        """Whether the client still waits for a response."""
        is_waiting = bool(self.suspended) or self.is_blocked or self.is_throttled
        return is_waiting or not self.queue.is_empty

    @property
    def port(self):
        """The port of the client."""
        with suppress(OSError, AttributeError):
            return self.sock.getpeername()[1]
        return 0

    def now_ns(self):
        return self.turns.clock.now_ns()

    # Beginning

    def start(self):
        tls = self.security.tls
        if tls is None:
            self.start_reading()
        else:
            self.server.handshakes.start(self, self.sock, tls)

    def on_secured(self, sock, principal):
        """Called when the TLS handshake is done."""
        self.sock = self.tls = sock
        self.responses = self.queue = ResponseQueue(sock)
        self.frames = ReceivedFrames(self.turns, sock, self.frames.buffers)
        self.principal = principal
        self.record_activity()
        self.start_reading()

    def on_handshake_failed(self):
        """Called when the TLS handshake has failed. The client has time to read the alert."""
        delay_s = self.server.settings.failed_authentication_delay_ms / 1000
        self.turns.loop.call_later(delay_s, discard_and_close, self, self.turns.shared)

    def _require_authentication(self, sasl):
        """Allows only small frames of a few APIs until the client is authenticated."""
        server = self.server
        metrics = server.authentication_metrics(self.listener)
        self.authentication = ConnectionAuthentication(
            self, sasl, server.pipeline, metrics, server.unauthenticated.failures, server.timer
        )
        self.pipeline = server.unauthenticated.pipeline
        self.frames.buffers = server.unauthenticated.buffers
        self.max_frame_bytes = sasl.max_receive_bytes

    def set_authenticated(self, principal, pipeline):
        """Called when the client is authenticated: it may send any request from now on."""
        self.principal = principal
        self.pipeline = pipeline
        self.frames.buffers = self.server.buffers
        self.max_frame_bytes = 0
        self.server.unauthenticated.discard(self)

    # Ending

    def close_after_responses(self):
        """Handles nothing more, and closes when the responses to earlier requests are sent."""
        self.is_draining = True
        self.pipeline = _IGNORE_FRAMES
        self.pause_reading()

    def drain(self):
        """Handles the requests that have arrived, and closes when all responses are sent."""
        self.is_draining = True
        self._cancel_throttle()
        self.pause_reading()
        self.resume()

    def close(self, reason=None):
        """Closes the socket. A `reason` is logged; a client that merely disconnects has none."""
        if self.is_closed:
            return
        self.is_closed = True
        self.is_reading = False
        self.watch(0)
        self._cancel_throttle()
        if self.loading is not None:
            self.loading.cancel()
        if reason is not None:
            log_close(self, reason)
        if self.security.tls is not None:
            self.server.handshakes.cancel(self)
        self.queue.close()
        self.sock.close()
        self.frames.close()
        for request in tuple(self.suspended):
            request.abandon()
        self.suspended.clear()
        self.server.remove_connection(self)
        for callback in self.when_closed.values():
            callback()
        self.when_closed.clear()

    def call_when_closed(self, key, callback):
        """Calls back once when the connection is closed. A later callback of a key replaces it."""
        if len(self.when_closed) >= _MAX_CLOSE_CALLBACKS and key not in self.when_closed:
            del self.when_closed[next(iter(self.when_closed))]
        self.when_closed[key] = callback

    # Reading

    def on_ready(self, events):
        """Takes a turn. An error of the socket is found by reading or by writing."""
        if events & ~_WRITABLE and self.is_reading:
            if self.tls is None:
                self.on_readable()
            else:
                self.on_encrypted_readable()
        if events & ~_READABLE and self.watched & _WRITABLE:
            self.server.mark_active(self)
            self.resume()

    def on_readable(self):
        if self.is_blocked or self.is_send_blocked:
            self.pause_reading()
            return
        frames = self.frames
        try:
            count: Size = frames.receive()
            if count < 0:
                return
            if not count:
                self.close()
                return
            self.record_activity()
            if frames.buffer is None:
                self.handle_shared(frames.filled)
            elif frames.has_frame():
                beyond: Size = frames.filled
                self.handle_unprocessed()
                if beyond and not self.is_closed:
                    if frames.buffer is None:
                        self.handle_shared(beyond)
                    else:
                        frames.buffer.append(self.turns.shared[:beyond])
        except Exception as failure:
            self._send_and_close(failure)
        self.finish_turn()

    def on_encrypted_readable(self):
        """Reads, and reads again if bytes are left for which the loop gets no event."""
        if not self.is_reading:
            return
        self.on_readable()
        self._read_pending_soon()

    def _read_pending_soon(self):
        if self.is_reading and self.tls is not None and self.tls.has_pending:
            self.turns.loop.call_soon(self.on_encrypted_readable)

    def record_activity(self):
        turns = self.turns
        self.received_ns = turns.clock.now_ns()
        self.received_ms = turns.clock.now_ms()
        turns.mark_active(self)

    # Handling

    def handle_shared(self, filled):
        """Handles the frames in the shared buffer; the rest is copied to a buffer of its own."""
        position: Size = self.handle_frames(self.turns.shared, filled)
        if position < filled and not self.is_closed:
            self.frames.keep_shared(position, filled, self.is_blocked)

    def handle_unprocessed(self):
        """Handles the frames in a buffer of this connection, which is kept if bytes remain."""
        buffer = self.frames.take()
        self.is_blocked = False
        try:
            position: Size = self.handle_frames(buffer.view, buffer.filled)
        except BaseException:
            buffer.release()
            raise
        if self.is_closed or position == buffer.filled:
            buffer.release()
            return
        self.frames.keep(buffer, position, self.is_blocked)

    def handle_frames(self, view, filled):
        """Handles complete frames; returns the position after the last one that was started."""
        turns = self.turns
        budget: cython.int = turns.max_requests
        max_bytes: Size = self.max_frame_bytes or turns.max_frame_bytes
        position: Size = 0
        if cython.compiled:
            content: cython.const[cython.uchar][::1]
            data: Data = turns.shared_data
            if view is not turns.shared:
                content = view
                data = cython.address(content[0])
        else:
            data = view
        while filled - position >= 4:
            length: Size = _int32(data, position)
            if not 0 <= length <= max_bytes:
                raise self._invalid_length(length, max_bytes)
            start: Size = position + 4
            end: Size = start + length
            if end > filled:
                break
            if self.is_throttled or not budget:
                self.is_blocked = True
                break
            if self.suspended and not self.may_start(data, start, end):
                self.is_blocked = True
                break
            if self.queue.count_unsent_bytes() > _MAX_UNSENT and not self.send():
                self.is_blocked = True
                break
            frame = view[start:end]
            if cython.compiled and isinstance(self.pipeline, RequestPipeline):
                cython.cast(RequestPipeline, self.pipeline).handle_request(
                    self, frame, data + start, length
                )
            else:
                self.pipeline.handle(self, frame)
            if self.is_closed:
                break
            position = end
            budget -= 1
        return position

    def _invalid_length(self, length, max_bytes):
        if self.max_frame_bytes:
            return invalid_length(length, max_bytes, "sasl.server.max.receive.size")
        return invalid_length(length, max_bytes)

    def may_start(self, data, start, end):
        """Returns whether a request may start while others are suspended.

        Only Produce (key 0) may, and only behind Produce requests whose records are appended
        already.
        """
        if self.is_exclusive or self.queue.pending_count >= MAX_IN_FLIGHT_REQUESTS:
            return False
        return end - start >= 2 and not data[start] and not data[start + 1]

    # Waiting

    def add_suspended(self, request):
        """Called when the handler of a request suspends."""
        self.suspended.add(request)
        self.is_exclusive = not request.allows_next_produce

    def remove_suspended(self, request):
        """Called when a suspended request has put its response into the queue."""
        self.suspended.discard(request)
        if not request.allows_next_produce:
            self.is_exclusive = False
        if self.suspended:
            # More may end in this turn of the loop; their responses are sent together.
            self.resume_soon()
        else:
            self.resume()

    def throttle(self, delay_ms):
        """Reads nothing and starts no request for this time; the longest of several counts."""
        if self.is_closed or self.is_draining:
            return
        if self.delay is None:
            self.delay = ConnectionThrottle(self, self.turns.loop)
        self.delay.start(delay_ms)

    def _cancel_throttle(self):
        if self.delay is not None:
            self.delay.cancel()

    # Continuing

    def resume(self):
        """Starts the requests that had to wait, if they may start now."""
        self.is_resume_scheduled = False
        if self.is_closed:
            return
        if self.is_blocked and self.frames.buffer is not None and not self.is_send_blocked:
            try:
                self.handle_unprocessed()
            except Exception as failure:
                self._send_and_close(failure)
        self.finish_turn()

    def finish_turn(self):
        """Sends what is ready, then reads again unless a request has to wait."""
        if self.is_closed or not self.send():
            return
        if self.is_throttled:
            self.pause_reading()
        elif self.is_blocked:
            if not self.suspended:  # other connections have their turn first
                self.resume_soon()
        elif self.is_draining:
            if not self.is_busy:
                self.close()
        elif not self.is_reading:
            self.start_reading()

    def resume_soon(self):
        if not self.is_resume_scheduled:
            self.is_resume_scheduled = True
            self.turns.loop.call_soon(self.resume)

    # Sending

    def send(self):
        """Sends what is ready; returns False if more must wait, or the connection is closed."""
        if self.loading is not None:
            return False
        queue = self.queue
        began_ns = self.turns.clock.now_ns() if queue.last_count else 0
        try:
            done: cython.bint = queue.send()
        except ColdRead as cold:
            self._load_and_resume(cold)
            return False
        except OSError as failure:
            close_on_error(self, failure)
            return False
        if not done:
            if not self.is_send_blocked:
                self.is_send_blocked = True
                self.watch(self.watched | _WRITABLE)
            return False
        if self.is_send_blocked:
            self.is_send_blocked = False
            self.watch(self.watched & ~_WRITABLE)
        if queue.last_count:
            queue.record_sent(began_ns, self.turns.clock.now_ns())
        return True

    def _load_and_resume(self, cold):
        """Has the next bytes of the responses loaded from disk, and continues to send then."""
        self.watch(self.watched & ~_WRITABLE)
        self.is_send_blocked = True
        self.loading = self.server.disk_reads.run(cold.load)
        self.loading.add_done_callback(self._on_loaded)

    def _on_loaded(self, loading):
        if self.is_closed:
            return
        self.loading = None
        self.is_send_blocked = False
        try:
            loading.result()
        except Exception as failure:
            close_on_error(self, failure)
        else:
            self.resume()

    def _send_and_close(self, failure):
        """Sends the responses to the requests before the failure, then closes."""
        if not self.is_closed and not isinstance(failure, OSError):
            self.send()
        close_on_error(self, failure)

    def start_reading(self):
        self.is_reading = True
        self.watch(self.watched | _READABLE)
        if self.tls is not None:
            self._read_pending_soon()

    def pause_reading(self):
        if self.is_reading:
            self.is_reading = False
            self.watch(self.watched & ~_READABLE)

    def watch(self, events):
        """Watches the socket for these events, instead of those before."""
        if events != self.watched:
            before, self.watched = self.watched, events
            self.turns.watch(self, self.fd, before, events)


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _int32(data: Data, at: Size) -> cython.int:
    if cython.compiled:
        return get_int32(data + at)
    return int.from_bytes(data[at : at + 4], "big", signed=True)
