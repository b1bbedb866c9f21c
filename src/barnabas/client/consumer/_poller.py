# cython: language_level=3
"""What users take messages from: compiled, or run as the Python it is.

As long as its cursor has more, `poll` of a tap is nothing but a step of that; the consumers, which
are built on taps, do the rest. The fields are declared in `_tap.pxd`.
"""

from __future__ import annotations

try:
    import cython

    if not cython.compiled:  # Cython's own stand-in for itself is many times slower than ours
        raise ImportError
except ImportError:
    from barnabas.wire.records import _uncompiled as cython

if cython.compiled:
    from cython.cimports.barnabas.client._message import Message
    from cython.cimports.barnabas.client._ready import Ready
    from cython.cimports.barnabas.client.consumer._completed_fetch import CompletedFetch
else:
    from barnabas.client._ready import Ready

COMPILED: bool = cython.compiled


@cython.cclass
class Poller:
    """What users take messages from; the rest of a consumer is built on it.

    `has_events` says that something goes before further messages: a rebalance, a callback to
    call, the end. `poll_count` counts, so that others can see that the user is still there.
    """

    def __init__(self) -> None:
        self.current_fetch = None
        self.has_events = False
        self.poll_count = 0

    def take(self, limit: cython.Py_ssize_t) -> list:
        """The messages of the cursor, `limit` at most."""
        messages: list = []
        message: Message
        cursor: CompletedFetch = self.current_fetch
        self.poll_count += 1
        if cursor is None or self.has_events:
            return messages
        while len(messages) < limit:
            message = cursor.next()
            if message is None:
                break
            messages.append(message)
        return messages


@cython.cclass
class SyncPoller(Poller):
    """For a user who waits in his own thread."""

    def poll(self, timeout: object = -1) -> object:
        """The next message, or None if none comes within `timeout` seconds (-1: however long).

        Callbacks are called in here. A message whose `error()` is not None tells of an error.
        """
        message: Message
        self.poll_count += 1
        if self.current_fetch is not None and not self.has_events:
            message = self.current_fetch.next()
            if message is not None:
                return message
        return self._poll(timeout)

    def _poll(self, timeout: object) -> object:
        raise NotImplementedError


@cython.cclass
class AioPoller(Poller):
    """For a user on the loop: what is there already is awaited without a turn of the loop."""

    def poll(self, timeout: object = -1) -> object:
        """The next message, or None if none comes within `timeout` seconds (-1: however long).

        Callbacks are called in here. A message whose `error()` is not None tells of an error.
        """
        message: Message
        self.poll_count += 1
        if self.current_fetch is not None and not self.has_events:
            message = self.current_fetch.next()
            if message is not None:
                return Ready(message)
        return self._poll(timeout)

    def __aiter__(self) -> object:
        return self

    def __anext__(self) -> object:
        message: Message
        self.poll_count += 1
        if self.current_fetch is not None and not self.has_events:
            message = self.current_fetch.next()
            if message is not None:
                return Ready(message)
        return self._next()

    def _poll(self, timeout: object) -> object:
        raise NotImplementedError

    def _next(self) -> object:
        raise NotImplementedError
