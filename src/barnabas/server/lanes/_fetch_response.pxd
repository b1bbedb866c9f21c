# The fields of `_fetch_response.py`.

from barnabas.server.lanes._fetch_request cimport PartitionRead, PlainFetchRequest
from barnabas.wire._cursor cimport Sink


cdef class FetchResponseWriter:
    cdef Sink sink
    cdef int version
    cdef bint is_flexible
    cdef bint by_id
    cdef int session_id

    cdef Py_ssize_t measure(self, list reads) except -1
    cdef write(self, list reads)
    cdef write_topics(self, list reads, bint is_copied)
    cdef write_partition(self, PartitionRead read, bint is_copied)
