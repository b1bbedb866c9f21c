# The fields of `_completed_fetch.py`: C fields, so that a record costs little more than its bytes.

from barnabas.client._message cimport Message
from barnabas.wire.records._loops cimport Walk


cdef class ConsumerProgress:
    cdef readonly object topic
    cdef readonly int partition
    cdef public long long version
    cdef public long long live_version
    cdef public long long position
    cdef public int leader_epoch


cdef class CompletedFetch:
    cdef readonly ConsumerProgress progress
    cdef readonly long long version
    cdef readonly Py_ssize_t size_bytes
    cdef readonly long long record_count
    cdef readonly long long next_offset
    cdef object fetched
    cdef const unsigned char[::1] batches
    cdef Py_ssize_t at
    cdef long long fetch_offset
    cdef list aborted
    cdef set aborting
    cdef bint read_committed
    cdef bint check_crcs
    cdef Walk walk
    cdef Walk plain
    cdef object walked
    cdef object borrowed
    cdef bint is_lent
    cdef int epoch
    cdef int timestamp_type
    cdef long long batch_end_offset

    cpdef bint is_live(self)
    cpdef Message next(self)
    cdef bint _begin(self, object decompressor) except -1
    cdef bint _is_hidden(self, Py_ssize_t at, int attributes, long long last_offset) except -1
