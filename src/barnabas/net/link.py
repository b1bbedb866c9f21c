"""A connected socket to a peer: frames out, frames in.

What is received goes to mapped memory from a pool: the kernel copies several times faster to the
start of a page (see `barnabas.net.buffers`). A frame of which only a part has come is received
to its end and no further, so that the next one begins at the start of a page again.

What is sent leaves from where it lies: nothing is joined, and a frame costs one system call if
the socket takes it. Each call lets other threads run, which may take long to give way again.
"""

import asyncio
import errno
from collections import deque
from collections.abc import Callable, Sequence
from itertools import islice
from struct import Struct
from typing import Protocol

from barnabas.net.buffers import Buffer, Buffers, BuffersExhausted
from barnabas.wire.errors import ProtocolViolation
from barnabas.wire.schema import Buffer as Bytes

_LENGTH = Struct(">i")

_FIRST_BYTES = 64 << 10
"""What a receive has room for on a connection that has seen nothing larger."""

_LARGEST_FIRST_BYTES = 16 << 20

_LARGEST_COPY_BYTES = 128 << 10
_WORTH_KEEPING = 8
"""A small frame that fills less than this part of its buffer is handed out as a copy: whoever
keeps it must not keep a large buffer."""

_TLS_ALERT = 0x1503
"""How the answer begins of a peer that expects TLS and got something else."""

_MOST_PARTS = 512
"""Buffers in one system call; the kernel takes 1024."""


class Socket(Protocol):
    """A plain one, or `barnabas.net.tls.TlsSocket`."""

    def fileno(self) -> int: ...
    def sendmsg(self, buffers: Sequence[Bytes], /) -> int: ...
    def recv_into(self, buffer: memoryview, /) -> int: ...
    def close(self) -> None: ...


class Link:
    """Calls `received` with every whole frame, whose memory stays while somebody has a view of it.

    `received` may raise ProtocolViolation. `broken` is called at most once, never by `send`.
    """

    __slots__ = (
        "_broken",
        "_buffer",
        "_buffers",
        "_first_bytes",
        "_frame_end",
        "_is_closed",
        "_is_corked",
        "_is_stalled",
        "_largest_bytes",
        "_leaving",
        "_loop",
        "_pending",
        "_socket",
        "_unsent",
        "received",
        "unsent_bytes",
    )

    def __init__(
        self,
        sock: Socket,
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
        self._pending: Callable[[], int] | None = getattr(sock, "pending", None)
        self._loop = loop
        self._buffers = buffers
        self._largest_bytes = largest_bytes
        self._first_bytes = _FIRST_BYTES
        self._buffer: Buffer | None = None  # the beginning of a frame
        self._frame_end = 0  # where it will end in the buffer, once its length has come
        self._unsent: deque[memoryview] = deque()
        self._is_stalled = False  # the socket is full
        self._is_corked = False  # frames are being handed out: what they cause leaves in one call
        self.unsent_bytes = 0
        self._leaving: deque[tuple[int, Callable[[], None]]] = deque()
        self._is_closed = False
        loop.add_reader(sock.fileno(), self._on_readable)

    def send(self, parts: Sequence[Bytes], left: Callable[[], None] | None = None) -> None:
        """Send one frame, or what the socket takes of it; the rest follows.

        `left` is called when the socket has taken all of it, in a later turn of the loop.
        """
        if self._is_closed:
            return
        self._unsent.extend(map(memoryview, parts))
        self.unsent_bytes += sum(map(len, parts))
        if left is not None:
            self._leaving.append((self.unsent_bytes, left))
        if not self._is_stalled and not self._is_corked:
            self._start_sending()

    def close(self) -> None:
        """Hang up, silently."""
        if self._is_closed:
            return
        self._is_closed = True
        self._loop.remove_reader(self._socket.fileno())
        self._loop.remove_writer(self._socket.fileno())
        self._socket.close()
        self._unsent.clear()
        self._leaving.clear()
        if self._buffer is not None:
            self._buffer.let_go()
            self._buffer = None

    def _break(self, failure: OSError) -> None:
        if not self._is_closed:
            self.close()
            self._broken(failure)

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
            self._is_stalled = True
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
            self._is_stalled = False
            self._loop.remove_writer(self._socket.fileno())

    def _flush(self) -> None:
        """Give the socket what it takes in one call."""
        unsent = self._unsent
        count = self._socket.sendmsg(
            list(unsent) if len(unsent) <= _MOST_PARTS else list(islice(unsent, _MOST_PARTS))
        )
        self.unsent_bytes -= count
        if self._leaving:
            self._tell_who_left(count)
        while unsent and count >= len(unsent[0]):
            count -= len(unsent.popleft())
        if count:
            unsent[0] = unsent[0][count:]

    def _tell_who_left(self, count: int) -> None:
        self._leaving = deque((until - count, left) for until, left in self._leaving)
        while self._leaving and self._leaving[0][0] <= 0:
            self._loop.call_soon(self._leaving.popleft()[1])

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
        self._is_corked = True
        try:
            position = self._hand_out(buffer)
            if position < buffer.filled and not self._is_closed:
                self._buffer = rest = self._rest(buffer, position)
                if self._frame_end:
                    rest.make_room(self._frame_end)
        finally:
            if self._buffer is not buffer:
                buffer.let_go()
            self._is_corked = False
            if self._unsent and not self._is_stalled:
                self._start_sending()

    def _hand_out(self, buffer: Buffer) -> int:
        """Call `received` with every whole frame; the position after the last of them."""
        view, filled, position = buffer.view, buffer.filled, 0
        while filled - position >= _LENGTH.size and not self._is_closed:
            (length,) = _LENGTH.unpack_from(view, position)
            if not 0 <= length <= self._largest_bytes:
                raise _misfit(length)
            size = _LENGTH.size + length
            if position + size > filled:
                self._frame_end = size
                break
            frame = view[position + _LENGTH.size : position + size]
            if size <= _LARGEST_COPY_BYTES and size * _WORTH_KEEPING < len(view):
                frame = memoryview(frame.tobytes())
            self._expect(size)
            self.received(frame)
            position += size
        return position

    def _expect(self, size: int) -> None:
        """The next frame may be about as large: as the last one, or less and less than before."""
        likely = max(size, self._first_bytes - self._first_bytes // 4, _FIRST_BYTES)
        self._first_bytes = min(likely, _LARGEST_FIRST_BYTES)

    def _rest(self, buffer: Buffer, position: int) -> Buffer:
        """The beginning of a frame, at the start of a buffer."""
        if not position:
            return buffer
        if not buffer.is_held:
            buffer.drop(position)
            return buffer
        rest = self._buffers.take(self._first_bytes)
        rest.put(buffer.view[position : buffer.filled])
        return rest


def _misfit(length: int) -> ProtocolViolation:
    if length >> 16 == _TLS_ALERT:
        return ProtocolViolation("it expects TLS (security.protocol SSL or SASL_SSL)")
    return ProtocolViolation(f"it sent a frame of {length} bytes")
