# The fields of `_queues.py`, and what compiled modules call.

from barnabas.client.producer._batch cimport ProducerBatch


cdef class PartitionQueue:
    cdef str topic
    cdef int partition
    cdef list full
    cdef ProducerBatch open  # None if there is none
    cdef Py_ssize_t next_buffer_bytes  # to begin with: what the last batch took
    cdef bint is_active  # it is in the accumulator's list of active queues
    cdef bint is_unavailable  # its leader accepts nothing: records without a key go elsewhere

    cdef int close_for_appends(self)


cdef class StickyPartitioner


cdef class TopicQueues:
    cdef str name
    cdef StickyPartitioner partitioner
    cdef list queues  # of PartitionQueue; empty until metadata has the number of partitions
    cdef list available  # the queues of partitions with a leader
    cdef list waiting  # records that arrived before that
    cdef Py_ssize_t waiting_bytes
    cdef double waiting_since_s  # when the first of them arrived
    cdef PartitionQueue sticky  # for records without a key
    cdef Py_ssize_t sticky_bytes
    cdef long long sticky_until_ms

    cdef PartitionQueue next_sticky(self, long long now_ms, Py_ssize_t body)
    cdef PartitionQueue pick_queue(self)


cdef class StickyPartitioner:
    cdef Py_ssize_t batch_bytes
    cdef long long sticky_ms
    cdef bint is_adaptive
    cdef unsigned long long seed

    cdef long long random(self) noexcept
