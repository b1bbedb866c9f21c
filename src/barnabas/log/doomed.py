"""Files and folders that have been renamed away and are removed after a while.

A reader may still be on its way to a file by name; whoever has it open already keeps it.
"""

import os
import shutil
from collections.abc import Iterable
from contextlib import suppress


class Doomed:
    """Waits with each until it is due; the waiting begins with the first look at it."""

    __slots__ = ("_due", "_new")

    def __init__(self) -> None:
        self._new: list[tuple[str, int]] = []  # path, delay
        self._due: list[tuple[int, str]] = []

    def __len__(self) -> int:
        return len(self._new) + len(self._due)

    def add(self, paths: Iterable[str], delay_ms: int) -> None:
        self._new += [(path, delay_ms) for path in paths]

    def purge(self, now_ms: int) -> int:
        """Removes what is due; how many paths that were."""
        self._due += [(now_ms + delay_ms, path) for path, delay_ms in self._new]
        self._new.clear()
        due = [path for due_ms, path in self._due if due_ms <= now_ms]
        self._due = [(due_ms, path) for due_ms, path in self._due if due_ms > now_ms]
        for path in due:
            remove(path)
        return len(due)


def remove(path: str) -> None:
    with suppress(FileNotFoundError):
        if os.path.isdir(path):
            shutil.rmtree(path)
        else:
            os.unlink(path)
