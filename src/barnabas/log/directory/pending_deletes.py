"""Files and folders that have been renamed away and are removed after a while.

A reader may still be on its way to a file by name; whoever has it open already keeps it.
"""

import os
import shutil
from collections.abc import Iterable, Sequence
from contextlib import suppress


class PendingDeletes:
    """Waits with each until it is due; the waiting begins with the first look at it."""

    __slots__ = ("_due", "_new")

    def __init__(self) -> None:
        self._new: list[tuple[str, int]] = []  # path, delay
        self._due: list[tuple[int, str]] = []

    def __len__(self) -> int:
        return len(self._new) + len(self._due)

    def add(self, paths: Iterable[str], delay_ms: int) -> None:
        self._new += [(path, delay_ms) for path in paths]

    def take_due(self, now_ms: int) -> list[str]:
        """What may be removed now, and is forgotten here."""
        self._due += [(now_ms + delay_ms, path) for path, delay_ms in self._new]
        self._new.clear()
        due = [path for due_ms, path in self._due if due_ms <= now_ms]
        self._due = [(due_ms, path) for due_ms, path in self._due if due_ms > now_ms]
        return due


class DueDeletes:
    """Paths to remove, which takes as long as the file system does: a thread is the place."""

    __slots__ = ("_paths",)

    def __init__(self, paths: Sequence[str]) -> None:
        self._paths = paths

    def __len__(self) -> int:
        return len(self._paths)

    def run(self) -> None:
        for path in self._paths:
            with suppress(FileNotFoundError):
                if os.path.isdir(path):
                    shutil.rmtree(path)
                else:
                    os.unlink(path)
