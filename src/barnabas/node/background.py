"""A few threads for work that blocks on the disk and releases the GIL."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")

THREADS = 4


class Threads:
    """Runs work off the loop and tells of its end on the loop."""

    __slots__ = ("_executor", "_loop", "_pending")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._executor = ThreadPoolExecutor(THREADS, thread_name_prefix="disk")
        self._pending: set[asyncio.Future[object]] = set()

    def run(self, work: Callable[[], object], done: Callable[[BaseException | None], None]) -> None:
        """Do `work` in a thread, then call `done` on the loop, with what was raised if anything."""
        future = self._loop.run_in_executor(self._executor, work)
        self._pending.add(future)

        def ended(future: asyncio.Future[object]) -> None:
            self._pending.discard(future)
            done(future.exception())

        future.add_done_callback(ended)

    async def call(self, work: Callable[[], T]) -> T:
        """Do `work` in a thread and wait for what it returns."""
        return await self._loop.run_in_executor(self._executor, work)

    async def close(self) -> None:
        """Wait for what is under way."""
        while self._pending:
            await asyncio.wait(self._pending)
        self._executor.shutdown()
