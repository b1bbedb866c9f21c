# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
"""The turns of connections: which sockets are ready, and what a connection needs for its turn.

The event loop watches one epoll, and that epoll watches the sockets of all clients. So a wake-up of
the loop is one callback, however many clients have sent something, and none of them costs an
asyncio handle.
"""

from __future__ import annotations

import select
from typing import Protocol

try:
    import cython

    if not cython.compiled:  # Cython's own stand-in for itself is many times slower than ours
        raise ImportError
except ImportError:
    from barnabas.wire.records import _uncompiled as cython

if cython.compiled:
    from cython.cimports.barnabas.server.network._system import epoll_wait

READABLE = select.EPOLLIN
WRITABLE = select.EPOLLOUT

_BATCH = cython.declare(cython.Py_ssize_t, 64)
"""Connections that take their turns before the epoll is asked again."""

_MAX_ROUNDS = cython.declare(cython.Py_ssize_t, 8)
_MAX_RUN_NS = cython.declare(cython.longlong, 500_000)
"""After this time it is the turn of everything else in the loop: timers, and threads that ended."""


class WatchedConnection(Protocol):
    """Sockets are watched for connections."""

    def on_ready(self, events): ...


@cython.final
@cython.cclass
class ConnectionTurns:
    """Gives connections that are ready their turns, one after the other.

    It has what all connections of a server share: the clocks, the buffer they receive into, and
    the bounds `max_frame_bytes` and `max_requests` of one turn, which the server sets.
    """

    def __init__(self, loop, clock, shared, mark_active):
        """`mark_active` records that a connection is not idle."""
        self.loop = loop
        self.clock = clock
        self.shared = shared
        self.shared_bytes = len(shared)
        self.mark_active = mark_active
        self.max_frame_bytes = self.max_requests = 0
        self.connections = {}  # by file descriptor
        self.epoll = select.epoll()
        self.epoll_fd = self.epoll.fileno()
        if cython.compiled:
            content: cython.uchar[::1] = shared  # it is never moved, and lives as long as this
            self.shared_data = cython.address(content[0])
        self.is_watched = False  # the epoll, by the loop

    def watch(self, connection, fd, before, events):
        """Calls `connection.on_ready` while its socket has one of the events.

        `before` has the events that were watched so far. A socket is not watched when it is closed.
        """
        if not self.is_watched:
            self.is_watched = True
            self.loop.add_reader(self.epoll_fd, self.run)
        if not events:
            del self.connections[fd]
            self.epoll.unregister(fd)
        elif before:
            self.epoll.modify(fd, events)
        else:
            self.epoll.register(fd, events)
            self.connections[fd] = connection

    def run(self):
        """Gives a turn to each connection that is ready."""
        connections = self.connections
        if cython.compiled:
            index: cython.int
            end_ns: cython.longlong = self.clock.now_ns() + _MAX_RUN_NS
            for _ in range(_MAX_ROUNDS):
                # What becomes ready during the turns costs no pass of the loop.
                count: cython.int = epoll_wait(self.epoll_fd, self.events, _BATCH, 0)
                for index in range(count):
                    # An earlier turn may have closed this connection.
                    connection = connections.get(self.events[index].data.fd)
                    if connection is not None:
                        connection.on_ready(self.events[index].events)
                if count <= 0 or self.clock.now_ns() >= end_ns:
                    return
            return
        for fd, events in self.epoll.poll(0, _BATCH):
            connection = connections.get(fd)
            if connection is not None:
                connection.on_ready(events)

    def close(self):
        """Called when the server is closed, after its connections."""
        if not self.epoll.closed:
            if self.is_watched:
                self.loop.remove_reader(self.epoll_fd)
            self.epoll.close()
