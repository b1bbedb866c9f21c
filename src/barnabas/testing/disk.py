"""A disk that is full when a test says so: its files take no more records, and give what they have.

The metadata log goes on, as if it was on another disk: a controller that cannot write ends.
"""

import errno
import os
from pathlib import Path
from types import TracebackType
from typing import Self

from barnabas.log import OpenFiles
from barnabas.log.segments.open_files import OpenFile
from barnabas.wire.records.batch import Readable

METADATA_FOLDER = "__cluster_metadata-0"


class Disk:
    """Whether there is space left, for all files of one broker."""

    def __init__(self) -> None:
        self.is_full = False
        self.refused = 0
        """How many writes found no space."""

    def files(self) -> OpenFiles:
        return _Files(self)


class FullDisk:
    """A disk without space, until it is healed or its `with` block ends."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._refused_before = disk.refused
        disk.is_full = True

    @property
    def fired(self) -> int:
        """How many writes were refused."""
        return self._disk.refused - self._refused_before

    def heal(self) -> None:
        self._disk.is_full = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, failure: object, trace: TracebackType | None
    ) -> None:
        self.heal()


class _Files(OpenFiles):
    __slots__ = ("_disk",)

    def __init__(self, disk: Disk) -> None:
        super().__init__()
        self._disk = disk

    def handle_of(self, path: str, fd: int) -> OpenFile:
        if Path(path).parent.name == METADATA_FOLDER:
            return OpenFile(fd)
        return _File(fd, self._disk)


class _File(OpenFile):
    __slots__ = ("_disk",)

    def __init__(self, fd: int, disk: Disk) -> None:
        super().__init__(fd)
        self._disk = disk

    def write(self, piece: Readable, position: int) -> int:
        if self._disk.is_full:
            self._disk.refused += 1
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return super().write(piece, position)
