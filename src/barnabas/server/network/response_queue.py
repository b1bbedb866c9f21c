"""The responses to one client, in the order of its requests.

Responses that are ready are one run of bytes, with the positions at which file regions belong. A
request that suspends reserves its position in the order; later responses wait behind it.
"""

import errno
import os
import socket
from collections import deque
from collections.abc import Callable
from functools import partial
from itertools import groupby
from typing import Protocol, cast

from barnabas.net.tls_socket import TlsSocket
from barnabas.server.metrics.registry import RequestMetrics
from barnabas.wire.outgoing import Outgoing

_TRIM_BYTES = 1 << 20
"""More sent bytes than this before the unsent ones are removed from memory."""

_MAX_COPIED_BYTES = 64 << 10
"""Up to this size, copying everything into one send costs less than several calls."""

_MAX_TURN_BYTES = 4 << 20
"""After this many bytes it is the turn of other clients, even if this one could take more."""

_MAX_ENCRYPTED_TURN_BYTES = 512 << 10
"""The same where each byte is encrypted first, which takes half a millisecond."""


class SendableRegion(Protocol):
    """A file region that sends itself by a function with the parameters of `os.sendfile`.

    Both methods raise ColdRead instead of waiting for the disk.
    """

    @property
    def size_bytes(self) -> int: ...

    def read_cached(self) -> bytes | bytearray: ...

    def send(self, send_file: Callable[[int, int, int], int], sent: int, count: int) -> int: ...


class QueuedResponse:
    """The position of one response; `outgoing` stays None if the client expects no response."""

    __slots__ = ("completed_ns", "metrics", "outgoing", "received_ns")

    def __init__(self, metrics: RequestMetrics, received_ns: int) -> None:
        self.metrics = metrics
        self.received_ns = received_ns
        self.completed_ns = 0  # 0 until it is complete
        self.outgoing: Outgoing | None = None


