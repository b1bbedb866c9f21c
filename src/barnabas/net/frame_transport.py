"""Sends and receives frames on a connected socket.

Frames are received into mapped memory from a pool: the kernel copies several times faster to the
start of a page (see `barnabas.net.buffers`). A frame that is incomplete is received to its end and
no further, so that the next one starts at a page again.

Buffers are sent without being joined, and a frame costs one system call if the socket takes it.
Each system call releases the GIL, and other threads may hold it for long.
"""

import asyncio
import errno
from collections import deque
from collections.abc import Callable, Sequence
from itertools import islice, pairwise
from struct import Struct
from typing import Protocol

from barnabas.net.buffers import BufferPool, BuffersExhausted, ReceiveBuffer
from barnabas.wire.errors import ProtocolViolation
from barnabas.wire.outgoing import Outgoing
from barnabas.wire.schema import Buffer
from barnabas.wire.schema import Buffer as Bytes

_LENGTH = Struct(">i")

_FIRST_BYTES = 64 << 10
"""The size of the first receive buffer of a connection."""

_MAX_FIRST_BYTES = 16 << 20

_MAX_COPY_BYTES = 128 << 10
_MIN_FILL_DIVISOR = 8
"""A small frame that fills less than this fraction of its buffer is copied: a user that keeps it
must not keep a large buffer alive."""

_TLS_ALERT = 0x1503
"""The first bytes from a peer that expects TLS and got plain text."""

_HTTP = int.from_bytes(b"HTTP")
"""The first bytes from a web server."""

_MAX_BUFFERS = 512
"""Buffers in one system call; the kernel accepts 1024."""


class Socket(Protocol):
    """A plain socket, or `barnabas.net.tls_socket.TlsSocket`."""

    def fileno(self) -> int: ...
    def sendmsg(self, buffers: Sequence[Bytes], /) -> int: ...
    def recv_into(self, buffer: memoryview, /) -> int: ...
    def close(self) -> None: ...


