"""Files and folders that were renamed and are removed after `file.delete.delay.ms`.

Until then a reader may still open the file by its path; a reader that has it open keeps it.
"""

import os
import shutil
from collections.abc import Iterable, Sequence
from contextlib import suppress


class PendingDeletes:
    """Paths to remove. The delay of each begins with the next call of `take_due`."""

    __slots__ = ("_due", "_new")

    def __init__(self) -> None:
        self._new: list[tuple[str, int]] = []  # path, delay
        self._due: list[tuple[int, str]] = []

    def __len__(self) -> int:
        return len(self._new) + len(self._due)

    def add(self, paths: Iterable[str], delay_ms: int) -> None:
        self._new += [(path, delay_ms) for path in paths]

    def take_due(self, now_ms: int) -> list[str]:
        """Returns the paths that may be removed now, and forgets them."""
        self._due += [(now_ms + delay_ms, path) for path, delay_ms in self._new]
        self._new.clear()
        due = [path for due_ms, path in self._due if due_ms <= now_ms]
        self._due = [(due_ms, path) for due_ms, path in self._due if due_ms > now_ms]
        return due


class DueDeletes:
    """Paths to remove, in a thread: the file system may take long."""

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
