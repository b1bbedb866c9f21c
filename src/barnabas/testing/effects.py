"""What can befall a request, in place of its handler."""

import asyncio
from typing import Protocol

from barnabas.server.request_context import RequestContext
from barnabas.server.handlers import Handler
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.schema import Message


class Effect(Protocol):
    async def answer(
        self, handle: Handler, request: Message, call: RequestContext
    ) -> Message | None:
        """In place of the handler."""

    def let_go(self) -> None:
        """Answer now what is held back."""


class Refusal:
    """An error, and nothing is done."""

    def __init__(self, code: ErrorCode) -> None:
        self._code = code

    async def answer(
        self, handle: Handler, request: Message, call: RequestContext
    ) -> Message | None:
        raise KafkaError(self._code, "The test ordered it.")

    def let_go(self) -> None:
        """It was answered at once."""


class Delay:
    """The answer comes late. What a request refers to is gone after a wait; an answer can wait."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._held: set[asyncio.Future[None]] = set()

    async def answer(
        self, handle: Handler, request: Message, call: RequestContext
    ) -> Message | None:
        answer: Message | None = await handle(request, call)
        loop = asyncio.get_running_loop()
        passed: asyncio.Future[None] = loop.create_future()
        self._held.add(passed)
        timer = loop.call_later(self._seconds, _end, passed)
        try:
            await passed
        finally:
            timer.cancel()
            self._held.discard(passed)
        return answer

    def let_go(self) -> None:
        for passed in tuple(self._held):
            passed.get_loop().call_soon_threadsafe(_end, passed)


class Drop:
    """A closed connection, before the request is carried out or after it."""

    def __init__(self, *, after: bool) -> None:
        self._after = after

    async def answer(
        self, handle: Handler, request: Message, call: RequestContext
    ) -> Message | None:
        if self._after:
            await handle(request, call)
        call.connection.close()
        return None

    def let_go(self) -> None:
        """There is nobody to answer."""


def _end(passed: "asyncio.Future[None]") -> None:
    if not passed.done():
        passed.set_result(None)
