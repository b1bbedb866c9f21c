# What other compiled files use of `_loops.py`: walks through the records of batches.


cdef class Walk:
    cdef const unsigned char[::1] records
    cdef public int left  # records of the batch that are still ahead
    cdef int count
    cdef Py_ssize_t before  # where the record begins that the last step led to
    cdef readonly Py_ssize_t position
    cdef readonly Py_ssize_t end
    cdef readonly long long base_offset
    cdef readonly long long base_timestamp
    cdef readonly bint is_stamped  # all records have the one timestamp of the batch
    cdef readonly long long offset
    cdef readonly long long timestamp
    cdef Py_ssize_t key_at
    cdef long long key_size
    cdef Py_ssize_t value_at
    cdef long long value_size
    cdef Py_ssize_t headers_at
    cdef long long header_count

    cpdef bint begin(
        self,
        Py_ssize_t start,
        Py_ssize_t end,
        int count,
        long long base_offset,
        long long base_timestamp,
        bint is_stamped,
        long long append_time,
    ) except -1
    cpdef bint step(self) except -1
    cpdef bint step_back(self) except -1
    cpdef object key(self)
    cpdef object value(self)
    cpdef object headers(self)


cdef class RecordWalk:
    cdef long long max_timestamp
    cdef int malformed
    cdef int keyless
    cdef int untimely

    cdef void check(
        self,
        const unsigned char* data,
        Py_ssize_t end,
        int count,
        long long base_timestamp,
        long long earliest,
        long long latest,
    ) noexcept nogil
