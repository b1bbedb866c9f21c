# The fields of `_response_queue.py`, and what connections and the pipeline call.

from barnabas.server.metrics._request_metrics cimport RequestMetrics


cdef class QueuedResponse:
    cdef readonly RequestMetrics metrics
    cdef readonly long long received_ns
    cdef public long long completed_ns
    cdef public object outgoing


cdef class ResponseQueue:
    cdef object sock
    cdef int fd  # -1: bytes are sent by methods of the socket, as encrypted ones
    cdef object send_file
    cdef Py_ssize_t turn_bytes
    cdef readonly object ready
    cdef list regions  # of the ready responses
    cdef object pending
    cdef Py_ssize_t sent
    cdef Py_ssize_t region
    cdef Py_ssize_t region_sent
    cdef list unsent
    cdef RequestMetrics last_metrics
    cdef long long last_received_ns
    cdef Py_ssize_t last_count

    cdef Py_ssize_t count_unsent_bytes(self)
    cpdef object buffer(self)
    cpdef add_unsent(self, RequestMetrics metrics, long long received_ns)
    cpdef QueuedResponse reserve(self, RequestMetrics metrics, long long received_ns)
    cpdef complete(self, QueuedResponse response, object outgoing, long long completed_ns)
    cpdef close(self)
    cpdef bint send(self) except -1
    cpdef record_sent(self, long long began_ns, long long sent_ns)
    cdef bint has_begun(self)
    cdef append(self, object outgoing)
    cdef copy_in(self)
    cdef bint send_bytes(self) except -1
    cdef bint send_with_regions(self) except -1
    cdef Py_ssize_t send_run(self, Py_ssize_t end, int flags) except -1
    cdef Py_ssize_t send_region(self, object region) except -1
    cdef trim(self)
