"""TLS on a non-blocking socket: the handshake, then an encrypted socket.

OpenSSL works on memory, and the loop moves bytes between that memory and the socket. So a step of
a handshake can run in a thread while the loop stays free to close the socket, and a full socket
never leaves a half-written TLS record inside OpenSSL.
"""

import asyncio
import errno
import os
import socket
import ssl
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any, TypeAlias

from barnabas.net.tls_errors import (
    HandshakeEndError,
    HandshakeSizeError,
    HandshakeTimeoutError,
    PlainTextError,
)
from barnabas.wire.schema import Buffer

RECORD_BYTES = 16 << 10
"""The plain text of the largest TLS record."""

CHUNK_BYTES = 4 * RECORD_BYTES
"""Encrypted, or received, at a time. OpenSSL keeps memory of this size for each connection."""

_TURN_BYTES = 256 << 10
"""Bytes received in one call, encrypted or not, before it is the turn of other connections."""

_MAX_HANDSHAKE_BYTES = 128 << 10
"""What a peer may send before its handshake is done. A long chain of certificates has 20 KiB."""

_HANDSHAKE_RECORD = 0x16
_UNEXPECTED_MESSAGE = b"\x15\x03\x03\0\x02\x02\x0a"
"""A fatal alert, which clients that sent plain text recognise."""

Step: TypeAlias = Callable[[], None]
StepRunner: TypeAlias = Callable[[Step, Callable[[BaseException | None], None]], None]
"""Runs a step of a handshake, in a thread or at once, then calls back on the loop."""


def run_at_once(step: Step, on_done: Callable[[BaseException | None], None]) -> None:
    """The `StepRunner` of clients: they have one handshake at a time."""
    try:
        step()
    except OSError as failure:
        on_done(failure)
    else:
        on_done(None)


class TlsHandshake:
    """A TLS handshake on a connected socket, as a client, or as a server if `host` is None.

    Calls `on_done` or `on_failed` once, in a later turn of the loop. The socket stays open when
    it fails, so that the peer can read the alert: the owner closes it, by `cancel`.
    """

    __slots__ = (
        "_context",
        "_fd",
        "_host",
        "_incoming",
        "_is_complete",
        "_is_over",
        "_is_waiting",
        "_loop",
        "_object",
        "_on_done",
        "_on_failed",
        "_outgoing",
        "_received_bytes",
        "_run",
        "_socket",
        "_timer",
    )

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        sock: socket.socket,
        context: ssl.SSLContext,
        host: str | None,
        on_done: "Callable[[TlsSocket], None]",
        on_failed: Callable[[OSError], None],
        *,
        run: StepRunner = run_at_once,
        timeout_ms: int | None = None,
    ) -> None:
        self._loop = loop
        self._socket = sock
        self._fd = sock.fileno()  # asyncio takes 25 us longer to watch a socket object
        self._context = context
        self._host = host
        self._on_done = on_done
        self._on_failed = on_failed
        self._run = run
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._object: ssl.SSLObject | None = None  # made when the first bytes arrive
        self._received_bytes = 0
        self._is_waiting = False  # for bytes of the peer
        self._is_complete = False
        self._is_over = False
        self._timer: asyncio.TimerHandle | None = None
        if timeout_ms is not None:
            self._timer = loop.call_later(timeout_ms / 1000, self._on_timeout, timeout_ms)
        if host is None:
            self._wait()
        else:
            loop.call_soon(self._advance)

    def cancel(self) -> None:
        """Abandons the handshake and closes the socket."""
        self.stop()
        self._socket.close()

    def stop(self) -> None:
        """Abandons the handshake."""
        self._is_over = True
        self._stop_waiting()
        if self._timer is not None:
            self._timer.cancel()

    def _advance(self) -> None:
        if not self._is_over:
            self._run(self._step, self._on_stepped)

    def _step(self) -> None:
        """Computes the next messages. This may run in a thread, and touches no socket."""
        if self._object is None:
            self._object = self._context.wrap_bio(
                self._incoming,
                self._outgoing,
                server_side=self._host is None,
                server_hostname=self._host,
            )
        try:
            self._object.do_handshake()
        except ssl.SSLWantReadError:
            return
        self._is_complete = True

    def _on_stepped(self, failure: BaseException | None) -> None:
        if self._is_over:
            return
        try:
            self._send_messages()
        except OSError as unsent:
            failure = failure or unsent
        if isinstance(failure, OSError):
            self._fail(failure)
        elif failure is not None:
            raise failure
        elif self._is_complete:
            self.stop()
            assert self._object is not None
            self._on_done(TlsSocket(self._socket, self._object, self._incoming, self._outgoing))
        else:
            self._wait()

    def _send_messages(self) -> None:
        """Sends what OpenSSL has written: a few kilobytes, which the empty socket buffer takes."""
        messages = self._outgoing.read()
        if messages and self._socket.send(messages) < len(messages):
            raise ConnectionAbortedError(errno.ECONNABORTED, "the peer does not read")

    def _wait(self) -> None:
        self._is_waiting = True
        self._loop.add_reader(self._fd, self._on_readable)

    def _on_readable(self) -> None:
        try:
            received = self._socket.recv(RECORD_BYTES)
        except (BlockingIOError, InterruptedError):
            return
        except OSError as failure:
            self._fail(failure)
            return
        if not received:
            self._fail(HandshakeEndError(self._received_bytes))
            return
        if self._host is None and not self._received_bytes and received[0] != _HANDSHAKE_RECORD:
            self._reject_plain_text(received)
            return
        self._received_bytes += len(received)
        if self._received_bytes > _MAX_HANDSHAKE_BYTES:
            self._fail(HandshakeSizeError(_MAX_HANDSHAKE_BYTES))
            return
        self._incoming.write(received)
        self._stop_waiting()
        self._advance()

    def _reject_plain_text(self, received: bytes) -> None:
        with suppress(OSError):
            self._socket.send(_UNEXPECTED_MESSAGE)
        self._fail(PlainTextError(received))

    def _on_timeout(self, timeout_ms: int) -> None:
        self._fail(HandshakeTimeoutError(timeout_ms, self._received_bytes))

    def _fail(self, failure: OSError) -> None:
        self.stop()
        self._on_failed(failure)

    def _stop_waiting(self) -> None:
        if self._is_waiting:
            self._is_waiting = False
            self._loop.remove_reader(self._fd)


