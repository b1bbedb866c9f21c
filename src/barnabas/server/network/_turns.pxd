# The fields of `_turns.py`, and what connections call.

from barnabas.server.network._clock cimport ServerClock
from barnabas.server.network._system cimport epoll_event


cdef class ConnectionTurns:
    cdef readonly ServerClock clock
    cdef readonly object loop
    cdef readonly object shared
    cdef unsigned char* shared_data
    cdef Py_ssize_t shared_bytes
    cdef object mark_active
    cdef public Py_ssize_t max_frame_bytes
    cdef public int max_requests
    cdef object epoll
    cdef int epoll_fd
    cdef bint is_watched
    cdef dict connections
    cdef epoll_event events[64]

    cpdef watch(self, object connection, int fd, unsigned int before, unsigned int events)
