# The fields of `_append.py`, and what compiled callers use.

from barnabas.wire.records._validation cimport ValidBatch


cdef class OpenFile:
    cdef readonly int fd
    cdef public bint used

    cpdef write(self, object piece, object position)


cdef class SegmentEnd:
    cdef public long long base_offset
    cdef public long long next_offset
    cdef public long long size_bytes
    cdef public long long index_interval_bytes
    cdef public long long unindexed_bytes
    cdef public long long first_timestamp
    cdef public long long max_timestamp
    cdef public long long offset_of_max_timestamp
    cdef public object handle  # Handle | None
    # The limits of `limited_by`, a LogConfig
    cdef object limited_by
    cdef long long max_bytes
    cdef long long roll_ms
    cdef long long free_index_entries

    cpdef append(self, object batch, Py_ssize_t size_bytes)
    cpdef on_batch_written(self, long long size_bytes, long long last_offset, long long max_timestamp)
    cpdef forget_limits(self)
    cdef bint has_room(
        self, object config, long long size_bytes, long long last_offset, long long max_timestamp
    ) except -1


cdef class ProducerStateEntry:
    cdef public long long producer_id
    cdef public int epoch
    cdef public int coordinator_epoch
    cdef public long long last_timestamp
    cdef public long long transaction_first_offset
    cdef public long long next_sequence
    cdef public list batches  # of BatchMetadata

    cpdef add_batch(self, object batch)
    cdef add_next(self, ValidBatch batch, long long first_offset, long long last_offset)


cdef class ProducerEntries:
    cdef public dict entries  # ProducerStateEntry by producer id
    cdef public dict pending_verifications  # VerificationGuard by producer id

    cdef ProducerStateEntry find_next(self, ValidBatch batch)


cdef class LogEnd:
    cdef public object directory  # LogDirectory
    cdef public object config  # LogConfig
    cdef public object segments  # LogSegments
    cdef public object producers  # ProducerStateManager
    cdef public object leader_epochs  # LeaderEpochCache
    cdef public object flusher  # LogFlusher
    cdef public long long log_start_offset
    cdef public long long log_end_offset
    cdef public long long recovery_point

    cpdef long long append_plain(self, ValidBatch batch, int leader_epoch, object now_ms) except? -2
