"""A client: it sends requests, waits, may be paused, and may crash at any time."""

import asyncio
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

from tests.simulation.coordinator.events import Ended

from barnabas.wire.errors import ErrorCode
from barnabas.wire.schema import Message

if TYPE_CHECKING:
    from tests.simulation.coordinator.world import CoordinatorWorld

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
"""Retriable errors of a coordinator."""


class Client:
    """The base of all clients. `run` is what the client does."""

    def __init__(self, world: "CoordinatorWorld", name: str) -> None:
        self.world = world
        self.name = name
        self.is_alive = False
        self.paused_until_ms = 0
        self._tasks: set[asyncio.Task[None]] = set()

    def __repr__(self) -> str:
        return self.name

    async def run(self) -> None:
        raise NotImplementedError

    def start(self) -> None:
        self.is_alive = True
        self.world.events.note(self.name, f"starts: {self.describe()}")
        self.spawn(self._run())

    def describe(self) -> str:
        return type(self).__name__

    def crash(self) -> None:
        """Ends the client at any point of its work."""
        self._end("crashes")

    def pause(self, delay_ms: int) -> None:
        """The client does nothing for a while."""
        self.paused_until_ms = self.now_ms + delay_ms
        self.note(f"is paused for {delay_ms} ms")

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Starts a task that ends with the client."""
        task = self.world.loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    # For subclasses

    @property
    def now_ms(self) -> int:
        return self.world.loop.now_ms

    async def send_request(
        self,
        request: Message,
        version: int,
        *,
        timeout_ms: int = REQUEST_TIMEOUT_MS,
        may_arrive_late: bool = False,
    ) -> Any:
        """Returns the response. Raises Unreachable if there is none.

        With `may_arrive_late`, the broker may receive a request that the client has abandoned.
        """
        try:
            return await self.world.network.send_request(
                self, request, version, timeout_ms, may_arrive_late
            )
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

    def _end(self, reason: str) -> None:
        if self.is_alive:
            self.is_alive = False
            self.world.events.record(Ended(self, reason))
            for task in list(self._tasks):
                task.cancel()

    async def _run(self) -> None:
        try:
            await self.run()
        finally:
            self._end("stops")

    def _done(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            self.world.events.fail(task.exception())  # a bug of the simulation
