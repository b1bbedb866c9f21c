"""Directories that live as long as this process, and do not outlive its crash for long.

Each has a file that the process keeps locked. The next process removes those that nobody has
locked: unlike a process id, a lock is also right across containers that share a file system.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
import time
import weakref
from pathlib import Path

MEMORY = Path("/dev/shm")
_PREFIX = "barnabas-"
_LOCK_FILE = "lock"
_CREATION_TIME_S = 60.0
"""After which a directory without a lock file belongs to a process that died."""


def fast_folder() -> Path:
    """Returns a folder in memory if there is one, or else the usual one for temporary files."""
    if MEMORY.is_dir() and os.access(MEMORY, os.W_OK | os.X_OK):
        return MEMORY
    return Path(tempfile.gettempdir())


class LockedDirectory:
    """A new private directory, which is removed by `remove` or when the process ends."""

    def __init__(self, purpose: str, folder: Path) -> None:
        remove_stale(purpose, folder)
        self.path, self._lock = _create(f"{_PREFIX}{purpose}-", folder)
        self._finalizer = weakref.finalize(self, _remove, self.path, self._lock)

    def remove(self) -> None:
        """Remove it with all of its content. It may be called again."""
        self._finalizer()


def remove_stale(purpose: str, folder: Path) -> None:
    """Remove the directories of processes that have died."""
    for path in folder.glob(f"{_PREFIX}{purpose}-*"):
        with contextlib.suppress(OSError):
            if path.stat().st_uid == os.getuid():
                _remove_if_stale(path)


def _create(prefix: str, folder: Path) -> tuple[Path, int]:
    while True:
        path = Path(tempfile.mkdtemp(prefix=prefix, dir=folder))
        try:
            lock = os.open(path / _LOCK_FILE, os.O_CREAT | os.O_RDWR, 0o600)
        except FileNotFoundError:
            continue
        if _try_lock(lock) and (path / _LOCK_FILE).exists():
            return path, lock
        os.close(lock)  # another process took it for stale before it was locked


def _remove_if_stale(path: Path) -> None:
    try:
        lock = os.open(path / _LOCK_FILE, os.O_RDWR)
    except FileNotFoundError:
        if time.time() - path.stat().st_mtime > _CREATION_TIME_S:
            shutil.rmtree(path, ignore_errors=True)
        return
    if _try_lock(lock):
        _remove(path, lock)
    else:
        os.close(lock)


def _try_lock(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _remove(path: Path, lock: int) -> None:
    shutil.rmtree(path, ignore_errors=True)
    os.close(lock)
