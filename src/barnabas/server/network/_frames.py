# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
"""The bytes that one client has sent: received, and kept while they are no complete frame."""

from __future__ import annotations

from struct import Struct

from barnabas.net.buffers import FIRST_STEP_BYTES
from barnabas.net.tls_socket import TlsSocket

try:
    import cython

    if not cython.compiled:  # Cython's own stand-in for itself is many times slower than ours
        raise ImportError
except ImportError:
    from barnabas.wire.records import _uncompiled as cython

if cython.compiled:
    from cython.cimports.barnabas.server.network._system import (
        PyErr_SetFromErrno,
        recv,
        would_block,
    )

    Size = cython.typedef(cython.Py_ssize_t)

_LENGTH = Struct(">i")


@cython.final
@cython.cclass
class ReceivedFrames:
    """Receives into the shared buffer, and moves what cannot be handled yet to one of its own.

    `buffer` is that of the connection, from the pool in `buffers`: it has the start of a frame, or
    frames that may not start yet. `filled` are the received bytes in the shared buffer.
    """

    def __init__(self, turns, sock, buffers):
        self.turns = turns
        self.sock = sock
        self.fd = -1 if isinstance(sock, TlsSocket) else sock.fileno()
        self.buffers = buffers
        self.length_prefix = b""  # up to three bytes of a frame's length
        self.buffer = None
        self.frame_end = 0  # where the first frame of the buffer will end
        self.filled = 0

    def receive(self):
        """Returns how many bytes arrived: 0 at the end, -1 if the socket has none."""
        if self.buffer is not None:
            return self.receive_rest()
        turns = self.turns
        start: Size = len(self.length_prefix)
        if start:
            turns.shared[:start] = self.length_prefix
        count: Size
        if cython.compiled and self.fd >= 0:
            count = recv(self.fd, turns.shared_data + start, turns.shared_bytes - start, 0)
            if count < 0:
                if would_block():
                    return -1
                PyErr_SetFromErrno(OSError)
        else:
            try:
                count = self.sock.recv_into(turns.shared[start:])
            except (BlockingIOError, InterruptedError):
                return -1
        if start:
            self.length_prefix = b""
        self.filled = start + count
        return count

    def receive_rest(self):
        """Receives more of a frame; bytes after its end go to the shared buffer."""
        buffer = self.buffer
        self.filled = 0
        if buffer.filled == len(buffer.view):
            buffer.reserve(self.frame_end)
        missing = buffer.view[buffer.filled : self.frame_end]
        try:
            if len(buffer.view) < self.frame_end:
                count: Size = self.sock.recv_into(missing)
            else:
                count = self.sock.recvmsg_into((missing, self.turns.shared))[0]
            self.filled = max(count - len(missing), 0)
        except (BlockingIOError, InterruptedError):
            return -1
        finally:
            missing.release()
        buffer.filled += count - self.filled
        return count

    def has_frame(self):
        """Returns whether the connection's own buffer has a complete frame."""
        return self.buffer.filled >= self.frame_end

    def take(self):
        """Returns the connection's own buffer, to handle its frames."""
        buffer, self.buffer = self.buffer, None
        return buffer

    def keep_shared(self, position, filled, is_blocked):
        """Copies what is left in the shared buffer: another connection will receive into it."""
        shared = self.turns.shared
        size: Size = filled - position
        if size < 4:
            self.length_prefix = shared[position:filled].tobytes()
            return
        if not is_blocked:
            self.frame_end = 4 + _LENGTH.unpack_from(shared, position)[0]
            size = max(size, min(self.frame_end, FIRST_STEP_BYTES))
        self.buffer = self.buffers.acquire(size)
        self.buffer.append(shared[position:filled])

    def keep(self, buffer, position, is_blocked):
        """Keeps what is left in a buffer that was taken."""
        if position:
            buffer.consume(position)
        if buffer.filled < 4:
            self.length_prefix = buffer.view[: buffer.filled].tobytes()
            buffer.release()
            return
        self.buffer = buffer
        if not is_blocked:
            self.frame_end = 4 + _LENGTH.unpack_from(buffer.view)[0]
            buffer.reserve(self.frame_end)

    def close(self):
        """Called when the socket is closed: its number may be that of another file soon."""
        self.fd = -1
        if self.buffer is not None:
            self.buffer.release()
            self.buffer = None
