# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
"""The responses to one client, in the order of its requests.

Responses that are ready are one run of bytes, with the positions at which file regions belong. A
request that suspends reserves its position in the order; later responses wait behind it.
"""

from __future__ import annotations

import errno
import os
import socket
from collections import deque
from functools import partial
from typing import Protocol

from barnabas.net.tls_socket import TlsSocket
from barnabas.wire.outgoing import Outgoing

try:
    import cython

    if not cython.compiled:  # Cython's own stand-in for itself is many times slower than ours
        raise ImportError
except ImportError:
    from barnabas.wire.records import _uncompiled as cython

if cython.compiled:
    from cython.cimports.barnabas.server.network._system import (
        MSG_NOSIGNAL,
        PyErr_SetFromErrno,
        send,
        would_block,
    )
    from cython.cimports.cpython.bytearray import PyByteArray_AS_STRING, PyByteArray_GET_SIZE

    Size = cython.typedef(cython.Py_ssize_t)

_TRIM_BYTES = 1 << 20
"""More sent bytes than this before the unsent ones are removed from memory."""

_MAX_COPIED_BYTES = 64 << 10
"""Up to this size, copying everything into one send costs less than several calls."""

_MAX_TURN_BYTES = 4 << 20
"""After this many bytes it is the turn of other clients, even if this one could take more."""

_MAX_ENCRYPTED_TURN_BYTES = 512 << 10
"""The same where each byte is encrypted first, which takes half a millisecond."""

_MSG_MORE = socket.MSG_MORE


class SendableRegion(Protocol):
    """A file region that sends itself by a function with the parameters of `os.sendfile`.

    Both methods raise ColdRead instead of waiting for the disk.
    """

    @property
    def size_bytes(self): ...

    def read_cached(self): ...

    def send(self, send_file, sent, count): ...


@cython.final
@cython.cclass
class QueuedResponse:
    """The position of one response; `outgoing` stays None if the client expects no response."""

    def __init__(self, metrics, received_ns):
        self.metrics = metrics
        self.received_ns = received_ns
        self.completed_ns = 0  # 0 until it is complete
        self.outgoing = None


