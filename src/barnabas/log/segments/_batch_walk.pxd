# The fields of `BatchWalk`.


cdef class BatchWalk:
    cdef readonly Py_ssize_t position  # in the segment, after the last batch
    cdef readonly long long next_offset
    cdef readonly long long unindexed_bytes
    cdef readonly long long max_timestamp
    cdef readonly long long offset_of_max_timestamp
    cdef readonly list index_entries
    cdef readonly list leader_epochs
    cdef readonly list producer_batches
    cdef long long max_offset
    cdef long long index_interval_bytes
    cdef long long leader_epoch
    cdef dict runs  # by producer id, of the last buffer

    cdef _add_producer_batch(self, Py_ssize_t at, long long producer_id, int attributes)
