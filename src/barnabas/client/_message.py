# cython: language_level=3
"""A record as users see it: consumed, or in a delivery report.

There is one for every record, so it is compiled, and its numbers are C integers until they are
read. The fields are declared in `_message.pxd`.
"""

from __future__ import annotations

try:
    import cython

    if not cython.compiled:  # Cython's own pure-Python shim is many times slower than ours
        raise ImportError
except ImportError:
    from barnabas.wire.records import _uncompiled as cython

COMPILED: bool = cython.compiled


# Without the garbage collector, which would traverse a million of them: nothing in a record refers
# back to it.
@cython.no_gc
@cython.freelist(512)
@cython.cclass
class Message:
    """A record, or an error that `poll` returns; `error()` says which."""

    def __init__(
        self,
        topic: object = None,
        partition: object = None,
        offset: object = None,
        key: object = None,
        value: object = None,
        headers: object = None,
        error: object = None,
        timestamp: object = None,
        latency: object = None,
        leader_epoch: object = None,
    ) -> None:
        if timestamp is None:
            timestamp = (0, 0)
        elif not isinstance(timestamp, tuple) or len(timestamp) != 2:
            raise TypeError("timestamp must be a tuple of (int, int)")
        self._topic = topic
        self._partition = -1 if partition is None else partition
        self._offset = -1 if offset is None else offset
        self._key = key
        self._value = value
        self._headers = headers
        self._error = error
        self._timestamp_type, self._timestamp = timestamp
        self._latency = latency
        self._leader_epoch = -1 if leader_epoch is None else leader_epoch

    def topic(self) -> object:
        return self._topic

    def partition(self) -> object:
        return self._partition if self._partition >= 0 else None

    def offset(self) -> object:
        return self._offset if self._offset >= 0 else None

    def key(self) -> object:
        return self._key

    def value(self) -> object:
        return self._value

    def deserialized_key(self) -> object:
        return self._key

    def deserialized_value(self) -> object:
        return self._value

    def headers(self) -> object:
        """Returns pairs of a name and bytes, or None if there are none."""
        return self._headers

    def error(self) -> object:
        """Returns the error that this message carries instead of a record, or None."""
        return self._error

    def timestamp(self) -> object:
        """Returns the type (TIMESTAMP_CREATE_TIME ...) and the milliseconds since 1970."""
        return self._timestamp_type, self._timestamp

    def latency(self) -> object:
        """Returns the seconds from `produce` to the acknowledgement, in a delivery report."""
        if self._latency is None or self._latency < 0:
            return None
        return float(self._latency)

    def leader_epoch(self) -> object:
        return self._leader_epoch if self._leader_epoch >= 0 else None

    def set_topic(self, topic: object) -> None:
        self._topic = topic

    def set_key(self, key: object) -> None:
        self._key = key

    def set_value(self, value: object) -> None:
        self._value = value

    def set_headers(self, headers: object) -> None:
        self._headers = headers

    def set_error(self, error: object) -> None:
        self._error = error

    def __len__(self) -> int:
        """Returns the size of the value."""
        return 0 if self._value is None else len(self._value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Message) and self._fields() == other._fields()

    def _fields(self) -> tuple:
        return (
            self._topic,
            self._partition,
            self._offset,
            self._key,
            self._value,
            self._headers,
            self._error,
            self._timestamp_type,
            self._timestamp,
            self._leader_epoch,
        )

    def __repr__(self) -> str:
        position = f"topic={self._topic!r}, partition={self.partition()}, offset={self.offset()}"
        if self._error is not None:
            return f"Message({position}, error={self._error!r})"
        return f"Message({position}, key={self._key!r}, value={self._value!r})"


@cython.ccall
def make(
    topic: object,
    partition: cython.int,
    offset: cython.longlong,
    leader_epoch: cython.int,
    timestamp_type: cython.int,
    timestamp: cython.longlong,
    key: object,
    value: object,
    headers: object,
) -> Message:
    """Returns a message without the checks of the constructor: for compiled callers."""
    message: Message = Message.__new__(Message)
    message._topic = topic
    message._partition = partition
    message._offset = offset
    message._leader_epoch = leader_epoch
    message._timestamp_type = timestamp_type
    message._timestamp = timestamp
    message._key = key
    message._value = value
    message._headers = headers
    if not cython.compiled:
        message._error = message._latency = None
    return message
