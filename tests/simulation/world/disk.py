"""Simulated disks: slow, and without the bytes that were not synced after a power loss.

Every change that a process makes to its files goes through here, and may be its last one.
"""

import asyncio
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from random import Random
from typing import Any, TypeVar
from unittest.mock import patch

from tests.simulation.world.clock import Latency
from tests.simulation.world.process import current_process_or_none

T = TypeVar("T")

LOG_SUFFIX = ".log"
ZEROES_CHANCE = 0.3
"""How often a file is longer than the bytes that survived: the rest are zeroes."""


class Killed(BaseException):
    """The process ends here. No code of the process may catch it."""


class SimulatedDisk:
    """The disk of one host: its latency, and the part of its files that survives a power loss."""

    def __init__(self, random: Random) -> None:
        self.writes_left: int | None = None
        """How many more changes of files the process makes before it is killed."""
        self.on_killed: Callable[[], None] = lambda: None
        """Called at the last of these changes."""
        self.latency = Latency(slow_ms=300.0)
        self.random = random
        self._synced: dict[str, int] = {}

    def on_write(self) -> None:
        """A file is about to be changed. Raises Killed if the process must not change it."""
        if self.writes_left is None:
            return
        self.writes_left -= 1
        if self.writes_left <= 0:
            self.writes_left = None
            self.on_killed()
            raise Killed

    def draw_latency_s(self) -> float:
        return self.latency.draw_s(self.random)

    def on_synced(self, path: str, size_bytes: int) -> None:
        self._synced[path] = size_bytes

    def on_truncated(self, path: str, size_bytes: int) -> None:
        if self._synced.get(path, 0) > size_bytes:
            self._synced[path] = size_bytes

    def lose_power(self, folder: Path) -> int:
        """Truncates every log between its synced and its written size. Returns the bytes lost."""
        lost = 0
        for path in sorted(folder.rglob(f"*{LOG_SUFFIX}")):
            size = path.stat().st_size
            synced = min(self._synced.get(str(path), 0), size)
            survived = self.random.choice((synced, self.random.randint(synced, size)))
            if survived < size:
                lost += size - survived
                os.truncate(path, survived)
                if self.random.random() < ZEROES_CHANCE:
                    os.truncate(path, self.random.randint(survived, size))
        return lost


class SimulatedDiskThreads:
    """Stands in for `barnabas.node.environment.DiskThreads`.

    The work is done after the latency of the disk, and completes after it once more.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, disk: SimulatedDisk) -> None:
        self._loop = loop
        self._disk = disk
        self._pending: set[asyncio.Future[Any]] = set()

    def run(self, work: Callable[[], object], done: Callable[[BaseException | None], None]) -> None:
        future = self._start(work)
        future.add_done_callback(lambda future: done(future.exception()))

    async def call(self, work: Callable[[], T]) -> T:
        result: T = await self._start(work)
        return result

    async def close(self) -> None:
        while self._pending:
            await asyncio.wait(self._pending)

    def _start(self, work: Callable[[], object]) -> "asyncio.Future[Any]":
        future: asyncio.Future[Any] = self._loop.create_future()
        self._pending.add(future)
        future.add_done_callback(self._pending.discard)
        self._loop.call_later(self._disk.draw_latency_s(), self._run, work, future)
        return future

    def _run(self, work: Callable[[], object], future: "asyncio.Future[Any]") -> None:
        try:
            result = work()
        except Exception as failure:
            self._loop.call_later(self._disk.draw_latency_s(), future.set_exception, failure)
        else:
            self._loop.call_later(self._disk.draw_latency_s(), future.set_result, result)


class InlineDiskThreads:
    """Stands in for `barnabas.node.environment.DiskThreads`: the work is done at once."""

    def run(self, work: Callable[[], object], done: Callable[[BaseException | None], None]) -> None:
        work()
        done(None)


@contextmanager
def simulated_disks(disks: Mapping[str, SimulatedDisk]) -> Iterator[None]:
    """Writes and syncs inside the context use the disk of the host of the current process."""

    def current_disk() -> SimulatedDisk | None:
        process = current_process_or_none()
        return disks.get(process.host) if process is not None else None

    def counted(change: Callable[..., Any]) -> Callable[..., Any]:
        def count_and_change(*args: Any, **kwargs: Any) -> Any:
            disk = current_disk()
            if disk is not None:
                disk.on_write()
            return change(*args, **kwargs)

        return count_and_change

    def sync(fd: int) -> None:
        """The files are in memory: there is nothing to wait for."""
        path = _path_of(fd)
        disk = _disk_of(disks, path)
        if path.endswith(LOG_SUFFIX) and disk is not None:
            disk.on_synced(path, os.fstat(fd).st_size)

    def truncate(fd: int, size_bytes: int) -> None:
        os.truncate(fd, size_bytes)
        path = _path_of(fd)
        disk = _disk_of(disks, path)
        if disk is not None:
            disk.on_truncated(path, size_bytes)

    with ExitStack() as patches:
        for name, stand_in in (
            ("fsync", sync),
            ("fdatasync", sync),
            ("ftruncate", truncate),
            ("pwrite", os.pwrite),
            ("replace", os.replace),
        ):
            patches.enter_context(patch(f"os.{name}", counted(stand_in)))
        yield


def _disk_of(disks: Mapping[str, SimulatedDisk], path: str) -> SimulatedDisk | None:
    """Returns the disk of the host with that folder; a clean shutdown syncs in no process."""
    return next((disk for host, disk in disks.items() if f"/{host}/" in path), None)


def _path_of(fd: int) -> str:
    return str(Path(f"/proc/self/fd/{fd}").readlink())
