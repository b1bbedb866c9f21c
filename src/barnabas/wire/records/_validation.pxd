# The fields of `_validation.py`, and what compiled callers use.

from barnabas.wire.records._loops cimport RecordWalk


cdef class ValidBatch:
    cdef public object buffer  # the bytes of the batch
    cdef unsigned char* start  # where they are, if the caller keeps them there; or NULL
    cdef readonly Py_ssize_t size_bytes
    cdef readonly long long base_offset
    cdef readonly unsigned int crc
    cdef readonly int attributes
    cdef readonly int last_offset_delta
    cdef readonly long long base_timestamp
    cdef readonly long long header_timestamp  # the max timestamp of the header
    cdef readonly long long producer_id
    cdef readonly int producer_epoch
    cdef readonly int base_sequence
    cdef readonly int record_count
    cdef readonly long long max_timestamp  # of the records, or the append time

    cdef bint read(self, const unsigned char* data, Py_ssize_t at, Py_ssize_t size) noexcept
    cpdef release(self)
    cpdef assign_offset(self, long long base_offset, int leader_epoch)


cdef class BatchChecker:
    cdef readonly object rules
    cdef readonly object body  # the records of the last batch, if they were compressed
    cdef readonly int codec  # of the topic; -1: the producer's
    cdef readonly str error  # why the last batch could not be decompressed
    cdef readonly int malformed  # the record of the last batch that is malformed
    cdef readonly long long earliest
    cdef readonly long long latest
    cdef RecordWalk records
    cdef long long now_ms
    cdef long long max_message_bytes
    cdef bint is_compacted
    cdef readonly bint has_append_time

    cpdef forget(self)
    cpdef use(self, object rules, long long now_ms)
    cpdef int check_batch(self, ValidBatch batch, object records) except -1
    cdef int check(
        self,
        ValidBatch batch,
        object view,
        const unsigned char* data,
        Py_ssize_t at,
        Py_ssize_t size,
    ) except -1
    cdef int check_header(self, ValidBatch batch) noexcept
    cdef int check_records(
        self,
        ValidBatch batch,
        object view,
        const unsigned char* data,
        Py_ssize_t at,
        Py_ssize_t size,
    ) except -1
