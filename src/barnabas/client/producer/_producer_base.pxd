# The fields of `_producer_base.py`, and what compiled modules call.

from barnabas.client.producer._accumulator cimport RecordAccumulator


cdef class ProducerBase:
    cdef RecordAccumulator accumulator
    cdef object on_delivery  # for records that bring no callback
    cdef object intercept
    cdef object wait_for_space
    cdef object produce_error

    cdef object append_record(
        self,
        object topic,
        object value,
        object key,
        int partition,
        object callback,
        long long timestamp,
        object headers,
    )
