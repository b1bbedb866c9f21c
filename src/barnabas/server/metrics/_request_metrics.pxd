# The fields of `_request_metrics.py`.

cdef extern from *:
    """
    /* Returns the bits of a positive number, without leading zeros. */
    #define bit_length(value) (64 - __builtin_clzll(value))
    """
    int bit_length(long long value) noexcept nogil


cdef class Histogram:
    cdef long long counts[64]
    cdef readonly long long total

    cpdef void observe(self, long long value, long long times=*) noexcept


cdef class RequestMetrics:
    cdef readonly dict requests
    cdef readonly object errors
    cdef readonly Histogram request_bytes
    cdef readonly Histogram queue_ns
    cdef readonly Histogram local_ns
    cdef readonly Histogram remote_ns
    cdef readonly Histogram response_queue_ns
    cdef readonly Histogram response_send_ns
    cdef readonly Histogram total_ns

    cpdef count(self, int version, Py_ssize_t size_bytes, long long queue_ns)