class FrameTransport:
    """Calls `on_frame` with every whole frame; its memory is valid while a view of it exists.

    `on_frame` may raise ProtocolViolation. `on_error` is called at most once, never by `send`.
    """

    __slots__ = (
        "_buffer",
        "_buffers",
        "_first_bytes",
        "_frame_end",
        "_is_closed",
        "_is_corked",
        "_is_write_blocked",
        "_loop",
        "_max_frame_bytes",
        "_on_error",
        "_pending",
        "_send_callbacks",
        "_socket",
        "_unsent",
        "on_frame",
        "unsent_bytes",
    )

    def __init__(
        self,
        sock: Socket,
        loop: asyncio.AbstractEventLoop,
        buffers: BufferPool,
        max_frame_bytes: int,
        *,
        on_frame: Callable[[memoryview], None],
        on_error: Callable[[OSError], None],
    ) -> None:
        self.on_frame = on_frame
        self._on_error = on_error
        self._socket = sock
        self._pending: Callable[[], bool] | None = getattr(sock, "pending", None)
        self._loop = loop
        self._buffers = buffers
        self._max_frame_bytes = max_frame_bytes
        self._first_bytes = _FIRST_BYTES
        self._buffer: ReceiveBuffer | None = None  # holds a partial frame
        self._frame_end = 0  # where the partial frame ends in the buffer; 0 if unknown
        self._unsent: deque[memoryview] = deque()
        self._is_write_blocked = False  # the socket buffer is full
        self._is_corked = False  # during `on_frame` calls: what they send leaves in one call
        self.unsent_bytes = 0
        self._send_callbacks: deque[tuple[int, Callable[[], None]]] = deque()
        self._is_closed = False
        loop.add_reader(sock.fileno(), self._on_readable)

    def send(self, buffers: Sequence[Bytes], on_sent: Callable[[], None] | None = None) -> None:
        """Sends one frame, or the part that the socket takes; the rest follows.

        `on_sent` is called once the socket has taken the whole frame, in a later turn of the loop.
        """
        if self._is_closed:
            return
        self._unsent.extend(map(memoryview, buffers))
        self.unsent_bytes += sum(map(len, buffers))
        if on_sent is not None:
            self._send_callbacks.append((self.unsent_bytes, on_sent))
        if not self._is_write_blocked and not self._is_corked:
            self._start_sending()

    def close(self) -> None:
        """Closes the socket without calling `on_error`."""
        if self._is_closed:
            return
        self._is_closed = True
        self._loop.remove_reader(self._socket.fileno())
        self._loop.remove_writer(self._socket.fileno())
        self._socket.close()
        self._unsent.clear()
        self._send_callbacks.clear()
        if self._buffer is not None:
            self._buffer.release_when_unused()
            self._buffer = None

    def _break(self, failure: OSError) -> None:
        if not self._is_closed:
            self.close()
            self._on_error(failure)

    # Sending

    def _start_sending(self) -> None:
        try:
            self._flush()
        except (BlockingIOError, InterruptedError):
            pass
        except OSError as failure:
            self._loop.call_soon(self._break, failure)
            return
        if self._unsent:
            self._is_write_blocked = True
            self._loop.add_writer(self._socket.fileno(), self._on_writable)

    def _on_writable(self) -> None:
        try:
            self._flush()
        except (BlockingIOError, InterruptedError):
            return
        except OSError as failure:
            self._break(failure)
            return
        if not self._unsent:
            self._is_write_blocked = False
            self._loop.remove_writer(self._socket.fileno())

    def _flush(self) -> None:
        """Passes to the socket what it takes in one call."""
        unsent = self._unsent
        count = self._socket.sendmsg(
            list(unsent) if len(unsent) <= _MAX_BUFFERS else list(islice(unsent, _MAX_BUFFERS))
        )
        self.unsent_bytes -= count
        if self._send_callbacks:
            self._run_send_callbacks(count)
        while unsent and count >= len(unsent[0]):
            count -= len(unsent.popleft())
        if count:
            unsent[0] = unsent[0][count:]

    def _run_send_callbacks(self, count: int) -> None:
        self._send_callbacks = deque(
            (until - count, on_sent) for until, on_sent in self._send_callbacks
        )
        while self._send_callbacks and self._send_callbacks[0][0] <= 0:
            self._loop.call_soon(self._send_callbacks.popleft()[1])

    # Receiving

    def _on_readable(self) -> None:
        try:
            self._receive()
            while self._pending is not None and not self._is_closed and self._pending():
                self._receive()
        except (BlockingIOError, InterruptedError):
            return
        except ProtocolViolation as violation:
            self._break(ConnectionAbortedError(errno.ECONNABORTED, str(violation)))
        except BuffersExhausted:
            self._break(OSError(errno.ENOBUFS, "too many large responses arrive at once"))
        except OSError as failure:
            self._break(failure)

    def _receive(self) -> None:
        buffer = self._buffer
        if buffer is None:
            buffer = self._buffer = self._buffers.acquire(self._first_bytes)
        end = self._frame_end or len(buffer.view)
        count = self._socket.recv_into(buffer.view[buffer.filled : end])
        if not count:
            raise ConnectionResetError(errno.ECONNRESET, "the peer closed the connection")
        buffer.filled += count
        if buffer.filled >= self._frame_end:
            self._handle_frames(buffer)
        elif buffer.filled == len(buffer.view):
            buffer.reserve(self._frame_end)

    def _handle_frames(self, buffer: ReceiveBuffer) -> None:
        """Handles the frames in a buffer, and keeps the buffer if it ends with a partial frame."""
        self._buffer = None
        self._frame_end = position = 0
        self._is_corked = True
        try:
            position = self._dispatch_frames(buffer)
            if position < buffer.filled and not self._is_closed:
                self._buffer = rest = self._rest(buffer, position)
                if self._frame_end:
                    rest.reserve(self._frame_end)
        finally:
            if self._buffer is not buffer:
                buffer.release_when_unused()
            self._is_corked = False
            if self._unsent and not self._is_write_blocked:
                self._start_sending()

    def _dispatch_frames(self, buffer: ReceiveBuffer) -> int:
        """Calls `on_frame` with every whole frame. Returns the position after the last one."""
        view, filled, position = buffer.view, buffer.filled, 0
        while filled - position >= _LENGTH.size and not self._is_closed:
            (length,) = _LENGTH.unpack_from(view, position)
            if not 0 <= length <= self._max_frame_bytes:
                raise _invalid_length(length)
            size = _LENGTH.size + length
            if position + size > filled:
                self._frame_end = size
                break
            frame = view[position + _LENGTH.size : position + size]
            if size <= _MAX_COPY_BYTES and size * _MIN_FILL_DIVISOR < len(view):
                frame = memoryview(frame.tobytes())
            self._adapt_buffer_size(size)
            self.on_frame(frame)
            position += size
        return position

    def _adapt_buffer_size(self, size: int) -> None:
        """Sizes the next buffer by the last frame; without large frames it shrinks step by step."""
        likely = max(size, self._first_bytes - self._first_bytes // 4, _FIRST_BYTES)
        self._first_bytes = min(likely, _MAX_FIRST_BYTES)

    def _rest(self, buffer: ReceiveBuffer, position: int) -> ReceiveBuffer:
        """Returns a buffer that starts with the partial frame."""
        if not position:
            return buffer
        if not buffer.is_referenced:
            buffer.consume(position)
            return buffer
        rest = self._buffers.acquire(self._first_bytes)
        rest.append(buffer.view[position : buffer.filled])
        return rest


def _invalid_length(length: int) -> ProtocolViolation:
    if length >> 16 == _TLS_ALERT:
        return ProtocolViolation("the peer expects TLS (security.protocol SSL or SASL_SSL)")
    if length == _HTTP:
        return ProtocolViolation("the peer speaks HTTP: it is not a Kafka broker")
    return ProtocolViolation(f"the peer sent a frame of {length} bytes")


class GatheredRecords:
    """The value of a `records` field in a request: buffers that are sent without being joined.

    The buffers must not change before the response arrives.
    """

    __slots__ = ("buffers", "size_bytes")

    def __init__(self, parts: Sequence[Buffer]) -> None:
        self.buffers = parts
        self.size_bytes = sum(map(len, parts))


def frame_buffers(frame: Outgoing) -> list[Buffer]:
    """Returns the buffers of a frame in the order in which they are sent."""
    if not frame.regions:
        return [frame]
    view = memoryview(frame)
    parts: list[Buffer] = [view[: frame.regions[0][0]]]
    ends = [position for position, _ in frame.regions] + [len(frame)]
    for (_, region), (begin, end) in zip(frame.regions, pairwise(ends), strict=True):
        assert isinstance(region, GatheredRecords), "requests carry no records from files"
        parts.extend(region.buffers)
        if end > begin:
            parts.append(view[begin:end])
    return parts
