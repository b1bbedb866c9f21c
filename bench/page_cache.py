"""Flushes files, and removes them from the page cache."""

import os
from pathlib import Path


def flush(folder: Path, *, evict: bool = False) -> None:
    """Flushes the files of a partition, and removes them from the page cache if `evict` is set."""
    for path in folder.iterdir():
        fd = os.open(path, os.O_RDONLY)
        try:
            os.fsync(fd)
            if evict:
                os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(fd)
