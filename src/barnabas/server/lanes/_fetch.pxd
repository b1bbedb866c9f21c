# The fields of `_fetch.py`.

from barnabas.server.lanes._fetch_reads cimport PlainFetch
from barnabas.server.lanes._fetch_request cimport PlainFetchRequest
from barnabas.server.lanes._fetch_response cimport FetchResponseWriter
from barnabas.server.lanes._lane cimport Lane, LaneRequest
from barnabas.wire._cursor cimport Sink


cdef class FetchLane(Lane):
    cdef object broker
    cdef long long fetch_max_bytes

    cdef delay(self, PlainFetch fetch, FetchQuota quota, LaneRequest request, bytes body)


cdef class DelayedFetch:
    cdef PlainFetch fetch
    cdef FetchQuota quota
    cdef bytes body
    cdef object context
    cdef object metrics
    cdef object handover

    cdef read_again(self, object changed)
    cdef hand_over(self)
    cdef bint may_respond(self) except -1


cdef class FetchQuota:
    cdef object quotas  # RequestQuotas
    cdef object quota  # that of fetched bytes
    cdef str user
    cdef str client_id

    cdef limit(self, PlainFetchRequest requested)
    cdef bint may_send(self, PlainFetch fetch) except -1


cdef respond(PlainFetch fetch, Sink sink, object errors)
