# The fields of `_poller.py`.

from barnabas.client.consumer._completed_fetch cimport CompletedFetch


cdef class Poller:
    cdef public CompletedFetch current_fetch
    cdef public bint has_events
    cdef public long long poll_count
