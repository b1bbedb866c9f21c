# What C sees of `_batch.py`.


cdef class Batch:
    cdef str topic
    cdef int partition
    cdef bytearray buffer
    cdef Py_ssize_t size  # what is used of the buffer
    cdef Py_ssize_t charged  # what the accumulator counts for it
    cdef Py_ssize_t largest  # its largest record
    cdef int count
    cdef long long base_timestamp
    cdef long long max_timestamp
    cdef double opened_s
    cdef list messages  # of those records that want a report; until then their offset is their place
    cdef list callbacks
    cdef Py_ssize_t told  # so many reports have been made
    cdef bint is_closed  # its header is written

    cdef int append(
        self, bytes key, bytes value, long long timestamp, list headers, Py_ssize_t body
    )
    cdef int _make_room(self, Py_ssize_t more)
