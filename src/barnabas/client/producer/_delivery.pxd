# The fields of `_delivery.py`.

from barnabas.client.producer._intake cimport Intake


cdef class AioIntake(Intake):
    cdef object loop
    cdef public bint is_due  # the loop has batches to send


cdef class Delivery:
    cdef object loop
    cdef object callback
    cdef object message  # once that is delivered
    cdef object future  # if somebody waits, or it has failed
