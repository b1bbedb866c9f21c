# What C sees of `_message.py`: for the loops that make a message for every record.


cdef class Message:
    cdef object _topic
    cdef object _key
    cdef object _value
    cdef object _headers
    cdef object _error
    cdef object _latency
    cdef long long _offset
    cdef long long _timestamp
    cdef int _timestamp_type
    cdef int _partition
    cdef int _leader_epoch


cpdef Message make(
    object topic,
    int partition,
    long long offset,
    int leader_epoch,
    int timestamp_type,
    long long timestamp,
    object key,
    object value,
    object headers,
)
