"""A disk that a test can fill: writes of records fail, reads work.

Writes of the metadata log still work, because a controller that cannot write stops.
"""

import errno
import os
from pathlib import Path
from types import TracebackType
from typing import Self

from barnabas.log import OpenFiles
from barnabas.log.segments.open_files import OpenFile
from barnabas.wire.records.batch import Readable

METADATA_DIRECTORY = "__cluster_metadata-0"


class FaultyDisk:
    """Whether the disk of a broker is full, and the number of failed writes."""

    def __init__(self) -> None:
        self.is_full = False
        self.failed_writes = 0
        """Writes that failed for lack of space."""

    def files(self) -> OpenFiles:
        return _FaultyFiles(self)


class FullDisk:
    """A full disk, until `heal` or the end of its `with` block."""

    def __init__(self, disk: FaultyDisk) -> None:
        self._disk = disk
        self._failed_before = disk.failed_writes
        disk.is_full = True

    @property
    def fired(self) -> int:
        """The number of writes that failed."""
        return self._disk.failed_writes - self._failed_before

    def heal(self) -> None:
        self._disk.is_full = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, failure: object, trace: TracebackType | None
    ) -> None:
        self.heal()


class _FaultyFiles(OpenFiles):
    __slots__ = ("_disk",)

    def __init__(self, disk: FaultyDisk) -> None:
        super().__init__()
        self._disk = disk

    def wrap_descriptor(self, path: str, fd: int) -> OpenFile:
        if Path(path).parent.name == METADATA_DIRECTORY:
            return OpenFile(fd)
        return _FaultyFile(fd, self._disk)


class _FaultyFile(OpenFile):
    __slots__ = ("_disk",)

    def __init__(self, fd: int, disk: FaultyDisk) -> None:
        super().__init__(fd)
        self._disk = disk

    def write(self, piece: Readable, position: int) -> int:
        if self._disk.is_full:
            self._disk.failed_writes += 1
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return super().write(piece, position)
