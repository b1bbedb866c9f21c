# The fields of `_records.py`.

from barnabas.log.cleaner._indexes cimport SegmentIndexes
from barnabas.log.cleaner._offset_map cimport OffsetMap


cdef class FilteredBatch:
    cdef readonly object header
    cdef readonly bint is_changed
    cdef readonly Py_ssize_t end


cdef class BatchFilter:
    cdef OffsetMap offset_map
    cdef long long now_ms
    cdef long long new_horizon_ms  # of batches that get one now
    cdef const long long[::1] retained_offsets
    cdef long long end_offset
    cdef long long room_bytes  # what the last compressed batch needed
    cdef readonly long long messages_read
    cdef readonly long long messages_kept
    cdef readonly long long bytes_read
    cdef readonly long long bytes_kept
    cdef readonly long long invalid_records
    cdef readonly long long earliest_horizon_ms
