# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
"""Reads the schema ids of a column of payloads: compiled with C types, or run as Python."""

from __future__ import annotations

try:
    import cython

    if not cython.compiled:  # Cython's own stand-in for itself is many times slower than ours
        raise ImportError
except ImportError:
    from barnabas.wire.records import _uncompiled as cython

COMPILED: bool = cython.compiled
NO_SCHEMA_ID = -1


def read_schema_ids(
    offsets: cython.const[cython.int][::1],
    content: cython.const[cython.uchar][::1],
    first: cython.Py_ssize_t,
    ids: cython.longlong[::1],
) -> None:
    """Fills `ids` from the payloads from `first` on."""
    index: cython.Py_ssize_t
    at: cython.Py_ssize_t
    count: cython.Py_ssize_t = len(ids)
    size: cython.Py_ssize_t = len(content)
    if count and (first < 0 or len(offsets) < first + count + 1):
        raise ValueError("There are fewer offsets than payloads.")
    for index in range(count):
        at = offsets[first + index]
        if (
            at < 0
            or offsets[first + index + 1] - at < 5
            or offsets[first + index + 1] > size
            or content[at] != 0
        ):
            ids[index] = -1
        else:
            ids[index] = (
                cython.cast(cython.longlong, content[at + 1]) << 24
                | content[at + 2] << 16
                | content[at + 3] << 8
                | content[at + 4]
            )
