# cython: language_level=3
"""The fast path of `poll`. Compiled, or run as the Python it is.

While the current fetch has messages, `poll` is one step of it; the consumers, which are built on
pollers, do the rest. The fields are declared in `_poller.pxd`.
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
    """The base of the consumers: it delivers the messages of the current fetch.

    `has_events` says that a rebalance, a callback or the close goes before further messages.
    `poll_count` counts the calls, so that the core can see that the user still polls.
    """

    def __init__(self) -> None:
        self.current_fetch = None
        self.has_events = False
        self.poll_count = 0

    def take(self, limit: cython.Py_ssize_t) -> list:
        """Returns messages of the current fetch, `limit` at most."""
        messages: list = []
        message: Message
        fetch: CompletedFetch = self.current_fetch
        self.poll_count += 1
        if fetch is None or self.has_events:
            return messages
        while len(messages) < limit:
            message = fetch.next()
            if message is None:
                break
            messages.append(message)
        return messages


@cython.cclass
class SyncPoller(Poller):
    """For a user who waits in a thread."""

    def poll(self, timeout: object = -1) -> object:
        """Returns the next message, or None if none comes within `timeout` seconds.

        -1 waits as long as it takes. Callbacks run in this call. A message whose `error()` is not
        None has an error, or the end of a partition, and no record.
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
    """For a user on the event loop: a message that is there is awaited without suspending."""

    def poll(self, timeout: object = -1) -> object:
        """Returns the next message, or None if none comes within `timeout` seconds.

        -1 waits as long as it takes. Callbacks run in this call. A message whose `error()` is not
        None has an error, or the end of a partition, and no record.
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
