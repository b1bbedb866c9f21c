"""Simulated disks: slow, sometimes full, and without unsynced bytes after a power loss.

Every change that a process makes to its files goes through here, and may be its last one.
"""

import asyncio
import errno
import os
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
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
TORN_WRITE_CHANCE = 0.5
"""How often a process is killed in the middle of a write, and not before it."""


class Killed(BaseException):
    """The process ends here. No code of the process may catch it."""


class SimulatedDisk:
    """The disk of one host: its latency, its space, and what of its files survives a power loss.

    A file is known by its inode, so that it keeps its synced bytes under a new name.
    """

    def __init__(self, random: Random) -> None:
        self.writes_left: int | None = None
        """How many more changes of files the process makes before it is killed."""
        self.on_killed: Callable[[], None] = lambda: None
        """Called at the last of these changes."""
        self.is_full = False
        """Whether files can neither grow nor be created."""
        self.latency = Latency(slow_ms=300.0)
        self.random = random
        self.renames: Counter[str] = Counter()
        """How many files were renamed, by the suffix that they had."""
        self._armed: tuple[str, int] | None = None
        self._synced_bytes: dict[int, int] = {}
        """How many bytes of each file are on disk, by inode."""

    def is_last_write(self) -> bool:
        """A file is about to be changed. Returns whether the process is killed by then."""
        if self.writes_left is None:
            return False
        self.writes_left -= 1
        if self.writes_left > 0:
            return False
        self.writes_left = None
        self.on_killed()
        return True

    def kill_after_rename(self, suffix: str, writes: int) -> None:
        """Sets `writes_left` when the next file with that suffix is renamed."""
        self._armed = suffix, writes

    def disarm(self) -> None:
        """The process is not killed at a write any more."""
        self._armed = self.writes_left = None

    def on_rename(self, name: str) -> None:
        """A file is about to be renamed."""
        suffix = os.path.splitext(name)[1]  # noqa: PTH122 - a path object takes ten times as long
        self.renames[suffix] += 1
        if self._armed is not None and self._armed[0] == suffix:
            self.writes_left, self._armed = self._armed[1], None

    def require_space(self) -> None:
        if self.is_full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def draw_latency_s(self) -> float:
        return self.latency.draw_s(self.random)

    def synced_bytes(self, path: str | Path) -> int:
        """Returns how many bytes of a file survive a power loss for certain."""
        return self._synced_bytes.get(os.stat(path).st_ino, 0)  # noqa: PTH116

    def on_synced(self, status: os.stat_result) -> None:
        self._synced_bytes[status.st_ino] = status.st_size

    def on_truncated(self, status: os.stat_result) -> None:
        if self._synced_bytes.get(status.st_ino, 0) > status.st_size:
            self._synced_bytes[status.st_ino] = status.st_size

    def sync_all(self, folder: Path) -> None:
        """The files that are there now are on disk."""
        for path in folder.rglob("*"):
            self.on_synced(path.stat())

    def lose_power(self, folder: Path, *, in_order: Collection[str] = ()) -> int:
        """Truncates every file between its synced and its written size. Returns the bytes lost.

        The segments in folders with these names are written in order: after one that has lost bytes
        there is none.
        """
        lost_bytes = 0
        cut: dict[Path, str] = {}
        """The segment of a folder after which there is none."""
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            size_bytes, base_offset = path.stat().st_size, path.name.partition(".")[0]
            survived_bytes = self._lose_bytes(path, size_bytes)
            if base_offset.isdigit() and base_offset > cut.get(path.parent, base_offset):
                survived_bytes = 0
                path.unlink()
            is_cut = path.suffix == LOG_SUFFIX and survived_bytes < size_bytes
            if is_cut and path.parent.name in in_order:
                cut.setdefault(path.parent, base_offset)
            lost_bytes += size_bytes - survived_bytes
        return lost_bytes

    def _lose_bytes(self, path: Path, size_bytes: int) -> int:
        """Returns how many bytes survived. The file may be longer, with zeroes after these."""
        synced_bytes = min(self.synced_bytes(path), size_bytes)
        if synced_bytes == size_bytes:
            return size_bytes
        survived_bytes = self.random.choice(
            (synced_bytes, self.random.randint(synced_bytes, size_bytes))
        )
        os.truncate(path, survived_bytes)
        if self.random.random() < ZEROES_CHANCE:
            os.truncate(path, self.random.randint(survived_bytes, size_bytes))
        return survived_bytes


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
    with ExitStack() as patches:
        for name, stand_in in _stand_ins(disks).items():
            patches.enter_context(patch(f"os.{name}", stand_in))
        yield


def _stand_ins(disks: Mapping[str, SimulatedDisk]) -> dict[str, Callable[..., Any]]:
    """Returns what replaces the functions of `os` that change files, or yield to threads."""
    real_open, real_pwrite, real_rename = os.open, os.pwrite, os.rename

    def current_disk() -> SimulatedDisk | None:
        process = current_process_or_none()
        return disks.get(process.host) if process is not None else None

    def counted(change: Callable[..., Any]) -> Callable[..., Any]:
        """Kills the process before the change if its time has come."""

        def count_and_change(*args: Any, **kwargs: Any) -> Any:
            disk = current_disk()
            if disk is not None and disk.is_last_write():
                raise Killed
            return change(*args, **kwargs)

        return count_and_change

    def open_file(path: Any, flags: int, *args: Any, **kwargs: Any) -> int:
        disk = current_disk() if flags & os.O_CREAT else None
        if disk is not None:
            disk.require_space()
        return real_open(path, flags, *args, **kwargs)

    def pwrite(fd: int, content: Any, position: int) -> int:
        disk = current_disk()
        if disk is None:
            return real_pwrite(fd, content, position)
        disk.require_space()
        if disk.is_last_write():
            if disk.random.random() < TORN_WRITE_CHANCE:
                written_bytes = disk.random.randint(0, len(content))
                real_pwrite(fd, memoryview(content)[:written_bytes], position)
            raise Killed
        return real_pwrite(fd, content, position)

    def rename(source: Any, target: Any) -> None:
        disk = current_disk()
        if disk is not None:
            disk.on_rename(os.fspath(source))
            if disk.is_last_write():
                raise Killed
        real_rename(source, target)

    def sync(fd: int) -> None:
        """The files are in memory: there is nothing to wait for."""
        disk = current_disk() or _disk_of(disks, fd)
        if disk is not None:
            disk.on_synced(os.fstat(fd))

    def then_truncated(truncate: Callable[[Any, int], None]) -> Callable[[Any, int], None]:
        def truncate_file(file: Any, size_bytes: int) -> None:
            truncate(file, size_bytes)
            disk = current_disk()
            if disk is not None:
                disk.on_truncated(os.stat(file))  # noqa: PTH116 - a path or a descriptor

        return truncate_file

    return {
        "open": open_file,
        "pwrite": pwrite,
        "fsync": counted(sync),
        "fdatasync": counted(sync),
        "truncate": counted(then_truncated(os.truncate)),
        "ftruncate": counted(then_truncated(os.ftruncate)),
        "rename": rename,
        "replace": counted(os.replace),
        "unlink": counted(os.unlink),
        "sched_yield": lambda: None,  # there is no other thread that could run
    }


def _disk_of(disks: Mapping[str, SimulatedDisk], fd: int) -> SimulatedDisk | None:
    """Returns the disk of the host whose folder has the file: a clean shutdown syncs in no
    process."""
    path = str(Path(f"/proc/self/fd/{fd}").readlink())
    return next((disk for host, disk in disks.items() if f"/{host}/" in path), None)
