"""Starts to write a file to disk, long before the fsync that waits for it."""

import ctypes
from collections.abc import Callable
from functools import cache
from typing import cast

_WRITE = 2  # SYNC_FILE_RANGE_WRITE: start, and do not wait

SyncFileRange = Callable[[int, int, int, int], int]


def start_writeback(fd: int, position: int, count: int) -> None:
    """Has the kernel write a range in the background, where it can.

    The fsync after it reports what fails.
    """
    sync_file_range = _sync_file_range()
    if sync_file_range is not None:
        sync_file_range(fd, position, count, _WRITE)


@cache
def _sync_file_range() -> SyncFileRange | None:
    """Returns Linux' system call, which Python's os module does not have."""
    function = getattr(ctypes.CDLL(None), "sync_file_range", None)
    if function is not None:
        function.argtypes = (ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint)
    return cast("SyncFileRange | None", function)
