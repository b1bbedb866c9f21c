# The fields of `_offset_commit.py`.

from barnabas.server.lanes._lane cimport Lane, LaneRequest
from barnabas.wire._cursor cimport Cursor, Sink


cdef class OffsetCommitLane(Lane):
    cdef object broker
    cdef object errors  # by code
    cdef Sink entries  # the offsets of one topic, packed

    # Of the request
    cdef int version
    cdef bint is_flexible
    cdef long long now_ms
    cdef Py_ssize_t partition_count

    cdef bint look(self, LaneRequest request, object commit) except -1
    cdef bint look_at_topic(self, LaneRequest request, object commit) except -1
    cdef copy_topics(self, LaneRequest request, int code)
    cdef object copy_topic(self, Cursor cursor, Sink sink)
    cdef write_partition(self, Sink sink, int index, int code)
    cdef bint may_read(self, LaneRequest request, object resource) except -1
