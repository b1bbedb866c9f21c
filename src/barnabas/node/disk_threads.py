"""A few threads for work that blocks on the disk and releases the GIL."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")

THREADS = 4


class DiskThreads:
    """Runs blocking work in threads and reports its end on the loop."""

    __slots__ = ("_executor", "_loop", "_pending")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._executor = ThreadPoolExecutor(THREADS, thread_name_prefix="disk")
        self._pending: set[asyncio.Future[object]] = set()

    def run(
        self, work: Callable[[], object], on_done: Callable[[BaseException | None], None]
    ) -> None:
        """Runs `work` in a thread, then calls `on_done` on the loop with the exception, if any."""
        future = self._loop.run_in_executor(self._executor, work)
        self._pending.add(future)

        def ended(future: asyncio.Future[object]) -> None:
            self._pending.discard(future)
            on_done(future.exception())

        future.add_done_callback(ended)

    async def call(self, work: Callable[[], T]) -> T:
        """Runs `work` in a thread and returns its result."""
        return await self._loop.run_in_executor(self._executor, work)

    async def close(self) -> None:
        """Waits for running work to end."""
        while self._pending:
            await asyncio.wait(self._pending)
        self._executor.shutdown()
