"""Reading files without waiting for the disk, and loading them into the page cache.

The event loop must not wait for a disk: one reader of old records would delay every other client.
So it reads what the page cache has. If something is missing, it gets a `ColdRead`, has a thread
run its `load`, and reads again.

The kernel says whether a page is in memory: a read with RWF_NOWAIT fails instead of waiting. Some
file systems do not support the flag (overlay, NFS, tmpfs), and some kernels and sandboxes not the
system call. There `mincore` says it, for about ten microseconds more a read.
"""

import errno
import os
from collections.abc import Callable
from contextlib import suppress
from os import RWF_NOWAIT, preadv
from typing import TypeAlias

LOAD_BYTES = 2 << 20
"""How much is loaded at a time. Readers mostly continue, so it is more than what is missing."""

SAMPLE_BYTES = 256 << 10
"""The distance of the pages that are looked at. The kernel reads and evicts pages in runs."""

PositionalRead: TypeAlias = Callable[[int, int, int], bytes | bytearray]
"""The signature of `os.pread`: descriptor, count, position."""

_UNSUPPORTED = (errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL, errno.EPERM)
"""How a read with RWF_NOWAIT fails where it does not exist or is not allowed."""

_sample = (bytearray(1),)


class ColdRead(Exception):  # noqa: N818 - not an error, the read is repeated
    """A read would have to wait for the disk. Run `load` in a thread, then repeat the read."""

    def __init__(self, load: Callable[[], None]) -> None:
        super().__init__("the bytes are not in the page cache")
        self.load = load


class NotCached(Exception):  # noqa: N818 - internal, turned into a ColdRead
    """The byte at `position` is not in the page cache."""

    def __init__(self, position: int) -> None:
        super().__init__(f"byte {position} is not in the page cache")
        self.position = position


def pread_cached(fd: int, count: int, position: int) -> bytes | bytearray:
    """Reads as `os.pread` does, but raises NotCached instead of waiting for the disk."""
    content = bytearray(count)
    try:
        size = preadv(fd, (content,), position, RWF_NOWAIT)
        if size == count:
            return content
    except BlockingIOError:
        raise NotCached(position) from None
    except OSError as error:
        if error.errno not in _UNSUPPORTED:
            raise
        resident = _count_resident(fd, position, count)
        if resident < count:
            raise NotCached(position + resident) from None
        return os.pread(fd, count, position)
    # The file ends here, or the next page is missing.
    rest = pread_cached(fd, count - size, position + size) if size else b""
    return content[:size] + rest


def read_cached_into(fd: int, view: memoryview, position: int) -> bool:
    """Fills a buffer with bytes of a file.

    Returns False if they cannot be read now, or not without waiting for the disk.
    """
    try:
        return preadv(fd, (view,), position, RWF_NOWAIT) == len(view)
    except OSError as error:
        if error.errno not in _UNSUPPORTED or _count_resident(fd, position, len(view)) < len(view):
            return False
    with suppress(OSError):
        return os.preadv(fd, (view,), position) == len(view)
    return False


def count_cached(fd: int, position: int, count: int) -> int:
    """Returns how many of `count` bytes from `position` on the page cache has, by samples."""
    at, last = position, position + count - 1
    cached = 0
    try:
        while preadv(fd, _sample, at, RWF_NOWAIT) and at < last:
            cached = at - position
            at = min(at + SAMPLE_BYTES, last)
    except BlockingIOError:
        return cached
    except OSError as error:
        if error.errno not in _UNSUPPORTED:
            raise
        return _count_resident(fd, position, count)
    return count


def load(fd: int, position: int, count: int = LOAD_BYTES) -> None:
    """Reads a range, or what exists of it, into the page cache.

    It is sent to /dev/null: that waits for the disk, and copies nothing.
    """
    end = position + count
    null = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
    try:
        while position < end and (sent := os.sendfile(null, fd, position, end - position)):
            position += sent
    finally:
        os.close(null)


def load_file(path: str) -> None:
    """Reads a whole file into the page cache, if it exists."""
    with suppress(FileNotFoundError):
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            load(fd, 0, os.fstat(fd).st_size)
        finally:
            os.close(fd)


def _count_resident(fd: int, position: int, count: int) -> int:
    # ctypes takes milliseconds to import, and most file systems do not need it.
    from barnabas.log.segments.resident_pages import count_resident

    return count_resident(fd, position, count)
