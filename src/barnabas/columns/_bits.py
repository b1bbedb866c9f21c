# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
"""Packs bytes to bits, for validity and booleans: compiled with C types, or run as Python."""

from __future__ import annotations

try:
    import cython

    if not cython.compiled:  # Cython's own stand-in for itself is many times slower than ours
        raise ImportError
except ImportError:
    from barnabas.wire.records import _uncompiled as cython

COMPILED: bool = cython.compiled


def pack_bits(flags: cython.const[cython.uchar][::1], count: cython.Py_ssize_t) -> bytearray:
    """Returns the first `count` bytes, which are 0 or 1, as Arrow's bits, lowest first."""
    if count > len(flags):
        raise ValueError("There are fewer bytes than bits.")
    bits = bytearray((count + 7) // 8)
    view: cython.uchar[::1] = bits
    index: cython.Py_ssize_t
    for index in range(count):
        view[index >> 3] |= flags[index] << (index & 7)
    return bits
