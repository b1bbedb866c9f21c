# The fields of `_append.py`, and what compiled callers use.

from barnabas.log._append cimport LogEnd
from barnabas.wire.records._validation cimport ValidBatch


cdef class PartitionEnd:
    cdef public str topic
    cdef public int index
    cdef public object log  # Log
    cdef public object config  # TopicConfig
    cdef public object host  # PartitionHost
    cdef public object purgatory  # DelayedOperations
    cdef public object leader_state  # LeaderState | None
    cdef public long long high_watermark
    cdef public int leader_epoch
    cdef public bint is_leader
    cdef public bint is_under_min_isr
    cdef public long long flush_before_ack_offset

    cdef long long append_plain(self, ValidBatch batch, int acks, object now_ms) except? -2
    cpdef on_appended(self, long long first_offset, Py_ssize_t size_bytes, object now_ms)
    cdef bint is_plain_append_committed(self, long long next_offset, int acks) noexcept
