# The fields of `_accumulator.py`, and what compiled modules call.

from barnabas.client.producer._batch cimport ProducerBatch
from barnabas.client.producer._queues cimport PartitionQueue, StickyPartitioner, TopicQueues


cdef class RecordAccumulator:
    cdef object lock
    cdef object acquire
    cdef object release
    cdef object wake
    cdef dict topics
    cdef list active  # queues with records
    cdef list new_topics  # with waiting records, and not handed to the loop yet
    # Produced and not deallocated yet: not delivered, or not reported to their callback.
    cdef readonly Py_ssize_t buffered_records
    cdef readonly Py_ssize_t buffered_bytes
    cdef Py_ssize_t waiting_records  # of topics without metadata
    cdef Py_ssize_t max_records
    cdef Py_ssize_t max_bytes
    cdef Py_ssize_t max_record_bytes
    cdef Py_ssize_t batch_bytes
    cdef Py_ssize_t batch_records
    cdef double linger_s
    cdef object hash_key
    cdef bint sticks_null_keys
    cdef bint sticks_empty_keys
    cdef object partitioner  # the user's own
    cdef StickyPartitioner sticky_partitioner
    cdef bint is_woken  # the loop was woken and has not called ready() yet
    cdef bint has_timer  # the loop wakes by itself when the oldest open batch is due
    cdef bint is_exhausted  # a caller found the buffer full: batches do not linger
    cdef int flushing  # calls of begin_flush without end_flush

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
    cdef bint _needs_wake(self, bint is_urgent) noexcept
    cdef TopicQueues _topic(self, str name)
    cdef int _mark_active(self, PartitionQueue queue)
    cdef long long _user_partition(self, str name, bytes key) except? -2
    cdef int _raise_full(self)
    cdef int _clear_waiting(self, TopicQueues topic)
    cdef ProducerBatch _report_only(self, TopicQueues topic, int partition, list callbacks)
