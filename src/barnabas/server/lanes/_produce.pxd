# The fields of `_produce.py`.

from barnabas.log._append cimport LogEnd
from barnabas.replication._append cimport PartitionEnd
from barnabas.server.lanes._lane cimport Lane, LaneRequest
from barnabas.wire._cursor cimport Cursor, Sink
from barnabas.wire.records._validation cimport BatchChecker, ValidBatch


cdef class PlannedAppend:
    cdef PartitionEnd partition
    cdef ValidBatch batch
    cdef Py_ssize_t at  # where the batch begins in the frame
    cdef Py_ssize_t size_bytes
    cdef Py_ssize_t offset_at  # where its base offset is in the response


cdef class TopicCounts:
    cdef object registry  # MetricsRegistry
    cdef object topic
    cdef long long requests
    cdef long long bytes_in
    cdef long long messages_in

    cdef add(self, object topic, long long bytes_in, long long messages_in)
    cdef flush(self)


cdef class ProduceLane(Lane):
    cdef object broker
    cdef object count_errors
    cdef object errors  # by code
    cdef BatchChecker checker
    cdef TopicCounts counts
    cdef list appends  # a PlannedAppend for each partition of the request, and more for later ones
    cdef Py_ssize_t count
    cdef object now_ms

    # Of the request
    cdef int version
    cdef bint is_flexible
    cdef str transactional_id
    cdef long long producer_id  # of the transaction; -1 until there is a batch of it
    cdef int producer_epoch
    cdef int acks
    cdef int timeout_ms

    cdef bint look(self, LaneRequest request) except -1
    cdef bint look_at_topic(self, LaneRequest request) except -1
    cdef bint look_at_partition(self, LaneRequest request, PartitionEnd partition, Py_ssize_t size) except -1
    cdef Py_ssize_t write_placeholder(self, Sink sink) except -1
    cdef bint is_open_transaction(self, PartitionEnd partition, ValidBatch batch) except -1
    cdef bint may_write(self, LaneRequest request, str topic) except -1
    cdef bint may_write_transactions(self, LaneRequest request) except -1
    cdef PlannedAppend plan(self)
    cdef int act(self, LaneRequest request) except -1
    cdef respond(
        self,
        Sink sink,
        PlannedAppend append,
        long long first_offset,
        long long next_offset,
        long long append_time_ms,
    )
    cdef forget(self)
