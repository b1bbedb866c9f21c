"""Runs a handler that awaits something, without creating a Task.

Most handlers return from their first step and are never suspended. A handler that awaits a future
is stepped again when that future is done, exactly as a Task would do it, at a fraction of the cost.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from barnabas.server.disk_reads import PendingRead
from barnabas.server.purgatory import DelayedOperation

HandlerCoroutine = Coroutine[Any, None, Any]

OnEnd = Callable[[Any, BaseException | None], None]
"""Called once, with the response or the exception of the handler."""


class SuspendedHandler:
    """A coroutine between two of its steps."""

    __slots__ = ("_awaited", "_coroutine", "_loop", "_on_end")

    def __init__(
        self,
        coroutine: HandlerCoroutine,
        awaited: object,
        on_end: OnEnd,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self._coroutine = coroutine
        self._on_end = on_end
        self._loop = loop
        self._wait_for(awaited)

    def abandon(self) -> None:
        """Called when the client, which waits for the response, disconnects.

        A delayed operation or a read is cancelled. Any other handler runs to its end: it may be in
        the middle of a change, and a lost connection never undoes a change.
        """
        if isinstance(self._awaited, DelayedOperation | PendingRead):
            self._awaited.cancel()

    def _step(self, _: object = None) -> None:
        self._advance(self._coroutine.send, None)

    def _advance(self, step: Callable[[Any], Any], argument: object) -> None:
        try:
            awaited = step(argument)
        except StopIteration as returned:
            self._on_end(returned.value, None)
        except (Exception, asyncio.CancelledError) as error:
            self._on_end(None, error)
        else:
            self._wait_for(awaited)

    def _wait_for(self, awaited: Any) -> None:
        self._awaited = awaited
        if awaited is None:  # a bare yield, as in asyncio.sleep(0)
            self._loop.call_soon(self._step)
        elif getattr(awaited, "_asyncio_future_blocking", False):
            # A future sets this flag when it is awaited, and not merely yielded.
            awaited._asyncio_future_blocking = False
            awaited.add_done_callback(self._step)
        else:
            self._advance(
                self._coroutine.throw,
                TypeError(f"a handler may await futures of its own loop, not {awaited!r}"),
            )
