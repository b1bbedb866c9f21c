# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
"""The index entries of a segment that compaction writes: compiled, or run as the Python they are.

In C, `data` is a pointer; in Python it is a bytearray. Both are indexed alike. The fields of the
classes are in `_indexes.pxd`.
"""

from __future__ import annotations

from barnabas.wire.records.batch import NO_TIMESTAMP

try:
    import cython

    if not cython.compiled:  # Cython's own stand-in for itself is many times slower than ours
        raise ImportError
except ImportError:
    from barnabas.wire.records import _uncompiled as cython

if cython.compiled:
    from cython.cimports.cpython.bytes import PyBytes_FromStringAndSize
    from cython.cimports.libc.stdlib import free, realloc

    Room = cython.typedef(cython.pointer[cython.uchar])
    Size = cython.typedef(cython.Py_ssize_t)
    Long = cython.typedef(cython.longlong)

COMPILED: bool = cython.compiled

_MAX_INT32 = cython.declare(cython.longlong, 0x7FFFFFFF)


@cython.final
@cython.cclass
class SegmentIndexes:
    """Builds the entries of `.index` and `.timeindex` while a segment is written.

    There is an entry for a batch once `index_interval_bytes` have passed since the entry before,
    as in `LogSegment`. The layout of entries is in `log/segments/index.py`.
    """

    def __init__(self, base_offset: int, index_interval_bytes: int) -> None:
        self.base_offset = base_offset
        self.next_offset = base_offset
        self.index_interval_bytes = index_interval_bytes
        self.size_bytes = 0
        self.unindexed_bytes = 0
        self.max_timestamp = NO_TIMESTAMP
        self.offset_of_max_timestamp = base_offset
        self.last_timestamp = NO_TIMESTAMP
        self.offsets = IndexEntries()
        self.times = IndexEntries()

    def has_space(self, size_bytes, last_offset):
        """Whether the segment can hold a batch: positions and relative offsets are int32."""
        return (
            size_bytes <= _MAX_INT32 - self.size_bytes
            and 0 <= last_offset - self.base_offset <= _MAX_INT32
        )

    def on_batch(self, size_bytes: Long, last_offset: Long, max_timestamp: Long) -> None:
        """Counts a batch that is written after the last one."""
        if not self.has_space(size_bytes, last_offset):
            raise ValueError(
                f"The segment at offset {self.base_offset} cannot hold the batch of {size_bytes} "
                f"bytes that ends at offset {last_offset}."
            )
        if not self.add_batch(size_bytes, last_offset, max_timestamp):
            raise MemoryError("There is no memory for the entries of an index.")

    def add_batch(self, size_bytes, last_offset, max_timestamp):
        """Counts a batch for which there is space; returns False if there is no memory."""
        if max_timestamp > self.max_timestamp:
            self.max_timestamp = max_timestamp
            self.offset_of_max_timestamp = last_offset
        if self.unindexed_bytes > self.index_interval_bytes:
            relative_offset: Long = last_offset - self.base_offset
            if not self.offsets.add(relative_offset, 4, self.size_bytes) or not self.add_time():
                return False
            self.unindexed_bytes = 0
        self.unindexed_bytes += size_bytes
        self.size_bytes += size_bytes
        self.next_offset = last_offset + 1
        return True

    def add_time(self):
        """Adds the largest timestamp so far, unless it is the one of the last entry."""
        if self.max_timestamp <= self.last_timestamp:
            return True
        self.last_timestamp = self.max_timestamp
        relative_offset: Long = self.offset_of_max_timestamp - self.base_offset
        return self.times.add(self.max_timestamp, 8, relative_offset)

    def take_offset_index(self) -> bytes:
        """Returns the entries of the offset index since the last call."""
        return self.offsets.take()

    def take_time_index(self, *, final: bool) -> bytes:
        """Returns the entries of the time index since the last call.

        The final ones include the largest timestamp of the segment.
        """
        if final and not self.add_time():
            raise MemoryError("There is no memory for the entries of an index.")
        return self.times.take()


@cython.final
@cython.cclass
class IndexEntries:
    """Encoded entries that are not taken yet."""

    def __init__(self) -> None:
        self.size = 0
        if not cython.compiled:
            self.data = bytearray()

    def __dealloc__(self):
        free(self.data)

    def add(self, first, first_size, second):
        """Adds an entry of an integer of that size and an int32; returns False without memory."""
        if not self.reserve(first_size + 4):
            return False
        _put_integer(self.data, self.size, first, first_size)
        _put_integer(self.data, self.size + first_size, second, 4)
        self.size += first_size + 4
        return True

    def reserve(self, size):
        """Makes space for `size` bytes; returns False if there is no memory."""
        if not cython.compiled:
            self.data += bytes(size)
            return True
        if size <= self.capacity - self.size:
            return True
        capacity: Size = 2 * self.capacity + 1024
        grown: Room = cython.cast(Room, realloc(self.data, capacity))
        if grown == cython.NULL:
            return False
        self.data = grown
        self.capacity = capacity
        return True

    def take(self):
        """Returns the entries and removes them."""
        size: Size = self.size
        self.size = 0
        if cython.compiled:
            return PyBytes_FromStringAndSize(cython.cast(cython.p_char, self.data), size)
        taken, self.data = bytes(self.data), bytearray()
        return taken


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _put_integer(data: Room, position: Size, value: Long, size: Size) -> cython.void:
    """Writes a big-endian integer of that size."""
    index: Size
    for index in range(size):
        data[position + index] = value >> 8 * (size - 1 - index) & 0xFF
