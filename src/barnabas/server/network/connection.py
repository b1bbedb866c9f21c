"""One client's socket: frames in, answers out, in order and within bounds.

A wake-up receives once, handles every whole frame that came, and sends all their answers in one
go. While a client does not take its answers, or a request may not begin yet, nothing more is
read from it: TCP tells the client to wait.
"""

import asyncio
import logging
import socket
from struct import Struct
from time import perf_counter_ns
from typing import TYPE_CHECKING

from barnabas.net.buffers import FIRST_STEP_BYTES, BuffersExhausted, ReceiveBuffer
from barnabas.server.network.response_queue import Outbox
from barnabas.wire.apis import ApiKey
from barnabas.wire.errors import ProtocolViolation

if TYPE_CHECKING:
    from barnabas.server.network.pipeline import Exchange
    from barnabas.server.network.socket_server import Network

log = logging.getLogger(__name__)

MAX_UNANSWERED = 256
"""Requests of one connection that may be under way; a producer keeps five by default."""

MAX_UNSENT_BYTES = 1 << 20
"""Answers in memory beyond which no further request of a connection is begun."""

ANONYMOUS = "User:ANONYMOUS"

_LENGTH = Struct(">i")
_PRODUCE_KEY = ApiKey.PRODUCE.to_bytes(2, "big")


