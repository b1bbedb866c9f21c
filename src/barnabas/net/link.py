"""A connected socket to a peer: frames out, frames in.

What is received goes to mapped memory from a pool: the kernel copies several times faster to the
start of a page (see `barnabas.net.buffers`). A frame of which only a part has come is received
to its end and no further, so that the next one begins at the start of a page again.
"""

import asyncio
import errno
import socket
from collections.abc import Callable
from struct import Struct

from barnabas.net.buffers import Buffer, Buffers, BuffersExhausted
from barnabas.wire.errors import ProtocolViolation

_LENGTH = Struct(">i")

_FIRST_BYTES = 64 << 10
"""What a receive has room for on a connection that has seen nothing larger."""

_LARGEST_FIRST_BYTES = 16 << 20


class Link:
    """Calls `received` with every whole frame, whose memory is gone when it returns.

    `received` may raise ProtocolViolation. `broken` is called at most once, never by `send`.
    """

    __slots__ = (
        "_broken",
        "_buffer",
        "_buffers",
        "_first_bytes",
        "_frame_end",
        "_is_closed",
        "_is_stalled",
        "_largest_bytes",
        "_loop",
        "_socket",
        "_unsent",
        "received",
    )

    def __init__(
        self,
        sock: socket.socket,
        loop: asyncio.AbstractEventLoop,
        buffers: Buffers,
        largest_bytes: int,
        *,
        received: Callable[[memoryview], None],
        broken: Callable[[OSError], None],
    ) -> None:
        self.received = received
        self._broken = broken
        self._socket = sock
        self._loop = loop
        self._buffers = buffers
        self._largest_bytes = largest_bytes
        self._first_bytes = _FIRST_BYTES
        self._buffer: Buffer | None = None  # the beginning of a frame
        self._frame_end = 0  # where it will end in the buffer, once its length has come
        self._unsent = bytearray()
        self._is_stalled = False  # the socket is full
        self._is_closed = False
        loop.add_reader(sock, self._on_readable)

    def send(self, frame: bytearray) -> None:
        """Send one frame, or what the socket takes of it; the rest follows."""
        if self._is_stalled:
            self._unsent += frame
            return
        try:
            sent = self._socket.send(frame)
        except (BlockingIOError, InterruptedError):
            sent = 0
        except OSError as failure:
            self._loop.call_soon(self._break, failure)
            return
        if sent < len(frame):
            self._unsent += memoryview(frame)[sent:]
            self._is_stalled = True
            self._loop.add_writer(self._socket, self._on_writable)

    def close(self) -> None:
        """Hang up, silently."""
        if self._is_closed:
            return
        self._is_closed = True
        self._loop.remove_reader(self._socket)
        if self._is_stalled:
            self._loop.remove_writer(self._socket)
        self._socket.close()
        if self._buffer is not None:
            self._buffer.release()
            self._buffer = None

    def _break(self, failure: OSError) -> None:
        if not self._is_closed:
            self.close()
            self._broken(failure)

    def _on_writable(self) -> None:
        try:
            sent = self._socket.send(self._unsent)
        except (BlockingIOError, InterruptedError):
            return
        except OSError as failure:
            self._break(failure)
            return
        del self._unsent[:sent]
        if not self._unsent:
            self._is_stalled = False
            self._loop.remove_writer(self._socket)

    def _on_readable(self) -> None:
        try:
            self._receive()
        except (BlockingIOError, InterruptedError):
            return
        except ProtocolViolation as violation:
            self._break(ConnectionAbortedError(errno.ECONNABORTED, str(violation)))
        except BuffersExhausted:
            self._break(OSError(errno.ENOBUFS, "too many large answers arrive at once"))
        except OSError as failure:
            self._break(failure)

    def _receive(self) -> None:
        buffer = self._buffer
        if buffer is None:
            buffer = self._buffer = self._buffers.take(self._first_bytes)
        end = self._frame_end or len(buffer.view)
        count = self._socket.recv_into(buffer.view[buffer.filled : end])
        if not count:
            raise ConnectionResetError(errno.ECONNRESET, "it hung up")
        buffer.filled += count
        if buffer.filled >= self._frame_end:
            self._take_in(buffer)
        elif buffer.filled == len(buffer.view):
            buffer.make_room(self._frame_end)

    def _take_in(self, buffer: Buffer) -> None:
        """Hand out the frames in a buffer; it stays ours if it ends with a part of one."""
        self._buffer = None
        self._frame_end = position = 0
        try:
            position = self._hand_out(buffer)
            if position < buffer.filled and not self._is_closed:
                if position:
                    buffer.drop(position)
                if self._frame_end:
                    buffer.make_room(self._frame_end)
                self._buffer = buffer
        finally:
            if self._buffer is not buffer:
                buffer.release()

    def _hand_out(self, buffer: Buffer) -> int:
        """Call `received` with every whole frame; the position after the last of them."""
        view, filled, position = buffer.view, buffer.filled, 0
        while filled - position >= _LENGTH.size and not self._is_closed:
            (length,) = _LENGTH.unpack_from(view, position)
            if not 0 <= length <= self._largest_bytes:
                raise ProtocolViolation(f"it sent a frame of {length} bytes")
            size = _LENGTH.size + length
            if position + size > filled:
                self._frame_end = size
                break
            if size > self._first_bytes:
                self._first_bytes = min(size, _LARGEST_FIRST_BYTES)
            self.received(view[position + _LENGTH.size : position + size])
            position += size
        return position
