# The fields of `_indexes.py`, and what compiled modules call.


cdef class IndexEntries:
    cdef unsigned char* data
    cdef Py_ssize_t size
    cdef Py_ssize_t capacity

    cdef bint add(self, long long first, Py_ssize_t first_size, long long second) noexcept nogil
    cdef bint reserve(self, Py_ssize_t size) noexcept nogil
    cdef bytes take(self)


cdef class SegmentIndexes:
    cdef readonly long long base_offset
    cdef readonly long long size_bytes
    cdef readonly long long next_offset
    cdef readonly long long max_timestamp
    cdef readonly long long offset_of_max_timestamp
    cdef long long index_interval_bytes
    cdef long long unindexed_bytes
    cdef long long last_timestamp  # in the time index
    cdef IndexEntries offsets
    cdef IndexEntries times

    cpdef bint has_space(self, long long size_bytes, long long last_offset) noexcept nogil
    cdef bint add_batch(
        self, long long size_bytes, long long last_offset, long long max_timestamp
    ) noexcept nogil
    cdef bint add_time(self) noexcept nogil
