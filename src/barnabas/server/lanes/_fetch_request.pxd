# The fields of a fetch that the lane serves.

from barnabas.server.lanes._lane cimport LaneRequest
from barnabas.wire._cursor cimport Cursor


cdef class PartitionRead:
    # What is requested
    cdef readonly object requested  # the SessionPartition; None without a session
    cdef readonly object partition  # the Partition
    cdef readonly object name  # the topic's name; from v13 on its id
    cdef readonly int index
    cdef readonly long long offset
    cdef readonly long long max_bytes
    cdef readonly long long leader_epoch
    cdef readonly long long last_fetched_epoch
    cdef readonly long long log_start_offset  # of the follower

    # What was read
    cdef readonly object records  # a LogSlice, or None
    cdef readonly object aborted_transactions  # a list; None is null
    cdef object follower  # the FollowerState of the follower that fetches
    cdef Py_ssize_t size_bytes
    cdef readonly long long counted_bytes  # towards the minimum
    cdef readonly long long high_watermark
    cdef readonly long long stable_offset
    cdef readonly long long start_offset
    cdef bint is_caught_up
    cdef bint is_unchanged  # a session's partition that need not be read


cdef class PlainFetchRequest:
    cdef object broker
    cdef readonly object session  # the FetchSession; None without one
    cdef readonly object generation  # of the permissions; None without an authorizer
    cdef dict updates  # what the request changes in the session, by SessionPartition
    cdef list reads  # a PartitionRead for each partition to read
    cdef int version
    cdef bint is_flexible
    cdef readonly bint by_id
    cdef bint is_follower
    cdef int replica_id
    cdef long long replica_epoch
    cdef long long now_ms
    cdef int max_wait_ms
    cdef readonly long long min_bytes
    cdef readonly long long max_bytes
    cdef int isolation
    cdef readonly int next_epoch  # that of the session while this fetch waits

    cdef bint parse(self, Cursor cursor, LaneRequest request) except -1
    cdef bint find_session(self, int session_id, int epoch) except -1
    cdef bint parse_topics(self, Cursor cursor) except -1
    cdef bint parse_partition(self, Cursor cursor, object name) except -1
    cdef bint find_partition(self, PartitionRead read) except -1
    cdef bint parse_tags(self, Cursor cursor) except -1
    cdef bint add_dirty_partitions(self) except -1
    cdef limit_bytes(self, long long limit)
    cdef PartitionRead read_of(self, object requested)
    cdef bint is_allowed(self, LaneRequest request) except -1
    cdef PartitionRead again(self, PartitionRead read, object key)
    cdef bint is_still_allowed(self) except -1
