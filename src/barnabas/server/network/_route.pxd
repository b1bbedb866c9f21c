# The fields of `_route.py`, and what the pipeline calls.

from barnabas.server.lanes._lane cimport Lane
from barnabas.server.metrics._request_metrics cimport RequestMetrics
from barnabas.wire._cursor cimport Sink

cdef class Route:
    cdef readonly int key
    cdef readonly str name
    cdef readonly int version
    cdef public object handle
    cdef readonly object read
    cdef public Lane lane
    cdef readonly RequestMetrics metrics
    cdef readonly bint has_flexible_header
    cdef readonly bint has_flexible_response_header
    cdef readonly bint has_throttle_time
    cdef readonly object count_errors
    cdef object write

    cpdef encode(self, object response, int correlation_id, object out)


cpdef append_response(
    Sink sink, int correlation_id, bint has_flexible_response_header, object out
)
cdef append_header(
    object out, Py_ssize_t size, int correlation_id, bint has_flexible_response_header
)
cdef put_size(object out, Py_ssize_t start, Py_ssize_t size)
