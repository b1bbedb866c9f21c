"""Drives a handler that could not answer at once, without making a Task of it.

Most handlers return from their first step and never come here. One that awaits a future is
stepped again when that future is done, exactly as a Task would do it, at a fraction of the cost.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from barnabas.server.purgatory import Parked

HandlerCoroutine = Coroutine[Any, None, Any]

Ended = Callable[[Any, BaseException | None], None]
"""Called once, with what the handler returned or with what it raised."""


class Suspended:
    """A coroutine between two of its steps."""

    __slots__ = ("_awaited", "_coroutine", "_ended", "_loop")

    def __init__(
        self,
        coroutine: HandlerCoroutine,
        awaited: object,
        ended: Ended,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self._coroutine = coroutine
        self._ended = ended
        self._loop = loop
        self._wait_for(awaited)

    def abandon(self) -> None:
        """Nobody wants the answer any more.

        A request that is merely parked is called off. Any other is left to run to its end: it
        may be half way through a change, and losing a connection never undoes one.
        """
        if isinstance(self._awaited, Parked):
            self._awaited.cancel()

    def _step(self, _: object = None) -> None:
        self._advance(self._coroutine.send, None)

    def _advance(self, step: Callable[[Any], Any], argument: object) -> None:
        try:
            awaited = step(argument)
        except StopIteration as returned:
            self._ended(returned.value, None)
        except (Exception, asyncio.CancelledError) as error:
            self._ended(None, error)
        else:
            self._wait_for(awaited)

    def _wait_for(self, awaited: Any) -> None:
        self._awaited = awaited
        if awaited is None:  # a bare yield, as in asyncio.sleep(0)
            self._loop.call_soon(self._step)
        elif getattr(awaited, "_asyncio_future_blocking", False):
            # The mark by which a future knows that it was awaited and not merely yielded.
            awaited._asyncio_future_blocking = False
            awaited.add_done_callback(self._step)
        else:
            self._advance(
                self._coroutine.throw,
                TypeError(f"a handler may await futures of its own loop, not {awaited!r}"),
            )
