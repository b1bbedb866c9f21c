"""Formatters of consumed records: format strings such as "%k %v", JSON, internal topics."""

import base64
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from barnabas.cli.operations.errors import CommandError

if TYPE_CHECKING:
    from barnabas.cli.operations.schema_records import DecodedRecord, RecordDecoder

DEFAULT_FORMAT = r"%v\n"

_PARTS: dict[str, Callable[[Any], bytes]] = {
    "k": lambda message: message.key() or b"",
    "v": lambda message: message.value() or b"",
    "s": lambda message: message.value() or b"",
    "o": lambda message: b"%d" % message.offset(),
    "p": lambda message: b"%d" % message.partition(),
    "t": lambda message: message.topic().encode(),
    "T": lambda message: b"%d" % message.timestamp()[1],
    "h": lambda message: _headers(message),
    "K": lambda message: b"%d" % _size(message.key()),
    "S": lambda message: b"%d" % _size(message.value()),
    "%": lambda _: b"%",
}
"""The letters of kcat, and %v, which means the same as its %s."""

_ESCAPES = {"n": b"\n", "r": b"\r", "t": b"\t", "0": b"\0", "\\": b"\\"}
_PIECE = re.compile(r"%(?P<part>.?)|\\(?P<escape>.)|[^%\\]+|\\", re.DOTALL)


def format_string_formatter(text: str) -> Callable[[Any], bytes]:
    """Returns a formatter for a format string. Raises CommandError if it has an unknown letter."""
    pieces: list[Callable[[Any], bytes]] = []
    for match in _PIECE.finditer(text):
        part, escape = match["part"], match["escape"]
        if part is None:
            literal = match[0].encode() if escape is None else _ESCAPES.get(escape)
            pieces.append(_always(match[0].encode() if literal is None else literal))
        elif part in _PARTS:
            pieces.append(_PARTS[part])
        else:
            letters = " ".join(f"%{letter}" for letter in _PARTS)
            raise CommandError(f"The format has %{part}, which is not one of {letters}")
    return lambda message: b"".join(piece(message) for piece in pieces)


def format_as_json(message: Any) -> bytes:
    """Returns one line. Bytes that are not UTF-8 become an object with their base64."""
    return json.dumps(_as_object(message), ensure_ascii=False).encode() + b"\n"


class SchemaFormatter:
    """Formats records whose keys and values have schemas of a registry, as JSON."""

    def __init__(self, decoder: "RecordDecoder", layout: str | None) -> None:
        """`layout` is a format string; None prints one JSON object for each record."""
        self._decoder = decoder
        self._format = None if layout is None else format_string_formatter(layout)

    def line(self, message: Any) -> bytes:
        from barnabas.cli.operations.schema_records import as_json_text

        decoded = self._decoder.decode(message)
        if self._format is not None:
            return self._format(_DecodedMessage(message, decoded))
        parts = {"key": decoded.key, "value": decoded.value}
        parts = {
            part: _text(content) if isinstance(content, bytes) else content
            for part, content in parts.items()
        }
        return as_json_text(_as_object(message) | parts) + b"\n"


class _DecodedMessage:
    """A message whose key and value are the bytes to print."""

    def __init__(self, message: Any, decoded: "DecodedRecord") -> None:
        self._message = message
        self._decoded = decoded

    def __getattr__(self, name: str) -> Any:
        return getattr(self._message, name)

    def key(self) -> bytes | None:
        return _printed(self._decoded.key)

    def value(self) -> bytes | None:
        return _printed(self._decoded.value)


def _printed(content: Any) -> bytes | None:
    from barnabas.cli.operations.schema_records import as_json_text

    return content if content is None or isinstance(content, bytes) else as_json_text(content)


def _as_object(message: Any) -> dict[str, Any]:
    return {
        "topic": message.topic(),
        "partition": message.partition(),
        "offset": message.offset(),
        "timestamp": message.timestamp()[1],
        "key": _text(message.key()),
        "value": _text(message.value()),
        "headers": [[name, _text(value)] for name, value in message.headers() or []],
    }


def _always(literal: bytes) -> Callable[[Any], bytes]:
    return lambda _: literal


def _headers(message: Any) -> bytes:
    pairs = message.headers() or []
    return b",".join(name.encode() + b"=" + (value or b"") for name, value in pairs)


def _size(content: bytes | None) -> int:
    return -1 if content is None else len(content)


def _text(content: bytes | None) -> str | dict[str, str] | None:
    if content is None:
        return None
    try:
        return content.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(content).decode()}


_TYPE_BYTES = 2
"""A key starts with its type, a value with its version."""


@dataclass(slots=True, frozen=True)
class InternalTopicFormatter:
    """Formats records of an internal topic as Kafka's message formatters do: one JSON line each.

    A record whose type is not in `record_types`, or whose version is unknown, gives nothing.
    """

    topic: str
    record_types: frozenset[int]

    def line(self, message: Any) -> bytes:
        """Returns one line of JSON. Kafka's own formatters print no line separator."""
        from barnabas.cli.operations.dump.decoders import record_types
        from barnabas.wire.as_json import as_json
        from barnabas.wire.errors import KafkaError, ProtocolViolation

        key, value = message.key(), message.value()
        number = -1 if key is None else int.from_bytes(key[:_TYPE_BYTES])
        if number not in self.record_types:
            return b""
        key_type, value_type = record_types(self.topic)[number]
        try:
            key_data = as_json(key_type.read_exactly(key, 0, _TYPE_BYTES), 0)
            value_data = None
            if value is not None:
                version = int.from_bytes(value[:_TYPE_BYTES])
                decoded, _ = value_type.read(value, version, _TYPE_BYTES)
                value_data = {"version": version, "data": as_json(decoded, version)}
        except (KafkaError, ProtocolViolation):
            return b""
        record = {"key": {"type": number, "data": key_data}, "value": value_data}
        return json.dumps(record, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"


INTERNAL_TOPIC_FORMATTERS = {
    "OffsetsMessageFormatter": InternalTopicFormatter("__consumer_offsets", frozenset((0, 1))),
    "GroupMetadataMessageFormatter": InternalTopicFormatter("__consumer_offsets", frozenset((2,))),
    "TransactionLogMessageFormatter": InternalTopicFormatter(
        "__transaction_state", frozenset((0,))
    ),
}
"""Kafka's formatter classes, by the last part of their names."""
