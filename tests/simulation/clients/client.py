"""A client as a process: it asks, waits, may stand still for a while, and may crash anytime."""

import asyncio
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

from tests.simulation.events import Ended

from barnabas.wire.errors import ErrorCode
from barnabas.wire.schema import Message

if TYPE_CHECKING:
    from tests.simulation.world import World

REQUEST_TIMEOUT_MS = 3_000
BACKOFF_MS = 100

COORDINATOR_ERRORS = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.REQUEST_TIMED_OUT,
    }
)
"""Try again later."""


class Client:
    """What all clients have in common. `live` is what each of them does."""

    def __init__(self, world: "World", name: str) -> None:
        self.world = world
        self.name = name
        self.is_alive = False
        self.paused_until_ms = 0
        self._tasks: set[asyncio.Task[None]] = set()

    def __repr__(self) -> str:
        return self.name

    async def live(self) -> None:
        raise NotImplementedError

    def start(self) -> None:
        self.is_alive = True
        self.world.events.note(self.name, f"starts: {self.describe()}")
        self.spawn(self._live())

    def describe(self) -> str:
        return type(self).__name__

    def crash(self) -> None:
        """Gone, in the midst of whatever it does."""
        self._end("crashes")

    def pause(self, delay_ms: int) -> None:
        """Do nothing and notice nothing for a while."""
        self.paused_until_ms = self.now_ms + delay_ms
        self.note(f"stands still for {delay_ms} ms")

    def spawn(self, doing: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Something it does beside."""
        task = self.world.loop.create_task(doing)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    # What it does

    @property
    def now_ms(self) -> int:
        return self.world.loop.now_ms

    async def ask(
        self,
        request: Message,
        version: int,
        *,
        timeout_ms: int = REQUEST_TIMEOUT_MS,
        haunts: bool = False,
    ) -> Any:
        """The answer; Unreachable if there is none. With `haunts`, what is given up may still
        arrive at the node."""
        try:
            return await self.world.network.ask(self, request, version, timeout_ms, haunts)
        finally:
            if self.now_ms < self.paused_until_ms:
                await self.sleep(0)

    async def sleep(self, delay_ms: int) -> None:
        await asyncio.sleep(delay_ms / 1000)
        while self.now_ms < self.paused_until_ms:
            await asyncio.sleep((self.paused_until_ms - self.now_ms) / 1000)

    async def back_off(self) -> None:
        await self.sleep(BACKOFF_MS + self.world.random.randint(0, BACKOFF_MS))

    def chance(self, probability: float) -> bool:
        return self.world.random.random() < probability

    def between(self, low: int, high: int) -> int:
        return self.world.random.randint(low, high)

    def note(self, text: str) -> None:
        self.world.events.note(self.name, text)

    def _end(self, how: str) -> None:
        if self.is_alive:
            self.is_alive = False
            self.world.events.tell(Ended(self, how))
            for task in list(self._tasks):
                task.cancel()

    async def _live(self) -> None:
        try:
            await self.live()
        finally:
            self._end("stops")

    def _done(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            self.world.events.fail(task.exception())  # a fault of the simulation itself
