# The fields of `_frames.py`, and what connections call.

from barnabas.server.network._turns cimport ConnectionTurns


cdef class ReceivedFrames:
    cdef ConnectionTurns turns
    cdef object sock
    cdef int fd  # -1: bytes are received by methods of the socket, as encrypted ones
    cdef public object buffers
    cdef bytes length_prefix
    cdef readonly object buffer
    cdef Py_ssize_t frame_end
    cdef readonly Py_ssize_t filled

    cpdef Py_ssize_t receive(self) except? -1
    cdef Py_ssize_t receive_rest(self) except? -1
    cpdef bint has_frame(self) except -1
    cpdef object take(self)
    cpdef keep_shared(self, Py_ssize_t position, Py_ssize_t filled, bint is_blocked)
    cpdef keep(self, object buffer, Py_ssize_t position, bint is_blocked)
    cpdef close(self)
