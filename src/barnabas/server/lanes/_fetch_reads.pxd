# What was read for a fetch that the lane serves.

from barnabas.server.lanes._fetch_request cimport PartitionRead, PlainFetchRequest


cdef class PlainFetch:
    cdef readonly PlainFetchRequest request
    cdef object broker
    cdef bint is_follower
    cdef long long returned_bytes
    cdef long long available_bytes
    cdef readonly dict results  # the reads by partition, or in a session by SessionPartition
    cdef readonly bint is_complete

    cdef bint look(self) except -1
    cdef bint look_at(self, PartitionRead read) except -1
    cdef bint look_at_log(self, PartitionRead read, object log) except -1
    cdef bint is_unchanged(self, PartitionRead read) except -1
    cdef find_records(self, PartitionRead read, object log, long long end, long long max_bytes)
    cdef bint is_diverging(self, PartitionRead read, object log) except -1
    cdef apply(self)
    cdef apply_read(self, PartitionRead read)
    cdef list begin_waiting(self)
    cdef bint read_again(self, object key) except -1
    cdef bint has_new_start(self, PartitionRead read) except -1
    cdef list all_reads(self)
    cdef list reads_to_return(self)
