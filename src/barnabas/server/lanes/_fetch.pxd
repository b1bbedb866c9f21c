# The fields of a fetch that the lane serves.

from barnabas.server.lanes._lane cimport Lane, LaneRequest
from barnabas.wire._cursor cimport Cursor, Sink

cdef int _DECLINED
cdef int _RESPONDED
cdef int _NO_EPOCH
cdef int _NO_SESSION
cdef int _FINAL_EPOCH
cdef Py_ssize_t _MAX_COPIED_BYTES


cdef class PartitionRead:
    # What is requested
    cdef object requested  # the SessionPartition; None without a session
    cdef object partition  # the Partition
    cdef object name  # the topic's name; from v13 on its id
    cdef int index
    cdef long long offset
    cdef long long max_bytes
    cdef long long leader_epoch
    cdef long long last_fetched_epoch
    cdef long long log_start_offset  # of the follower

    # What was read
    cdef object records  # a LogSlice, or None
    cdef object aborted_transactions  # a list; None is null
    cdef object follower  # the FollowerState of the follower that fetches
    cdef Py_ssize_t size_bytes
    cdef long long high_watermark
    cdef long long stable_offset
    cdef long long start_offset
    cdef bint is_caught_up
    cdef bint is_unchanged  # a session's partition that need not be read


cdef class PlainFetch:
    cdef object broker
    cdef object session  # the FetchSession; None without one
    cdef dict updates  # what the request changes in the session, by SessionPartition
    cdef list reads
    cdef int version
    cdef bint is_flexible
    cdef bint by_id
    cdef bint is_follower
    cdef int replica_id
    cdef long long replica_epoch
    cdef long long now_ms
    cdef int max_wait_ms
    cdef long long min_bytes
    cdef long long max_bytes
    cdef int isolation
    cdef long long returned_bytes
    cdef long long available_bytes

    cdef bint parse(self, Cursor cursor, LaneRequest request) except -1
    cdef bint find_session(self, int session_id, int epoch) except -1
    cdef bint parse_topics(self, Cursor cursor) except -1
    cdef bint parse_partition(self, Cursor cursor, object name) except -1
    cdef bint find_partition(self, PartitionRead read) except -1
    cdef bint parse_tags(self, Cursor cursor) except -1
    cdef bint add_dirty_partitions(self) except -1
    cdef bint is_allowed(self, LaneRequest request) except -1
    cdef bint look(self) except -1
    cdef bint look_at(self, PartitionRead read) except -1
    cdef bint look_at_log(self, PartitionRead read, object log) except -1
    cdef bint is_unchanged(self, PartitionRead read) except -1
    cdef find_records(
        self, PartitionRead read, object log, long long end, long long max_bytes
    )
    cdef bint is_diverging(self, PartitionRead read, object log) except -1
    cdef apply(self)
    cdef apply_read(self, PartitionRead read)
    cdef respond(self, Sink sink, object errors)
    cdef list record_returned(self)
    cdef write(self, Sink sink, list reads)
    cdef write_partition(self, Sink sink, PartitionRead read, bint is_copied)


cdef class FetchLane(Lane):
    cdef object broker
    cdef long long fetch_max_bytes