class TlsSocket:
    """An encrypted socket with the methods of a plain one that connections use.

    `send`, `sendmsg` and `send_file` take a chunk at a time. A chunk that the socket does not take
    to its end counts as not sent: the call raises BlockingIOError, and the caller repeats it with
    the same bytes, which are not encrypted again.
    """

    __slots__ = (
        "_chunk_bytes",
        "_ciphertext",
        "_incoming",
        "_is_ended",
        "_object",
        "_outgoing",
        "_read",
        "_socket",
        "_write",
        "has_pending",
    )

    def __init__(
        self,
        sock: socket.socket,
        tls_object: ssl.SSLObject,
        incoming: ssl.MemoryBIO,
        outgoing: ssl.MemoryBIO,
    ) -> None:
        self._socket = sock
        self._object = tls_object
        self._incoming = incoming
        self._outgoing = outgoing
        self._read: Any = tls_object.read  # returns a count when it gets a buffer
        self._write = tls_object.write
        self._ciphertext = memoryview(b"")  # the rest of a chunk, which the socket did not take
        self._chunk_bytes = 0  # of plain text in that chunk
        self._is_ended = False  # the peer has sent its last byte
        self.has_pending = bool(incoming.pending)
        """Whether bytes have arrived for which the loop gets no event."""

    @property
    def tls_object(self) -> ssl.SSLObject:
        return self._object

    def fileno(self) -> int:
        return self._socket.fileno()

    def getpeername(self) -> Any:
        return self._socket.getpeername()

    # Sending

    def send(self, content: Buffer, flags: int = 0) -> int:
        """Sends up to a chunk. With MSG_MORE it is sent together with the bytes of the next call.

        Raises BlockingIOError if the socket does not take the chunk to its end.
        """
        if not self._chunk_bytes:
            count = self._encrypt(content)
            if flags & socket.MSG_MORE:
                return count
            self._chunk_bytes = count
        return self._flush()

    def send_file(self, fd: int, position: int, count: int) -> int:
        """Sends up to a chunk of a file, like `os.sendfile`."""
        if self._chunk_bytes:
            return self._flush()
        return self.send(os.pread(fd, min(count, CHUNK_BYTES), position))

    def sendmsg(self, parts: Sequence[Buffer]) -> int:
        """Sends what the socket takes. Raises BlockingIOError if that is nothing."""
        if self._chunk_bytes:
            return self._flush()
        sent = 0
        try:
            for chunk in _chunks(parts):
                sent += self.send(chunk)
        except BlockingIOError:
            if not sent:
                raise
        return sent

    def _encrypt(self, content: Buffer) -> int:
        write, count = self._write, 0
        with memoryview(content) as view:
            size = min(len(view), CHUNK_BYTES)
            while count < size:
                count += write(view[count:size])
        return count

    def _flush(self) -> int:
        """Returns the size of the current chunk once the socket has taken it."""
        while True:
            if not self._ciphertext:
                self._ciphertext = memoryview(self._outgoing.read())
                if not self._ciphertext:
                    count, self._chunk_bytes = self._chunk_bytes, 0
                    return count
            self._ciphertext = self._ciphertext[self._socket.send(self._ciphertext) :]

    # Receiving

    def recv_into(self, view: memoryview) -> int:
        """Fills a view as far as bytes have arrived, and not much further than a turn's limit.

        Returns 0 at the end. Raises BlockingIOError if no whole TLS record has arrived.
        """
        received = self._decrypt(view) if self.has_pending else 0
        limit = min(len(view), _TURN_BYTES)
        encrypted = 0  # also records without data for the caller, such as updates of keys
        while received < limit and encrypted < _TURN_BYTES and not self._is_ended:
            try:
                ciphertext = self._socket.recv(CHUNK_BYTES)
            except OSError:
                if not received:
                    raise
                break  # bytes that have arrived are returned before an error
            if not ciphertext:
                self._is_ended = True
                break
            encrypted += len(ciphertext)
            self._incoming.write(ciphertext)
            received += self._decrypt(view[received:])
        if not received and not self._is_ended:
            raise BlockingIOError(errno.EAGAIN, "the TLS records have no data")
        return received

    def recvmsg_into(self, views: Sequence[memoryview]) -> tuple[int, None]:
        """Fills the views in turn. Only the count of the result has a value."""
        first, second = views
        received = self.recv_into(first)
        if received == len(first) and self.has_pending:
            received += self._decrypt(second)
        return received, None

    def _decrypt(self, view: memoryview) -> int:
        """Decrypts the records that have arrived, as far as they fit."""
        read, incoming, pending = self._read, self._incoming, self._object.pending
        count, size = 0, len(view)
        self.has_pending = False
        try:
            # Reading from empty memory raises an exception, which costs more than to look.
            while count < size and (incoming.pending or pending()):
                decrypted = read(size - count, view[count:])
                if not decrypted:
                    self._is_ended = True
                    return count
                count += decrypted
        except ssl.SSLWantReadError:
            return count
        except ssl.SSLZeroReturnError:
            self._is_ended = True
            return count
        self.has_pending = bool(incoming.pending or pending())
        return count

    def pending(self) -> bool:
        """Whether bytes have arrived for which the loop gets no event."""
        return self.has_pending

    def close(self) -> None:
        """Tells the peer that this is the end of the stream, and closes the socket."""
        with suppress(OSError):
            if not self._ciphertext:
                with suppress(ssl.SSLWantReadError):
                    self._object.unwrap()
                self._socket.send(self._outgoing.read())
            # Unread bytes, such as session tickets, would make the kernel reset the connection,
            # and the peer could lose the last bytes that it was sent.
            self._socket.recv(CHUNK_BYTES)
        self._socket.close()


def _chunks(parts: Sequence[Buffer]) -> Iterator[Buffer]:
    """Joins small parts, and splits large ones."""
    small: list[Buffer] = []
    size = 0
    for part in parts:
        if size + len(part) > CHUNK_BYTES and small:
            yield b"".join(small)
            small, size = [], 0
        if len(part) > RECORD_BYTES:
            if small:
                yield b"".join(small)
                small, size = [], 0
            view = memoryview(part)
            for begin in range(0, len(part), CHUNK_BYTES):
                yield view[begin : begin + CHUNK_BYTES]
        else:
            small.append(part)
            size += len(part)
    if small:
        yield b"".join(small)
