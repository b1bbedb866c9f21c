# The fields of `_aio_producer_base.py`.

from barnabas.client.producer._producer_base cimport ProducerBase


cdef class AioProducerBase(ProducerBase):
    cdef object loop
    cdef public bint is_step_scheduled  # the loop has batches to send


cdef class DeliveryFuture:
    cdef object loop
    cdef object callback
    cdef object message  # once it is delivered
    cdef object future  # once it is awaited, or the delivery failed
