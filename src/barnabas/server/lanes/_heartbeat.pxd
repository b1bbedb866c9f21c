# The fields of `_heartbeat.py`.

from barnabas.server.lanes._lane cimport Lane, LaneRequest
from barnabas.wire._cursor cimport Cursor, Sink


cdef class HeartbeatLane(Lane):
    cdef object broker
    cdef object errors  # by code


cdef class ConsumerHeartbeatLane(Lane):
    cdef object broker
    cdef object errors  # by code

    cdef bint is_unchanged(self, LaneRequest request) except -1
    cdef respond(self, Sink sink, str member_id, int epoch, int interval_ms)
