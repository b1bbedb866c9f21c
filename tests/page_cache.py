"""Files that are not in the page cache, or in part."""

import os
from pathlib import Path

import pytest

from barnabas.log.segments.page_cache import load
from barnabas.log.segments.resident_pages import count_resident

_ATTEMPTS = 20


def evict(path: Path, *, but_for_bytes: int = 0) -> None:
    """Removes a file from the page cache, but for its first bytes.

    Skips the test if the file system keeps the file.
    """
    fd = os.open(path, os.O_RDWR)
    try:
        for _ in range(_ATTEMPTS):
            os.fsync(fd)  # only pages that are on disk can be evicted
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
            if not count_resident(fd, 0, 1):
                break
        else:
            pytest.skip(f"the file system of {path} keeps files in memory, as tmpfs does")
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_RANDOM)  # no readahead
        load(fd, 0, but_for_bytes)
    finally:
        os.close(fd)
