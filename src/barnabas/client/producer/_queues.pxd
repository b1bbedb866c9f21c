# What C sees of `_queues.py`.

from barnabas.client.producer._batch cimport Batch


cdef class Queue:
    cdef str topic
    cdef int partition
    cdef list full
    cdef Batch open  # None if there is none
    cdef Py_ssize_t expected  # room that the last batch took
    cdef bint is_busy  # it is among the accumulator's busy ones
    cdef bint is_shunned  # its leader takes nothing: records without a key go elsewhere

    cdef int close(self)


cdef class Chance


cdef class Topic:
    cdef str name
    cdef Chance chance
    cdef list queues  # of Queue; empty until the cluster has told how many there are
    cdef list available  # those of them that have a leader
    cdef list waiting  # the records that came before that
    cdef Py_ssize_t waiting_bytes
    cdef double since_s  # when the first of them came
    cdef Queue sticky  # where records without a key go at present
    cdef Py_ssize_t sticky_bytes
    cdef long long sticky_until_ms

    cdef Queue stick(self, long long now_ms, Py_ssize_t body)
    cdef Queue pick(self)


cdef class Chance:
    cdef Py_ssize_t batch_bytes
    cdef long long sticky_ms
    cdef bint is_adaptive
    cdef unsigned long long seed

    cdef long long next(self) noexcept
