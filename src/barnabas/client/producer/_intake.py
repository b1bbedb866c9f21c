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
else:
    from barnabas.client._message import Message, make

COMPILED: bool = cython.compiled

_CREATE_TIME = cython.declare(cython.Py_ssize_t, 1)


@cython.cclass
class Intake:
    """Takes records in, until it is closed. The fields are in `_intake.pxd`."""

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
        if callback is None:
            callback = on_delivery if on_delivery is not None else self.on_delivery
        self.take(topic, value, key, partition, callback, timestamp, headers)

    @cython.cfunc
    def take(
        self,
        topic: object,
        value: object,
        key: object,
        partition: cython.int,
        callback: object,
        timestamp: cython.longlong,
        headers: object,
    ) -> object:
        """One record goes to its batch, or to wait for its topic to be known."""
        if self.refusal is not None:
            raise self.refusal
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
                    self._append,
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
        return None

    def _append(
        self,
        topic: object,
        partition: cython.int,
        key: object,
        value: object,
        timestamp: cython.longlong,
        headers: object,
        callback: object,
        message: object,
    ) -> None:
        """What `make_room` attempts."""
        self.accumulator.append(topic, partition, key, value, timestamp, headers, callback, message)

    def check(self) -> None:
        """Raise what `produce` would raise now before it looks at a record."""
        if self.refusal is not None:
            raise self.refusal

    def refuse(self, failure: object) -> None:
        """Raise this instead of taking records, from now on; None takes them again."""
        self.refusal = failure


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