@cython.final
@cython.cclass
class ResponseQueue:
    """The responses that are to be sent to one socket, and how much of them was sent.

    `sent` counts the bytes of `ready` that were sent, and `region` is the index of its next region
    that was not sent to its end, `region_sent` the bytes of it that were. `unsent` has the metrics
    of the ready responses, and when their requests arrived. Those of one wake-up are mostly equal,
    so it has runs of equal ones, and `last_count` those of the last run.
    """

    def __init__(self, sock):
        is_encrypted = isinstance(sock, TlsSocket)
        self.sock = sock
        self.fd = -1 if is_encrypted else sock.fileno()
        self.send_file = sock.send_file if is_encrypted else partial(os.sendfile, sock.fileno())
        self.turn_bytes = _MAX_ENCRYPTED_TURN_BYTES if is_encrypted else _MAX_TURN_BYTES
        self.ready = Outgoing()
        self.regions = self.ready.regions
        self.pending = deque()
        self.sent = self.region = self.region_sent = 0
        self.unsent = []
        self.last_metrics = None
        self.last_received_ns = 0
        self.last_count = 0

    @property
    def pending_count(self):
        """The number of requests whose responses are not ready, or wait for an earlier one."""
        return len(self.pending)

    @property
    def unsent_bytes(self):
        """Bytes in memory that wait for the socket; file regions do not count."""
        return self.count_unsent_bytes()

    def count_unsent_bytes(self):
        return len(self.ready) - self.sent

    @property
    def has_unsent(self):
        """Whether the metrics of ready responses are to be recorded."""
        return self.last_count > 0

    @property
    def is_empty(self):
        return not self.ready and not self.pending

    def buffer(self):
        """Returns where to append the next response, or None if earlier ones are not ready.

        The caller calls `add_unsent` too.
        """
        return None if self.pending else self.ready

    def add_unsent(self, metrics, received_ns):
        """Records the metrics of a response that is ready, and when its request arrived."""
        if self.last_metrics is metrics and self.last_received_ns == received_ns:
            self.last_count += 1
            return
        if self.last_count:
            self.unsent.append((self.last_metrics, self.last_received_ns, self.last_count))
        self.last_metrics = metrics
        self.last_received_ns = received_ns
        self.last_count = 1

    def reserve(self, metrics, received_ns):
        """Reserves the position behind the responses to all earlier requests."""
        response = QueuedResponse(metrics, received_ns)
        self.pending.append(response)
        return response

    def complete(self, response, outgoing, completed_ns):
        """Completes a reserved response; those that wait for no earlier one become ready."""
        response.outgoing = outgoing
        response.completed_ns = completed_ns
        pending = self.pending
        while pending and pending[0].completed_ns:
            first: QueuedResponse = pending.popleft()
            if first.outgoing is not None:
                self.append(first.outgoing)
                self.add_unsent(first.metrics, first.received_ns)
                first.metrics.response_queue_ns.observe(completed_ns - first.completed_ns)

    def close(self):
        """Called when the socket is closed: its number may be that of another file soon."""
        self.fd = -1

    def send(self):
        """Sends what is ready; returns False if the socket is full or the client's turn is over.

        Raises ColdRead if the next bytes must be loaded first. What is before them was sent.
        """
        ready = self.ready
        if not len(ready):
            return True
        try:
            if self.regions and ready.size_bytes <= _MAX_COPIED_BYTES and not self.has_begun():
                self.copy_in()
            done: cython.bint = self.send_with_regions() if self.regions else self.send_bytes()
        except BlockingIOError:
            return False
        if done:
            del ready[:]
            if self.regions:
                self.regions.clear()
            self.sent = self.region = self.region_sent = 0
        elif self.sent > _TRIM_BYTES:
            self.trim()
        return done

    def record_sent(self, began_ns, sent_ns):
        """Records the metrics of all ready responses, which were sent between the two times."""
        if self.unsent:
            for metrics, received_ns, count in self.unsent:
                metrics.response_send_ns.observe(sent_ns - began_ns, count)
                metrics.total_ns.observe(sent_ns - received_ns, count)
            self.unsent.clear()
        if self.last_count:
            last = self.last_metrics
            last.response_send_ns.observe(sent_ns - began_ns, self.last_count)
            last.total_ns.observe(sent_ns - self.last_received_ns, self.last_count)
            self.last_count = 0

    def has_begun(self):
        """Returns whether a part of the ready responses has been sent."""
        return self.sent > 0 or self.region > 0 or self.region_sent > 0

    def append(self, outgoing):
        ready = self.ready
        start = len(ready)
        ready += outgoing
        for position, region in outgoing.regions:
            self.regions.append((start + position, region))

    def copy_in(self):
        """Replaces the regions by their bytes, unless a file has become too short."""
        ready = self.ready
        parts = []
        done = 0
        for position, region in self.regions:
            try:
                parts += ready[done:position], region.read_cached()
            except EOFError:
                return  # sending the regions one by one reports what is missing
            done = position
        parts.append(ready[done:])
        ready[:] = b"".join(parts)
        self.regions.clear()

    def send_bytes(self):
        if cython.compiled and self.fd >= 0:
            size: Size = PyByteArray_GET_SIZE(self.ready)
            count: Size = send(
                self.fd,
                PyByteArray_AS_STRING(self.ready) + self.sent,
                size - self.sent,
                MSG_NOSIGNAL,
            )
            if count < 0:
                if would_block():
                    return False
                PyErr_SetFromErrno(OSError)
            self.sent += count
            return self.sent == size
        with memoryview(self.ready) as view, view[self.sent :] as rest:
            self.sent += self.sock.send(rest)
        return self.sent == len(self.ready)

    def send_with_regions(self):
        turn: Size = self.turn_bytes
        while turn > 0:
            if self.region == len(self.regions):
                turn -= self.send_run(len(self.ready), 0)
                if self.sent == len(self.ready):
                    return True
                continue
            position, region = self.regions[self.region]
            if self.sent < position:
                turn -= self.send_run(position, _MSG_MORE)
            else:
                turn -= self.send_region(region)
                if self.region == len(self.regions) and self.sent == len(self.ready):
                    return True
        return False

    def send_run(self, end, flags):
        count: Size = 0
        with memoryview(self.ready) as view, view[self.sent : end] as run:
            count = self.sock.send(run, flags)
        self.sent += count
        return count

    def send_region(self, region):
        left: Size = region.size_bytes - self.region_sent
        count: Size = region.send(self.send_file, self.region_sent, left) if left else 0
        if count == left:
            self.region += 1
            self.region_sent = 0
        elif count:
            self.region_sent += count
        else:
            # The file lost bytes, and the response's header with its size was sent already.
            raise OSError(errno.EIO, f"{left} bytes of a log segment no longer exist")
        return count

    def trim(self):
        ready = self.ready
        del ready[: self.sent]
        self.regions[:] = [
            (position - self.sent, region) for position, region in self.regions[self.region :]
        ]
        self.sent = self.region = 0
