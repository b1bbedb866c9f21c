# What C sees of `_accumulator.py`.

from barnabas.client.producer._batch cimport Batch
from barnabas.client.producer._queues cimport Chance, Queue, Topic


cdef class Accumulator:
    cdef object lock
    cdef object acquire
    cdef object release
    cdef object wake
    cdef dict topics
    cdef list busy  # queues with records
    cdef list unknown  # topics with waiting records that the loop has not heard of
    cdef Py_ssize_t records  # produced and not yet let go: delivered, and reported if wanted
    cdef Py_ssize_t size
    cdef Py_ssize_t waiting  # records of topics that are not known
    cdef Py_ssize_t largest_records
    cdef Py_ssize_t largest_bytes
    cdef Py_ssize_t largest_record
    cdef Py_ssize_t batch_bytes
    cdef Py_ssize_t batch_records
    cdef double linger_s
    cdef object hashed
    cdef bint frees_missing
    cdef bint frees_empty
    cdef object choose  # the user's own partitioner
    cdef Chance chance
    cdef bint is_rung  # the loop was woken and has not looked yet
    cdef bint has_timer  # the loop will look by itself when the oldest open batch is due
    cdef bint is_pressed  # somebody found no room: lingering would help nobody
    cdef int flushing  # so many want batches to be sent at once

    cpdef object append(
        self,
        str name,
        int partition,
        bytes key,
        bytes value,
        long long timestamp,
        list headers,
        object callback,
        object message,
    )
    cdef bint _add(
        self,
        str name,
        long long partition,
        bytes key,
        bytes value,
        long long timestamp,
        list headers,
        Py_ssize_t body,
        object callback,
        object message,
    )
    cdef bint _ring(self, bint is_news) noexcept
    cdef Topic _topic(self, str name)
    cdef int _mark_busy(self, Queue queue)
    cdef long long _ask_user(self, str name, bytes key) except? -2
    cdef int _refuse(self)
    cdef int _forget_waiting(self, Topic topic)
    cdef Batch _stand_in(self, Topic topic, int partition, list wanted)
