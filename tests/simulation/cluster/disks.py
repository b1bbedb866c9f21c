"""Disks that take their time, and forget at a power cut what was never synced.

Every change that a process makes to its files passes through here, and may be its last.
"""

import asyncio
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from random import Random
from typing import Any, TypeVar
from unittest.mock import patch

from tests.simulation.cluster.processes import process_at_work

T = TypeVar("T")

LOG_SUFFIX = ".log"
ZEROES = 0.3
"""How often a file is longer than what was written of it: the rest are zeroes."""


class Killed(BaseException):
    """The process ends here. No code of its own gets to see it."""


class Disk:
    """The disk of one host: how slow it is for now, and what of its files would survive."""

    def __init__(self, random: Random) -> None:
        self.writes_left: int | None = None
        """How often the process may still change a file before it is killed."""
        self.died: Callable[[], None] = lambda: None
        """Told when that was the last."""
        self.slow = 0.0
        """The chance of a piece of work to take long."""
        self.slow_ms = 300.0
        self.random = random
        self._synced: dict[str, int] = {}

    def write(self) -> None:
        """A file is about to be changed."""
        if self.writes_left is None:
            return
        self.writes_left -= 1
        if self.writes_left <= 0:
            self.writes_left = None
            self.died()
            raise Killed

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
        for path in sorted(folder.rglob(f"*{LOG_SUFFIX}")):
            size = path.stat().st_size
            safe = min(self._synced.get(str(path), 0), size)
            kept = self.random.choice((safe, self.random.randint(safe, size)))
            if kept < size:
                lost += size - kept
                os.truncate(path, kept)
                if self.random.random() < ZEROES:
                    os.truncate(path, self.random.randint(kept, size))
        return lost


class SimulatedThreads:
    """In the place of `barnabas.node.disk_threads.Threads`: the work is done a while later, and its
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


@contextmanager
def simulated_disks(disks: Mapping[str, Disk]) -> Iterator[None]:
    """All that is written and synced from here on concerns the disk of the host that does it."""

    def disk_at_work() -> Disk | None:
        process = process_at_work()
        return disks.get(process.host) if process is not None else None

    def changing(change: Callable[..., Any]) -> Callable[..., Any]:
        def change_and_count(*args: Any, **kwargs: Any) -> Any:
            disk = disk_at_work()
            if disk is not None:
                disk.write()
            return change(*args, **kwargs)

        return change_and_count

    def sync(fd: int) -> None:
        """A disk in memory has nothing to wait for."""
        path = _path_of(fd)
        disk = _disk_of(disks, path)
        if path.endswith(LOG_SUFFIX) and disk is not None:
            disk.synced(path, os.fstat(fd).st_size)

    def truncate(fd: int, size_bytes: int) -> None:
        os.truncate(fd, size_bytes)
        path = _path_of(fd)
        disk = _disk_of(disks, path)
        if disk is not None:
            disk.truncated(path, size_bytes)

    with ExitStack() as patches:
        for name, stand_in in (
            ("fsync", sync),
            ("fdatasync", sync),
            ("ftruncate", truncate),
            ("pwrite", os.pwrite),
            ("replace", os.replace),
        ):
            patches.enter_context(patch(f"os.{name}", changing(stand_in)))
        yield


def _disk_of(disks: Mapping[str, Disk], path: str) -> Disk | None:
    """Of the host whose folder it is in: clean stops sync in threads that are nobody's."""
    return next((disk for host, disk in disks.items() if f"/{host}/" in path), None)


def _path_of(fd: int) -> str:
    return str(Path(f"/proc/self/fd/{fd}").readlink())