class ResponseQueue:
    """The responses that are to be sent to one socket, and how much of them was sent."""

    __slots__ = (
        "_pending",
        "_ready",
        "_region",
        "_region_sent",
        "_send_file",
        "_sent",
        "_socket",
        "_turn_bytes",
        "unsent",
    )

    def __init__(self, sock: socket.socket | TlsSocket) -> None:
        self._socket = sock
        if isinstance(sock, TlsSocket):
            self._send_file: Callable[[int, int, int], int] = sock.send_file
            self._turn_bytes = _MAX_ENCRYPTED_TURN_BYTES
        else:
            self._send_file = partial(os.sendfile, sock.fileno())
            self._turn_bytes = _MAX_TURN_BYTES
        self._ready = Outgoing()
        self._pending: deque[QueuedResponse] = deque()
        self._sent = 0  # bytes of _ready
        self._region = 0  # index of the next region of _ready that is not sent to its end
        self._region_sent = 0  # bytes of that region
        self.unsent: list[tuple[RequestMetrics, int]] = []
        """For every response that is ready, the metrics of its API and when the request arrived."""

    @property
    def pending_count(self) -> int:
        """The number of requests whose responses are not ready, or wait for an earlier one."""
        return len(self._pending)

    @property
    def unsent_bytes(self) -> int:
        """Bytes in memory that wait for the socket; file regions do not count."""
        return len(self._ready) - self._sent

    @property
    def _has_begun(self) -> bool:
        """Whether a part of the ready responses has been sent."""
        return bool(self._sent or self._region or self._region_sent)

    @property
    def is_empty(self) -> bool:
        return not self._ready and not self._pending

    def buffer(self) -> Outgoing | None:
        """Returns where to append the next response, or None if earlier ones are not ready.

        The caller adds an entry to `unsent` too.
        """
        return None if self._pending else self._ready

    def reserve(self, metrics: RequestMetrics, received_ns: int) -> QueuedResponse:
        """Reserves the position behind the responses to all earlier requests."""
        response = QueuedResponse(metrics, received_ns)
        self._pending.append(response)
        return response

    def complete(
        self, response: QueuedResponse, outgoing: Outgoing | None, completed_ns: int
    ) -> None:
        """Completes a reserved response; those that wait for no earlier one become ready."""
        response.outgoing = outgoing
        response.completed_ns = completed_ns
        pending = self._pending
        while pending and pending[0].completed_ns:
            first = pending.popleft()
            if first.outgoing is not None:
                self._append(first.outgoing)
                self.unsent.append((first.metrics, first.received_ns))
                first.metrics.response_queue_ns.observe(completed_ns - first.completed_ns)

    def send(self) -> bool:
        """Sends what is ready; returns False if the socket is full or the client's turn is over.

        Raises ColdRead if the next bytes must be loaded first. What is before them was sent.
        """
        ready = self._ready
        if not ready:
            return True
        try:
            if ready.regions and ready.size_bytes <= _MAX_COPIED_BYTES and not self._has_begun:
                self._copy_in(ready)
            send = self._send_with_regions if ready.regions else self._send_bytes
            done = send(ready)
        except BlockingIOError:
            return False
        if done:
            del ready[:]
            ready.regions.clear()
            self._sent = self._region = self._region_sent = 0
        elif self._sent > _TRIM_BYTES:
            self._trim()
        return done

    def record_sent(self, began_ns: int, sent_ns: int) -> None:
        """Records the metrics of all ready responses, which were sent between the two times."""
        # The responses of one wake-up mostly have the same metrics and arrival time.
        for (metrics, received_ns), equal in groupby(self.unsent):
            count = len(list(equal))
            metrics.response_send_ns.observe(sent_ns - began_ns, count)
            metrics.total_ns.observe(sent_ns - received_ns, count)
        self.unsent.clear()

    def _append(self, outgoing: Outgoing) -> None:
        ready = self._ready
        start = len(ready)
        ready += outgoing
        for position, region in outgoing.regions:
            ready.regions.append((start + position, region))

    def _copy_in(self, ready: Outgoing) -> None:
        """Replaces the regions by their bytes, unless a file has become too short."""
        parts: list[bytes | bytearray] = []
        done = 0
        for position, region in ready.regions:
            try:
                parts += ready[done:position], cast("SendableRegion", region).read_cached()
            except EOFError:
                return  # sending the regions one by one reports what is missing
            done = position
        parts.append(ready[done:])
        ready[:] = b"".join(parts)
        ready.regions.clear()

    def _send_bytes(self, ready: Outgoing) -> bool:
        sent = self._sent
        if sent:
            with memoryview(ready) as view, view[sent:] as rest:
                self._sent = sent = sent + self._socket.send(rest)
        else:
            self._sent = sent = self._socket.send(ready)
        return sent == len(ready)

    def _send_with_regions(self, ready: Outgoing) -> bool:
        regions = ready.regions
        turn = self._turn_bytes
        while turn > 0:
            if self._region == len(regions):
                turn -= self._send_run(ready, len(ready), 0)
                if self._sent == len(ready):
                    return True
                continue
            position, region = regions[self._region]
            if self._sent < position:
                turn -= self._send_run(ready, position, socket.MSG_MORE)
            else:
                turn -= self._send_region(cast("SendableRegion", region))
                if self._region == len(regions) and self._sent == len(ready):
                    return True
        return False

    def _send_run(self, ready: Outgoing, end: int, flags: int) -> int:
        with memoryview(ready) as view, view[self._sent : end] as run:
            count = self._socket.send(run, flags)
        self._sent += count
        return count

    def _send_region(self, region: SendableRegion) -> int:
        left = region.size_bytes - self._region_sent
        count = region.send(self._send_file, self._region_sent, left) if left else 0
        if count == left:
            self._region += 1
            self._region_sent = 0
        elif count:
            self._region_sent += count
        else:
            # The file lost bytes, and the response's header with its size was sent already.
            raise OSError(errno.EIO, f"{left} bytes of a log segment no longer exist")
        return count

    def _trim(self) -> None:
        ready = self._ready
        del ready[: self._sent]
        ready.regions[:] = [
            (position - self._sent, region) for position, region in ready.regions[self._region :]
        ]
        self._sent = self._region = 0
