# The fields of `_fetch.py`.

from barnabas.server.lanes._fetch_reads cimport PlainFetch
from barnabas.server.lanes._fetch_request cimport PlainFetchRequest
from barnabas.server.lanes._fetch_response cimport FetchResponseWriter
from barnabas.server.lanes._lane cimport Lane, LaneRequest
from barnabas.wire._cursor cimport Sink


cdef class FetchLane(Lane):
    cdef object broker
    cdef long long fetch_max_bytes

    cdef delay(self, PlainFetch fetch, LaneRequest request, bytes body)


cdef class DelayedFetch:
    cdef PlainFetch fetch
    cdef bytes body
    cdef object context
    cdef object metrics
    cdef object handover

    cdef read_again(self, object changed)
    cdef hand_over(self)


cdef respond(PlainFetch fetch, Sink sink, object errors)
