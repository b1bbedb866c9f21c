"""Which pages of a file are in memory, by mapping it: slower than RWF_NOWAIT, but always there."""

import ctypes
import mmap
import os
from functools import cache


def count_resident(fd: int, position: int, count: int) -> int:
    """Returns how many of `count` bytes from `position` on are in memory before the first gap."""
    start = position - position % mmap.PAGESIZE
    length = position + count - start
    libc = _libc()
    address = libc.mmap(None, length, mmap.PROT_READ, mmap.MAP_SHARED, fd, start)
    if address == _MAP_FAILED:
        raise _last_error()
    states = ctypes.create_string_buffer(-(-length // mmap.PAGESIZE))
    try:
        if libc.mincore(address, length, states):
            raise _last_error()
    finally:
        libc.munmap(address, length)
    pages = next(
        (number for number, state in enumerate(states.raw) if not state & _RESIDENT), len(states)
    )
    return max(min(start + pages * mmap.PAGESIZE - position, count), 0)


@cache
def _libc() -> ctypes.CDLL:
    libc = ctypes.CDLL(None, use_errno=True)
    size, pointer = ctypes.c_size_t, ctypes.c_void_p
    libc.mmap.argtypes = (pointer, size, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_int64)
    libc.mmap.restype = pointer
    libc.munmap.argtypes = (pointer, size)
    libc.mincore.argtypes = (pointer, size, pointer)
    return libc


def _last_error() -> OSError:
    code = ctypes.get_errno()
    return OSError(code, os.strerror(code))


_RESIDENT = 1
_MAP_FAILED = ctypes.c_void_p(-1).value