class Connection:
    """A connected client."""

    __slots__ = (
        "_client_id",
        "_client_id_bytes",
        "_exchanges",
        "_frame_end",
        "_head",
        "_is_draining",
        "_is_exclusive",
        "_is_held",
        "_is_reading",
        "_is_settling",
        "_is_stalled",
        "_loop",
        "_network",
        "_pending",
        "_socket",
        "host",
        "is_closed",
        "listener",
        "outbox",
        "principal",
        "received_ms",
        "received_ns",
        "software",
    )

    def __init__(self, network: "Network", sock: socket.socket, host: str, listener: str) -> None:
        self.host = host
        self.listener = listener
        self.principal = ANONYMOUS
        self.software = ("unknown", "unknown")
        """The client library's name and version, once ApiVersions has told."""
        self.outbox = Outbox(sock)
        self.received_ns = perf_counter_ns()
        """The last wake-up that brought bytes, on a monotonic clock."""
        self.received_ms = 0
        self.is_closed = False
        self._network = network
        self._socket = sock
        self._loop: asyncio.AbstractEventLoop = network.loop
        self._client_id = ""
        self._client_id_bytes = b""
        self._exchanges: set[Exchange] = set()
        self._is_exclusive = False  # the one exchange under way lets no other request begin
        self._head = b""  # up to three bytes of a frame's length
        self._pending: ReceiveBuffer | None = None  # the beginning of a frame, or frames held back
        self._frame_end = 0  # where the frame that begins in _pending will end
        self._is_held = False  # _pending begins with a whole frame that may not begin yet
        self._is_stalled = False  # the socket is full
        self._is_reading = False
        self._is_settling = False  # a call of _settle is on its way
        self._is_draining = False

    def start(self) -> None:
        self._read_on()

    @property
    def is_busy(self) -> bool:
        """Whether the client has yet to receive an answer."""
        return bool(self._exchanges) or self._is_held or not self.outbox.is_empty

    def client_id_of(self, encoded: memoryview) -> str:
        """The client id in a header: nearly always the one before."""
        raw = encoded.tobytes()
        if raw != self._client_id_bytes:
            try:
                self._client_id = raw.decode()
            except UnicodeDecodeError:
                raise ProtocolViolation("the client id is not UTF-8") from None
            self._client_id_bytes = raw
        return self._client_id

    def await_exchange(self, exchange: "Exchange") -> None:
        """A request has suspended."""
        self._exchanges.add(exchange)
        self._is_exclusive = not exchange.lets_pass

    def end_exchange(self, exchange: "Exchange") -> None:
        """A suspended request has put its answer into the outbox."""
        self._exchanges.discard(exchange)
        if not exchange.lets_pass:
            self._is_exclusive = False
        if self._exchanges:
            # More may end in this turn of the loop; their answers leave together.
            self._settle_soon()
        else:
            self._settle()

    def drain(self) -> None:
        """Begin no request that has not arrived whole; close when all answers are sent."""
        self._is_draining = True
        self._pause_reading()
        self._settle()

    def close(self, reason: str | None = None) -> None:
        """Hang up. A reason is worth a line in the log; a client that just leaves is not."""
        if self.is_closed:
            return
        self.is_closed = True
        self._pause_reading()
        if self._is_stalled:
            self._loop.remove_writer(self._socket)
        if reason is not None:
            log.warning(
                "closed %s (client %s, listener %s): %s",
                self.host,
                self._client_id,
                self.listener,
                reason,
            )
        self._socket.close()
        if self._pending is not None:
            self._pending.release()
            self._pending = None
        for exchange in tuple(self._exchanges):
            exchange.abandon()
        self._exchanges.clear()
        self._network.forget(self)

    # Reading

    def _on_readable(self) -> None:
        if self._is_held or self._is_stalled:
            self._pause_reading()
            return
        try:
            self._receive()
        except (BlockingIOError, InterruptedError):
            return
        except Exception as failure:
            self._give_up(failure)
        self._end_turn()

    def _receive(self) -> None:
        shared = self._network.buffers.shared
        pending = self._pending
        if pending is not None:
            self._receive_rest(pending, shared)
            return
        start = len(self._head)
        if start:
            shared[:start] = self._head
            self._head = b""
            count = self._socket.recv_into(shared[start:])
        else:
            count = self._socket.recv_into(shared)
        if not count:
            self.close()
            return
        self._note_time()
        self._take_in(shared, start + count)

    def _receive_rest(self, pending: ReceiveBuffer, shared: memoryview) -> None:
        """More of a frame that has begun. What lies beyond its end goes to the shared buffer."""
        room = pending.view[pending.filled : self._frame_end]
        if len(pending.view) < self._frame_end:
            count = self._socket.recv_into(room)
        else:
            count = self._socket.recvmsg_into((room, shared))[0]
        if not count:
            self.close()
            return
        self._note_time()
        beyond = max(count - len(room), 0)
        pending.filled += count - beyond
        room.release()
        if pending.filled < self._frame_end:
            if pending.filled == len(pending.view):
                pending.reserve(self._frame_end)
            return
        self._handle_pending(pending)
        if beyond and not self.is_closed:
            if self._pending is None:
                self._take_in(shared, beyond)
            else:
                self._pending.append(shared[:beyond])

    def _note_time(self) -> None:
        self.received_ns = perf_counter_ns()
        self.received_ms = self._network.clock()
        self._network.touch(self)

    # Handling

    def _take_in(self, view: memoryview, filled: int) -> None:
        """Handle the frames in the shared buffer; what is left moves to one of our own."""
        position = self._handle_frames(view, filled)
        if position == filled or self.is_closed:
            return
        if filled - position < 4:
            self._head = view[position:filled].tobytes()
            return
        size = filled - position
        if not self._is_held:
            self._frame_end = 4 + _LENGTH.unpack_from(view, position)[0]
            size = max(size, min(self._frame_end, FIRST_STEP_BYTES))
        self._pending = self._network.buffers.acquire(size)
        self._pending.append(view[position:filled])

    def _handle_pending(self, pending: ReceiveBuffer) -> None:
        """Handle the frames in a buffer of our own; it stays ours if it is not used up."""
        self._pending = None
        self._is_held = False
        try:
            position = self._handle_frames(pending.view, pending.filled)
        except BaseException:
            pending.release()
            raise
        if self.is_closed or position == pending.filled:
            pending.release()
            return
        if position:
            pending.consume(position)
        if pending.filled < 4:
            self._head = pending.view[: pending.filled].tobytes()
            pending.release()
            return
        self._pending = pending
        if not self._is_held:
            self._frame_end = 4 + _LENGTH.unpack_from(pending.view)[0]
            pending.reserve(self._frame_end)

    def _handle_frames(self, view: memoryview, filled: int) -> int:
        """Handle whole frames from the front; the position after the last one that was begun."""
        settings = self._network.settings
        allowance = settings.queued_max_requests
        largest = settings.request_max_bytes
        handle = self._network.pipeline.handle
        outbox = self.outbox
        position = 0
        while filled - position >= 4:
            length = _LENGTH.unpack_from(view, position)[0]
            if not 0 <= length <= largest:
                raise ProtocolViolation(
                    f"a request of {length} bytes; socket.request.max.bytes is {largest}"
                )
            begin = position + 4
            end = begin + length
            if end > filled:
                break
            if (self._exchanges and not self._may_begin(view, begin)) or not allowance:
                self._is_held = True
                break
            if outbox.unsent_bytes > MAX_UNSENT_BYTES and not self._send():
                self._is_held = True
                break
            handle(self, view[begin:end])
            if self.is_closed:
                break
            position = end
            allowance -= 1
        return position

    def _may_begin(self, view: memoryview, begin: int) -> bool:
        """While produce requests are parked another may be appended; all else waits for them."""
        if self._is_exclusive or self.outbox.waiting >= MAX_UNANSWERED:
            return False
        return view[begin : begin + 2].tobytes() == _PRODUCE_KEY

    # Settling

    def _settle(self) -> None:
        """Something that stood in the way may be gone: begin what was held back."""
        self._is_settling = False
        if self.is_closed:
            return
        if self._is_held and self._pending is not None and not self._is_stalled:
            try:
                self._handle_pending(self._pending)
            except Exception as failure:
                self._give_up(failure)
        self._end_turn()

    def _end_turn(self) -> None:
        """Send what is ready, then read on if nothing stands in the way."""
        if self.is_closed or not self._send():
            return
        if self._is_held:
            if not self._exchanges:  # others have their turn, then this one goes on
                self._settle_soon()
        elif self._is_draining:
            if not self.is_busy:
                self.close()
        elif not self._is_reading:
            self._read_on()

    def _settle_soon(self) -> None:
        if not self._is_settling:
            self._is_settling = True
            self._loop.call_soon(self._settle)

    def _send(self) -> bool:
        """Send what is ready; False if not all of it went, or the connection is no more."""
        outbox = self.outbox
        began_ns = perf_counter_ns()
        try:
            done = outbox.send()
        except OSError as failure:
            self._hang_up(failure)
            return False
        if not done:
            if not self._is_stalled:
                self._is_stalled = True
                self._loop.add_writer(self._socket, self._on_writable)
            return False
        if self._is_stalled:
            self._is_stalled = False
            self._loop.remove_writer(self._socket)
        if outbox.unsent:
            outbox.count_sent(began_ns)
        return True

    def _on_writable(self) -> None:
        self._network.touch(self)
        self._settle()

    def _give_up(self, failure: Exception) -> None:
        """Answer what came before the failure, then hang up."""
        if not self.is_closed and not isinstance(failure, OSError):
            self._send()
        self._hang_up(failure)

    def _hang_up(self, failure: Exception) -> None:
        match failure:
            case ProtocolViolation() | BuffersExhausted():
                self.close(str(failure))
            case ConnectionError() | TimeoutError():
                self.close()  # the client, or the way to it, is gone
            case OSError():
                self.close(str(failure))
            case _:
                log.error("a request from %s was not handled", self.host, exc_info=failure)
                self.close("a fault of this broker")

    def _read_on(self) -> None:
        self._is_reading = True
        self._loop.add_reader(self._socket, self._on_readable)

    def _pause_reading(self) -> None:
        if self._is_reading:
            self._is_reading = False
            self._loop.remove_reader(self._socket)
