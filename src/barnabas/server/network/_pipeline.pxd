# The fields of `_pipeline.py`, and what connections call.

from barnabas.server.lanes._lane cimport Lane, LaneRequest
from barnabas.server.network._clock cimport ServerClock
from barnabas.server.network._route cimport Route


cdef class RequestSource:
    cdef public object responses  # ResponseQueue
    cdef public long long received_ms
    cdef public long long received_ns
    cdef str client_id
    cdef bytes client_id_bytes

    cdef str decode_client_id(self, const unsigned char* encoded, Py_ssize_t size)


cdef class RequestPipeline:
    cdef readonly ServerClock clock
    cdef public object quotas
    cdef object loop
    cdef object node
    cdef object routes
    cdef LaneRequest lane_request
    cdef int last_code
    cdef Route last_route

    cpdef handle(self, RequestSource source, object frame)
    cdef handle_request(
        self,
        RequestSource source,
        object frame,
        const unsigned char* data,
        Py_ssize_t size,
    )
    cdef Route find_route(self, int code)
    cdef bint serve(
        self,
        Route route,
        RequestSource source,
        str client_id,
        int correlation_id,
        object frame,
        const unsigned char* data,
        Py_ssize_t body,
        Py_ssize_t size,
        long long began_ns,
    ) except -1
    cpdef encode(self, Route route, object request, object context, object response, object out)
