# cython: language_level=3, boundscheck=False, wraparound=False
"""`produce`: what a user's thread does for every record, from its arguments to the batch.

It is a class of its own so that `Producer` can inherit it compiled: parsing keywords in Python
would cost more than encoding the record.
"""

from __future__ import annotations

from functools import partial
from time import time

from barnabas.client.errors import KafkaError, KafkaException

try:
    import cython

    if not cython.compiled:  # Cython's own stand-in for itself is many times slower than ours
        raise ImportError
except ImportError:
    from barnabas.wire.records import _uncompiled as cython

if cython.compiled:
    from cython.cimports.barnabas.client._message import Message, make
    from cython.cimports.barnabas.client.producer._accumulator import Accumulator
else:
    from barnabas.client._message import Message, make
    from barnabas.client.producer._accumulator import Accumulator

COMPILED: bool = cython.compiled

_CREATE_TIME = cython.declare(cython.Py_ssize_t, 1)


@cython.cclass
class Intake:
    """Takes records in, until it is closed."""

    accumulator: Accumulator
    on_delivery: object  # for records that bring no callback
    intercept: object
    make_room: object
    refusal: object

    def __init__(
        self,
        accumulator: object,
        on_delivery: object = None,
        intercept: object = None,
        make_room: object = None,
    ) -> None:
        """`make_room(attempt)` waits where the buffer is full, or raises BufferError."""
        self.accumulator = accumulator
        self.on_delivery = on_delivery
        self.intercept = intercept
        self.make_room = make_room
        self.refusal = None

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
    ) -> None:
        """Send a record, some time soon: it is in its batch when this returns.

        `on_delivery` (or `callback`) is called with an error or None and the Message, inside a
        later `poll` or `flush`. BufferError: too much is waiting already; poll and try again.
        """
        if self.refusal is not None:
            raise self.refusal
        if callback is None:
            callback = on_delivery if on_delivery is not None else self.on_delivery
        if self.intercept is not None:
            topic, value, key, partition, timestamp, headers, callback = self.intercept(
                topic, value, key, partition, timestamp, headers, callback
            )
        if type(topic) is not str:
            raise TypeError(f"A topic is named by a str, not by {type(topic).__name__}.")
        content: bytes = value if type(value) is bytes else _bytes(value, "value")
        known: bytes = None if key is None else key if type(key) is bytes else _bytes(key, "key")
        pairs: list = None if headers is None else _pairs(headers)
        now_s: cython.double = time()
        if timestamp <= 0:
            timestamp = int(now_s * 1000)
        message: Message = None
        if callback is not None:
            message = make(
                topic, partition, -1, -1, _CREATE_TIME, timestamp, known, content, _told(pairs)
            )
            message._latency = now_s
        try:
            self.accumulator.append(
                topic, partition, known, content, timestamp, pairs, callback, message
            )
        except BufferError:
            if self.make_room is None:
                raise
            self.make_room(
                partial(
                    self.accumulator.append,
                    topic,
                    partition,
                    known,
                    content,
                    timestamp,
                    pairs,
                    callback,
                    message,
                )
            )
        except OverflowError as size:
            raise KafkaException(
                KafkaError(
                    KafkaError.MSG_SIZE_TOO_LARGE,
                    f"A record of {size} bytes for {topic} is larger than message.max.bytes "
                    "(max.request.size) allows.",
                )
            ) from None
        except IndexError:
            raise KafkaException(
                KafkaError(
                    KafkaError._UNKNOWN_PARTITION, f"Topic {topic} has no partition {partition}."
                )
            ) from None

    def check(self) -> None:
        """Raise what `produce` would raise now before it looks at a record."""
        if self.refusal is not None:
            raise self.refusal

    def refuse(self, failure: object) -> None:
        """Raise this instead of taking records, from now on; None takes them again."""
        self.refusal = failure


# Without the collector, which would look at each of a hundred thousand: the future that it holds
# does not refer back to it.
@cython.no_gc
@cython.freelist(512)
@cython.cclass
class Delivery:
    """A delivery report that settles a future, and then calls back if that is wanted."""

    future: object
    callback: object

    def __init__(self, future: object, callback: object) -> None:
        self.future = future
        self.callback = callback

    def __call__(self, error: object, message: object) -> None:
        if not self.future.done():
            if error is None:
                self.future.set_result(message)
            else:
                self.future.set_exception(KafkaException(error))
                if self.callback is not None:
                    self.future.exception()  # it is told: nobody has to ask for it
        if self.callback is not None:
            self.callback(error, message)


@cython.cfunc
def _bytes(content: object, part: str) -> bytes:
    if content is None:
        return None
    if isinstance(content, str):
        return content.encode()
    if isinstance(content, bytes):
        return bytes(content)
    raise TypeError(f"A {part} is bytes, str or None, not {type(content).__name__}.")


@cython.cfunc
def _pairs(headers: object) -> list:
    """Headers as bytes: from a dict, or from a list of pairs."""
    pairs: list = []
    if isinstance(headers, dict):
        headers = headers.items()
    elif not isinstance(headers, list | tuple):
        raise TypeError("Headers are a dict, or a list of pairs of a str and bytes.")
    for pair in headers:
        if not isinstance(pair, tuple | list) or len(pair) != 2 or not isinstance(pair[0], str):
            raise TypeError("Headers are a dict, or a list of pairs of a str and bytes.")
        pairs.append((pair[0].encode(), _bytes(pair[1], "header's value")))
    return pairs


@cython.cfunc
def _told(pairs: object) -> object:
    """Headers as a delivery report shows them."""
    return None if not pairs else [(name.decode(), content) for name, content in pairs]
