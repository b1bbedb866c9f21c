# cython: language_level=3, boundscheck=False, wraparound=False
"""The base class of `AioProducer`: `produce` on an event loop, and the delivery it returns.

Nearly all records are in their batch at once, and most deliveries are never awaited one by one: so
neither a coroutine nor a future is created before it is needed. The fields of the classes are in
`_aio_producer_base.pxd`.
"""

from __future__ import annotations

from barnabas.client.errors import KafkaException

try:
    import cython

    if not cython.compiled:  # Cython's own pure-Python shim is many times slower than ours
        raise ImportError
except ImportError:
    from barnabas.wire.records import _uncompiled as cython

if cython.compiled:
    from cython.cimports.barnabas.client._ready import Ready
    from cython.cimports.barnabas.client.producer._producer_base import ProducerBase
else:
    from barnabas.client._ready import Ready
    from barnabas.client.producer._producer_base import ProducerBase

COMPILED: bool = cython.compiled


@cython.cclass
class AioProducerBase(ProducerBase):
    """Appends records to the accumulator, on the event loop that also sends them."""

    def __init__(
        self,
        loop: object,
        accumulator: object,
        on_delivery: object = None,
        intercept: object = None,
    ) -> None:
        ProducerBase.__init__(self, accumulator, on_delivery, intercept)
        self.loop = loop
        self.is_step_scheduled = False

    def produce(
        self,
        topic: object,
        value: object = None,
        key: object = None,
        partition: cython.int = -1,
        callback: object = None,
        on_delivery: object = None,
        timestamp: cython.longlong = 0,
        headers: object = None,
    ) -> object:
        """Appends a record to the batch of its partition. Waits only if the buffer is full.

        The result of awaiting it is the delivery, which can be awaited in turn: it returns the
        Message or raises KafkaException. With a callback that is not necessary.
        """
        if callback is None:
            callback = on_delivery
        callback = self.on_delivery if callback is None else self._as_callback(callback)
        delivery: DeliveryFuture = DeliveryFuture(self.loop, callback)
        try:
            self.append_record(topic, value, key, partition, delivery, timestamp, headers)
        except BufferError:
            return self._wait_for_space(delivery, topic, value, key, partition, timestamp, headers)
        if self.is_step_scheduled or self.accumulator.waiting_records > 0:
            return self._yield_to_loop(
                delivery
            )  # a caller that only produces must let the loop send
        return Ready(delivery)

    def retry_append(
        self,
        delivery: object,
        topic: object,
        value: object,
        key: object,
        partition: cython.int,
        timestamp: cython.longlong,
        headers: object,
    ) -> None:
        """Appends a record for which the buffer had no space before."""
        self.append_record(topic, value, key, partition, delivery, timestamp, headers)

    def _as_callback(self, callback: object) -> object:
        raise NotImplementedError

    def _wait_for_space(self, delivery: object, *record: object) -> object:
        raise NotImplementedError

    def _yield_to_loop(self, delivery: object) -> object:
        raise NotImplementedError


# Without the garbage collector, which would traverse a hundred thousand of them. A future drops its
# references when it is done.
@cython.no_gc
@cython.freelist(512)
@cython.cclass
class DeliveryFuture:
    """The delivery of one record: usable as a future of its Message."""

    def __init__(self, loop: object, callback: object) -> None:
        self.loop = loop
        self.callback = callback
        self.message = None
        self.future = None

    def __call__(self, error: object, message: object) -> None:
        """Called with the delivery report."""
        if error is None:
            self.message = message
            if self.future is not None and not self.future.done():
                self.future.set_result(message)
        else:
            future = self._as_future()
            if not future.done():
                future.set_exception(KafkaException(error))
                if self.callback is not None:
                    future.exception()  # reported: the loop need not log it
        if self.callback is not None:
            self.callback(error, message)

    def __await__(self) -> object:
        if self.message is not None and self.future is None:
            return Ready(self.message)
        return self._as_future().__await__()

    def done(self) -> bool:
        return self.message is not None or (self.future is not None and self.future.done())

    def cancelled(self) -> bool:
        return self.future is not None and self.future.cancelled()

    def result(self) -> object:
        return self._as_future().result()

    def exception(self) -> object:
        return self._as_future().exception()

    def cancel(self, msg: object = None) -> bool:
        """Cancels the waiting; the record is delivered all the same."""
        return self._as_future().cancel(msg)

    def add_done_callback(self, callback: object, *, context: object = None) -> None:
        self._as_future().add_done_callback(callback, context=context)

    def remove_done_callback(self, callback: object) -> int:
        return 0 if self.future is None else self.future.remove_done_callback(callback)

    def get_loop(self) -> object:
        return self.loop

    def _as_future(self) -> object:
        """Returns the asyncio future, created when it is first needed."""
        if self.future is None:
            self.future = self.loop.create_future()
            if self.message is not None:
                self.future.set_result(self.message)
        return self.future
