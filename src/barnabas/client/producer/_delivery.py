# cython: language_level=3, boundscheck=False, wraparound=False
"""`produce` on a loop: what it gives back stands for the delivery of the record.

Nearly all records are in their batch at once, and most deliveries are never looked at one by one:
so neither a coroutine nor a future is made unless somebody needs it. The fields of the classes are
in `_delivery.pxd`.
"""

from __future__ import annotations

from barnabas.client.errors import KafkaException

try:
    import cython

    if not cython.compiled:  # Cython's own stand-in for itself is many times slower than ours
        raise ImportError
except ImportError:
    from barnabas.wire.records import _uncompiled as cython

if cython.compiled:
    from cython.cimports.barnabas.client._ready import Ready
    from cython.cimports.barnabas.client.producer._intake import Intake
else:
    from barnabas.client._ready import Ready
    from barnabas.client.producer._intake import Intake

COMPILED: bool = cython.compiled


@cython.cclass
class AioIntake(Intake):
    """Takes records in on a loop. `is_due` says that the loop has batches to send."""

    def __init__(
        self,
        loop: object,
        accumulator: object,
        on_delivery: object = None,
        intercept: object = None,
    ) -> None:
        Intake.__init__(self, accumulator, on_delivery, intercept)
        self.loop = loop
        self.is_due = False

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
        """Send a record, some time soon. Waits only for room in the buffer.

        What is awaited gives the delivery, which can be awaited in turn: for the Message, or
        KafkaException. That need not be done if there is a callback.
        """
        if callback is None:
            callback = on_delivery
        callback = self.on_delivery if callback is None else self._called(callback)
        delivery: Delivery = Delivery(self.loop, callback)
        try:
            self.take(topic, value, key, partition, delivery, timestamp, headers)
        except BufferError:
            return self._wait_for_room(delivery, topic, value, key, partition, timestamp, headers)
        if self.is_due or self.accumulator.waiting > 0:
            return self._give_way(delivery)  # who only produces has to let it be sent, too
        return Ready(delivery)

    def retry(
        self,
        delivery: object,
        topic: object,
        value: object,
        key: object,
        partition: cython.int,
        timestamp: cython.longlong,
        headers: object,
    ) -> None:
        """Take in a record for which there was no room before."""
        self.take(topic, value, key, partition, delivery, timestamp, headers)

    def _called(self, callback: object) -> object:
        raise NotImplementedError

    def _wait_for_room(self, delivery: object, *record: object) -> object:
        raise NotImplementedError

    def _give_way(self, delivery: object) -> object:
        raise NotImplementedError


# Without the collector, which would look at each of a hundred thousand. What a future refers to
# is forgotten when that is done.
@cython.no_gc
@cython.freelist(512)
@cython.cclass
class Delivery:
    """The delivery of one record, which may be treated as a future of its Message."""

    def __init__(self, loop: object, callback: object) -> None:
        self.loop = loop
        self.callback = callback
        self.message = None
        self.future = None

    def __call__(self, error: object, message: object) -> None:
        """The report comes."""
        if error is None:
            self.message = message
            if self.future is not None and not self.future.done():
                self.future.set_result(message)
        else:
            future = self._made()
            if not future.done():
                future.set_exception(KafkaException(error))
                if self.callback is not None:
                    future.exception()  # it is told: nobody has to ask for it
        if self.callback is not None:
            self.callback(error, message)

    def __await__(self) -> object:
        if self.message is not None and self.future is None:
            return Ready(self.message)
        return self._made().__await__()

    def done(self) -> bool:
        return self.message is not None or (self.future is not None and self.future.done())

    def cancelled(self) -> bool:
        return self.future is not None and self.future.cancelled()

    def result(self) -> object:
        return self._made().result()

    def exception(self) -> object:
        return self._made().exception()

    def cancel(self, msg: object = None) -> bool:
        """Wait no more; the record is delivered all the same."""
        return self._made().cancel(msg)

    def add_done_callback(self, callback: object, *, context: object = None) -> None:
        self._made().add_done_callback(callback, context=context)

    def remove_done_callback(self, callback: object) -> int:
        return 0 if self.future is None else self.future.remove_done_callback(callback)

    def get_loop(self) -> object:
        return self.loop

    def _made(self) -> object:
        """A real future of it."""
        if self.future is None:
            self.future = self.loop.create_future()
            if self.message is not None:
                self.future.set_result(self.message)
        return self.future
