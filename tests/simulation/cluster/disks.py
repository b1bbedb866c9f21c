"""Disks that take their time, and forget at a power cut what was never synced."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any, TypeVar

T = TypeVar("T")

LOG_FILES = "*.log"


class Disk:
    """The disk of one host: how slow it is for now, and what of its files would survive."""

    def __init__(self, random: Random) -> None:
        self.slow = 0.0
        """The chance of a piece of work to take long."""
        self.slow_ms = 300.0
        self.random = random
        self._synced: dict[str, int] = {}

    def delay_s(self) -> float:
        longest_ms = self.slow_ms if self.random.random() < self.slow else 3.0
        return self.random.random() * longest_ms / 1000

    def synced(self, path: str, size_bytes: int) -> None:
        self._synced[path] = size_bytes

    def truncated(self, path: str, size_bytes: int) -> None:
        if self._synced.get(path, 0) > size_bytes:
            self._synced[path] = size_bytes

    def lose_power(self, folder: Path) -> int:
        """Cut every log somewhere between what is safe and what was written; bytes lost."""
        lost = 0
        for path in sorted(folder.rglob(LOG_FILES)):
            size = path.stat().st_size
            safe = min(self._synced.get(str(path), 0), size)
            kept = self.random.choice((safe, self.random.randint(safe, size)))
            if kept < size:
                lost += size - kept
                os.truncate(path, kept)
        return lost


class SimulatedThreads:
    """In the place of `barnabas.node.background.Threads`: the work is done a while later, and its
    end is told another while later."""

    def __init__(self, loop: asyncio.AbstractEventLoop, disk: Disk) -> None:
        self._loop = loop
        self._disk = disk
        self._pending: set[asyncio.Future[Any]] = set()

    def run(self, work: Callable[[], object], done: Callable[[BaseException | None], None]) -> None:
        future = self._begin(work)
        future.add_done_callback(lambda future: done(future.exception()))

    async def call(self, work: Callable[[], T]) -> T:
        result: T = await self._begin(work)
        return result

    async def close(self) -> None:
        while self._pending:
            await asyncio.wait(self._pending)

    def _begin(self, work: Callable[[], object]) -> "asyncio.Future[Any]":
        future: asyncio.Future[Any] = self._loop.create_future()
        self._pending.add(future)
        future.add_done_callback(self._pending.discard)
        self._loop.call_later(self._disk.delay_s(), self._do, work, future)
        return future

    def _do(self, work: Callable[[], object], future: "asyncio.Future[Any]") -> None:
        try:
            result = work()
        except Exception as failure:
            self._loop.call_later(self._disk.delay_s(), future.set_exception, failure)
        else:
            self._loop.call_later(self._disk.delay_s(), future.set_result, result)
