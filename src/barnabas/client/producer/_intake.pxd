# What C sees of `_intake.py`.

from barnabas.client.producer._accumulator cimport Accumulator


cdef class Intake:
    cdef Accumulator accumulator
    cdef object on_delivery  # for records that bring no callback
    cdef object intercept
    cdef object make_room
    cdef object refusal

    cdef object take(
        self,
        object topic,
        object value,
        object key,
        int partition,
        object callback,
        long long timestamp,
        object headers,
    )
