# The fields of `_offset_map.py`, and what compiled modules call.


cdef class OffsetMap:
    cdef object memory
    cdef unsigned long long* table
    cdef long long slots
    cdef long long count
    cdef readonly long long limit
    cdef public long long latest_offset
    cdef unsigned long long[16] low_halves  # of the hashes of requested keys
    cdef unsigned long long[16] high_halves
    cdef unsigned long long lane0  # of the hash, before a key
    cdef unsigned long long lane1
    cdef unsigned long long lane2
    cdef unsigned long long lane3

    cdef void request(
        self, Py_ssize_t index, const unsigned char* data, Py_ssize_t position, long long size
    ) noexcept nogil
    cdef void prefetch(
        self, const unsigned char* data, Py_ssize_t position, long long size
    ) noexcept nogil
    cdef long long find(self, Py_ssize_t index) noexcept nogil
    cdef void put(self, Py_ssize_t index, long long offset) noexcept nogil
