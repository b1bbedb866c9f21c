# cython: language_level=3
"""What users draw messages from: compiled, or run as the Python it is.

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
    from cython.cimports.barnabas.client.consumer._cursor import Cursor
else:
    from barnabas.client._ready import Ready

COMPILED: bool = cython.compiled


@cython.cclass
class Tap:
    """What users draw messages from; the rest of a consumer is built on it.

    `is_disturbed` says that something goes before further messages: a rebalance, a callback to
    call, the end. `polls` counts, so that others can see that the user is still there.
    """

    def __init__(self) -> None:
        self.cursor = None
        self.is_disturbed = False
        self.polls = 0

    def draw(self, limit: cython.Py_ssize_t) -> list:
        """The messages of the cursor, `limit` at most."""
        messages: list = []
        message: Message
        cursor: Cursor = self.cursor
        self.polls += 1
        if cursor is None or self.is_disturbed:
            return messages
        while len(messages) < limit:
            message = cursor.next()
            if message is None:
                break
            messages.append(message)
        return messages


@cython.cclass
class PlainTap(Tap):
    """For a user who waits in his own thread."""

    def poll(self, timeout: object = -1) -> object:
        """The next message, or None if none comes within `timeout` seconds (-1: however long).

        Callbacks are called in here. A message whose `error()` is not None tells of an error.
        """
        message: Message
        self.polls += 1
        if self.cursor is not None and not self.is_disturbed:
            message = self.cursor.next()
            if message is not None:
                return message
        return self._poll(timeout)

    def _poll(self, timeout: object) -> object:
        raise NotImplementedError


@cython.cclass
class AioTap(Tap):
    """For a user on the loop: what is there already is awaited without a turn of the loop."""

    def poll(self, timeout: object = -1) -> object:
        """The next message, or None if none comes within `timeout` seconds (-1: however long).

        Callbacks are called in here. A message whose `error()` is not None tells of an error.
        """
        message: Message
        self.polls += 1
        if self.cursor is not None and not self.is_disturbed:
            message = self.cursor.next()
            if message is not None:
                return Ready(message)
        return self._poll(timeout)

    def __aiter__(self) -> object:
        return self

    def __anext__(self) -> object:
        message: Message
        self.polls += 1
        if self.cursor is not None and not self.is_disturbed:
            message = self.cursor.next()
            if message is not None:
                return Ready(message)
        return self._next()

    def _poll(self, timeout: object) -> object:
        raise NotImplementedError

    def _next(self) -> object:
        raise NotImplementedError
