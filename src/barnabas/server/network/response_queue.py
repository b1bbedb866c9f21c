"""Answers on their way to one client, in the order of its requests.

What can leave is kept as one run of bytes with the places where file regions belong. A request
that suspends takes a place in the order; answers to later requests wait behind it.
"""

import errno
import socket
from collections import deque
from itertools import groupby
from time import perf_counter_ns
from typing import Protocol, cast

from barnabas.server.metrics.registry import RequestMetrics
from barnabas.wire.outgoing import Outgoing

_TRIM_BYTES = 1 << 20
"""How many bytes already sent may lie before the unsent ones."""

_COPIED_BYTES = 64 << 10
"""Up to this much, one send of everything costs less than the calls to send it in parts."""

_TURN_BYTES = 4 << 20
"""After this much one client has had its turn, even if it could take more."""


class SendableRegion(Protocol):
    """A region that can put itself on a socket without its bytes passing through here."""

    @property
    def size_bytes(self) -> int: ...

    def read(self) -> bytes: ...

    def send(self, sock: socket.socket, sent: int, count: int) -> int: ...


class Answer:
    """The place of one answer; `outgoing` stays None if the client expects none."""

    __slots__ = ("answered_ns", "metrics", "outgoing", "received_ns")

    def __init__(self, metrics: RequestMetrics, received_ns: int) -> None:
        self.metrics = metrics
        self.received_ns = received_ns
        self.answered_ns = 0  # once it is
        self.outgoing: Outgoing | None = None


class Outbox:
    """Everything that is still to be sent on one socket, and how far sending got."""

    __slots__ = ("_ready", "_region", "_region_sent", "_sent", "_socket", "_waiting", "unsent")

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self._ready = Outgoing()
        self._waiting: deque[Answer] = deque()
        self._sent = 0  # bytes of _ready
        self._region = 0  # index of the next region of _ready that is not sent to its end
        self._region_sent = 0  # bytes of that region
        self.unsent: list[tuple[RequestMetrics, int]] = []
        """For each answer that is ready, where it is counted and when it was asked for."""

    @property
    def waiting(self) -> int:
        """Requests that are answered in part or not at all."""
        return len(self._waiting)

    @property
    def unsent_bytes(self) -> int:
        """What waits for the socket in memory; regions lie in files and do not count."""
        return len(self._ready) - self._sent

    @property
    def _has_begun(self) -> bool:
        """Whether something of what is ready has been sent."""
        return bool(self._sent or self._region or self._region_sent)

    @property
    def is_empty(self) -> bool:
        return not self._ready and not self._waiting

    def tail(self) -> Outgoing | None:
        """Where the next answer is appended, unless earlier ones have yet to come.

        Whoever appends notes it in `unsent` too.
        """
        return None if self._waiting else self._ready

    def reserve(self, metrics: RequestMetrics, received_ns: int) -> Answer:
        """A place behind the answers to all earlier requests."""
        answer = Answer(metrics, received_ns)
        self._waiting.append(answer)
        return answer

    def finish(self, answer: Answer, outgoing: Outgoing | None, answered_ns: int) -> None:
        """Fill a reserved place; what need not wait any longer becomes ready."""
        answer.outgoing = outgoing
        answer.answered_ns = answered_ns
        waiting = self._waiting
        while waiting and waiting[0].answered_ns:
            first = waiting.popleft()
            if first.outgoing is not None:
                self._append(first.outgoing)
                self.unsent.append((first.metrics, first.received_ns))
                first.metrics.response_queue_ns.observe(answered_ns - first.answered_ns)

    def send(self) -> bool:
        """Send what is ready; False if the socket (or this client's turn) was full first."""
        ready = self._ready
        if not ready:
            return True
        try:
            if ready.regions and ready.size_bytes <= _COPIED_BYTES and not self._has_begun:
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

    def count_sent(self, began_ns: int) -> None:
        """Everything ready has been sent, by a send that began then."""
        sent_ns = perf_counter_ns()
        # The answers of one wake-up mostly are of one kind and count alike.
        for alike, answers in groupby(self.unsent):
            metrics, received_ns = alike
            count = len(list(answers))
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
        """Put the regions' bytes where they belong, if they are all there."""
        parts: list[bytes | bytearray] = []
        done = 0
        for position, region in ready.regions:
            try:
                parts += ready[done:position], cast("SendableRegion", region).read()
            except EOFError:
                return  # sending it in parts says what is missing
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
        turn = _TURN_BYTES
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
        count = region.send(self._socket, self._region_sent, left) if left else 0
        if count == left:
            self._region += 1
            self._region_sent = 0
        elif count:
            self._region_sent += count
        else:
            # The file lost bytes that the header before them has promised already.
            raise OSError(errno.EIO, f"{left} bytes of a log segment are no longer there")
        return count

    def _trim(self) -> None:
        ready = self._ready
        del ready[: self._sent]
        ready.regions[:] = [
            (position - self._sent, region) for position, region in ready.regions[self._region :]
        ]
        self._sent = self._region = 0
