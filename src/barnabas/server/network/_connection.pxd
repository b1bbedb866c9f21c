# The fields of `_connection.py`.

from barnabas.server.network._frames cimport ReceivedFrames
from barnabas.server.network._pipeline cimport RequestSource
from barnabas.server.network._response_queue cimport ResponseQueue
from barnabas.server.network._turns cimport ConnectionTurns


cdef class ClientConnection(RequestSource):
    cdef readonly str host
    cdef readonly str local_host
    cdef readonly str listener
    cdef public object principal
    cdef public object pipeline
    cdef public object authentication
    cdef public object software
    cdef readonly bint is_closed
    cdef dict when_closed  # callbacks by key
    cdef ConnectionTurns turns
    cdef object server
    cdef object security
    cdef readonly object sock  # socket or TlsSocket
    cdef object tls  # the socket, once the handshake is done
    cdef int fd
    cdef unsigned int watched  # events
    cdef ReceivedFrames frames
    cdef ResponseQueue queue  # the responses
    cdef Py_ssize_t max_frame_bytes
    cdef set suspended
    cdef bint is_exclusive
    cdef bint is_blocked
    cdef bint is_send_blocked
    cdef object loading
    cdef bint is_reading
    cdef bint is_resume_scheduled
    cdef bint is_draining
    cdef public bint is_throttled
    cdef readonly object delay

    cpdef on_ready(self, unsigned int events)
    cpdef on_readable(self)
    cpdef on_encrypted_readable(self)
    cdef record_activity(self)
    cdef handle_unprocessed(self)
    cdef handle_shared(self, Py_ssize_t filled)
    cdef Py_ssize_t handle_frames(self, object view, Py_ssize_t filled) except -1
    cdef bint may_start(self, const unsigned char* data, Py_ssize_t start, Py_ssize_t end)
    cpdef resume(self)
    cdef finish_turn(self)
    cdef resume_soon(self)
    cdef bint send(self) except -1
    cdef start_reading(self)
    cdef pause_reading(self)
    cdef watch(self, unsigned int events)
