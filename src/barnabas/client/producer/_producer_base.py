# cython: language_level=3, boundscheck=False, wraparound=False
"""The base class of `Producer`: `produce`, from its arguments to the batch.

Hot path: runs in the user's thread, once per record. `Producer` inherits it compiled, because
parsing keyword arguments in Python would cost more than encoding the record.
"""

from __future__ import annotations

from functools import partial
from time import time

from barnabas.client.errors import KafkaError, KafkaException

try:
    import cython

    if not cython.compiled:  # Cython's own pure-Python shim is many times slower than ours
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
class ProducerBase:
    """Appends records to the accumulator. The fields are in `_producer_base.pxd`."""

    def __init__(
        self,
        accumulator: object,
        on_delivery: object = None,
        intercept: object = None,
        wait_for_space: object = None,
    ) -> None:
        """`wait_for_space(attempt)` is called when the buffer is full: it retries `attempt`."""
        self.accumulator = accumulator
        self.on_delivery = on_delivery
        self.intercept = intercept
        self.wait_for_space = wait_for_space
        self.produce_error = None

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
        """Appends a record to the batch of its partition, which is sent soon.

        `on_delivery` (or `callback`) is called with an error or None and the Message, inside a
        later `poll` or `flush`. Raises BufferError if the buffer is full: poll and try again.
        """
        if callback is None:
            callback = on_delivery if on_delivery is not None else self.on_delivery
        self.append_record(topic, value, key, partition, callback, timestamp, headers)

    @cython.cfunc
    def append_record(
        self,
        topic: object,
        value: object,
        key: object,
        partition: cython.int,
        callback: object,
        timestamp: cython.longlong,
        headers: object,
    ) -> object:
        """Appends a record to its batch, or lets it wait for its topic's metadata."""
        if self.produce_error is not None:
            raise self.produce_error
        if self.intercept is not None:
            topic, value, key, partition, timestamp, headers, callback = self.intercept(
                topic, value, key, partition, timestamp, headers, callback
            )
        if type(topic) is not str:
            raise TypeError(f"The topic must be str, not {type(topic).__name__}.")
        content: bytes = value if type(value) is bytes else _bytes(value, "value")
        encoded: bytes = None if key is None else key if type(key) is bytes else _bytes(key, "key")
        pairs: list = None if headers is None else _pairs(headers)
        now_s: cython.double = time()
        if timestamp <= 0:
            timestamp = int(now_s * 1000)
        message: Message = None
        if callback is not None:
            message = make(
                topic,
                partition,
                -1,
                -1,
                _CREATE_TIME,
                timestamp,
                encoded,
                content,
                _report_headers(pairs),
            )
            message._latency = now_s
        try:
            self.accumulator.append(
                topic, partition, encoded, content, timestamp, pairs, callback, message
            )
        except BufferError:
            if self.wait_for_space is None:
                raise
            self.wait_for_space(
                partial(
                    self._append,
                    topic,
                    partition,
                    encoded,
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
                    "(max.request.size) allows: set it higher, here and for the topic.",
                )
            ) from None
        except IndexError:
            raise KafkaException(
                KafkaError(
                    KafkaError._UNKNOWN_PARTITION,
                    f"Topic {topic} has no partition {partition}: they are numbered from 0.",
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
        """The attempt that `wait_for_space` repeats."""
        self.accumulator.append(topic, partition, key, value, timestamp, headers, callback, message)

    def raise_produce_error(self) -> None:
        """Raises the error that `produce` raises for any record, if there is one."""
        if self.produce_error is not None:
            raise self.produce_error

    def set_produce_error(self, error: object) -> None:
        """Sets the error that `produce` raises from now on; None accepts records again."""
        self.produce_error = error


@cython.cfunc
def _bytes(content: object, part: str) -> bytes:
    if content is None:
        return None
    if isinstance(content, str):
        return content.encode()
    if isinstance(content, bytes):
        return bytes(content)
    raise TypeError(
        f"A {part} must be bytes, str or None, not {type(content).__name__}. Encode it first, for "
        "instance with json.dumps(), or use a SerializingProducer."
    )


@cython.cfunc
def _pairs(headers: object) -> list:
    """Encodes headers: a dict or a list of pairs."""
    pairs: list = []
    if isinstance(headers, dict):
        headers = headers.items()
    elif not isinstance(headers, list | tuple):
        raise TypeError("Headers must be a dict, or a list of pairs of str and bytes.")
    for pair in headers:
        if not isinstance(pair, tuple | list) or len(pair) != 2 or not isinstance(pair[0], str):
            raise TypeError("Headers must be a dict, or a list of pairs of str and bytes.")
        pairs.append((pair[0].encode(), _bytes(pair[1], "header value")))
    return pairs


@cython.cfunc
def _report_headers(pairs: object) -> object:
    """Returns the headers as the Message of a delivery report has them."""
    return None if not pairs else [(name.decode(), content) for name, content in pairs]
