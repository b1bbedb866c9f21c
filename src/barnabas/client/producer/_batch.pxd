# The fields of `_batch.py`, and what compiled modules call.


cdef class ProducerBatch:
    cdef readonly str topic
    cdef readonly int partition
    cdef readonly bytearray buffer  # as it is sent; until the batch is closed, with space for its header
    cdef readonly Py_ssize_t size_bytes  # the used part of the buffer
    cdef readonly Py_ssize_t buffered_bytes  # counted against buffer.memory
    cdef readonly Py_ssize_t max_record_bytes
    cdef readonly int record_count
    cdef readonly long long base_timestamp
    cdef readonly long long max_timestamp
    cdef readonly double created_s
    cdef list messages  # of the records with a callback; until the outcome, their offset is an index
    cdef list callbacks
    cdef Py_ssize_t reported_count  # callbacks that were called
    cdef readonly bint is_closed  # the header is written

    # For the sender
    cdef public long long number  # the order in its partition
    cdef public long long number_span
    cdef public int sequence
    cdef public int attempts
    cdef public bint may_be_appended  # an attempt ended without a definite response

    # The outcome
    cdef readonly bint is_done  # if it is still in flight, the response changes nothing
    cdef readonly object error  # None: appended
    cdef readonly long long base_offset
    cdef readonly long long append_time_ms

    cdef int append(
        self, bytes key, bytes value, long long timestamp, list headers, Py_ssize_t body
    )
    cdef int _grow(self, Py_ssize_t more)
