"""The short ways of the requests that are sent most: from the frame to the response bytes."""
from barnabas.wire._cursor cimport Cursor, Sink


cdef class LaneRequest:
    cdef readonly Cursor cursor  # at the first field after the header
    cdef readonly Sink sink  # empty
    cdef public object connection
    cdef public object client_id
    cdef public object quotas  # RequestQuotas
    cdef public int key
    cdef public int version
    cdef public int correlation_id
    cdef public bint has_flexible_response_header  # Fetch and Produce v9+: tagged fields
    cdef public long long received_ms
    cdef public long long received_ns
    cdef public long long began_ns
    cdef public Py_ssize_t size_bytes
    cdef public Py_ssize_t throttle_at  # where the throttle time is in the sink
    cdef public bint is_exempt  # from the quota of request time

    cpdef context(self, object node)


cdef class Lane:
    cdef readonly object metrics

    cpdef int serve(self, LaneRequest request) except -1
