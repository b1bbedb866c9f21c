"""Renamed files and folders of a log directory, which are removed later, or at the next start."""

import os
import re
import shutil
from collections.abc import Iterable, Sequence
from contextlib import suppress

from barnabas.log.recovery import remove_unneeded_files
from barnabas.log.segments.log_files import CLEANED, DELETED, list_log_files

DELETED_FOLDER = "-delete"

_DELETED_FOLDER = re.compile(rf".+\.[0-9a-f]{{32}}{DELETED_FOLDER}")
_PARTITION_FOLDER = re.compile(r".+-\d+")


class PendingDeletes:
    """Renamed files and folders, which are removed after `file.delete.delay.ms`.

    Until then a reader may still open the file by its path; a reader that has it open keeps it.
    The delay of each begins with the next call of `take_due`.
    """

    __slots__ = ("_due", "_new")

    def __init__(self) -> None:
        self._new: list[tuple[str, int]] = []  # path, delay
        self._due: list[tuple[int, str]] = []

    def add(self, paths: Iterable[str], delay_ms: int) -> None:
        self._new += [(path, delay_ms) for path in paths]

    def take_due(self, now_ms: int) -> list[str]:
        """Returns the paths that may be removed now, and forgets them."""
        self._due += [(now_ms + delay_ms, path) for path, delay_ms in self._new]
        self._new.clear()
        due = [path for due_ms, path in self._due if due_ms <= now_ms]
        self._due = [(due_ms, path) for due_ms, path in self._due if due_ms > now_ms]
        return due

    def take_all(self) -> list[str]:
        """Returns all paths, whatever their delay, and forgets them."""
        paths = [path for _, path in self._due] + [path for path, _ in self._new]
        self._due.clear()
        self._new.clear()
        return paths


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


def is_deleted_folder(name: str) -> bool:
    """Returns whether a folder of the directory is a log that was deleted."""
    return _DELETED_FOLDER.fullmatch(name) is not None


def remove_leftovers(directory: str, names: Iterable[str]) -> None:
    """Removes what the last process had renamed or begun, and did not remove.

    A broker whose disk is full needs this before it writes anything. It reads every folder; with
    enough space, each log removes its own leftovers when it is opened. A folder that cannot be
    read or changed stays as it is: opening its log raises the error.
    """
    for name in names:
        with suppress(OSError):
            _remove_leftover(f"{directory}/{name}", name)


def _remove_leftover(path: str, name: str) -> None:
    if is_deleted_folder(name):
        shutil.rmtree(path)
    elif _PARTITION_FOLDER.fullmatch(name) is not None and any(
        file.endswith((DELETED, CLEANED)) for file in os.listdir(path)
    ):
        remove_unneeded_files(path, list_log_files(path))
