"""Reading lines as records and formatting records as lines, as Kafka's console commands do.

Keys and values stay bytes; only separators and markers are text.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from struct import Struct
from typing import Any, NamedTuple

from barnabas.cli.operations.errors import CommandError

Header = tuple[str, bytes | None]


class InputRecord(NamedTuple):
    key: bytes | None
    value: bytes | None
    headers: list[Header]


@dataclass(slots=True, frozen=True)
class LineReader:
    """Parses a line `headers<TAB>key<TAB>value`; headers and key are optional."""

    parse_key: bool = False
    parse_headers: bool = False
    ignore_error: bool = False
    key_separator: str = "\t"
    headers_delimiter: str = "\t"
    headers_separator: str = ","
    headers_key_separator: str = ":"
    null_marker: str | None = None

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> "LineReader":
        """Takes the property names of Kafka's line reader, and ignores others, as it does."""
        return cls(
            **_field_values(cls, {field.name: field.name for field in fields(cls)}, properties)
        )

    def records(self, lines: Iterable[bytes]) -> Iterator[InputRecord]:
        for number, line in enumerate(lines, 1):
            yield self._record(line.rstrip(b"\r\n"), number)

    def _record(self, line: bytes, number: int) -> InputRecord:
        headers: list[Header] = []
        key, rest = None, line
        if self.parse_headers:
            before, separator, after = rest.partition(self.headers_delimiter.encode())
            self._require(bool(separator), "headers delimiter", number, line)
            if separator:
                rest = after
                headers = self._headers(before, number, line)
        if self.parse_key:
            before, separator, after = rest.partition(self.key_separator.encode())
            self._require(bool(separator), "key separator", number, line)
            if separator:
                key, rest = self._content(before), after
        return InputRecord(key, self._content(rest), headers)

    def _headers(self, text: bytes, number: int, line: bytes) -> list[Header]:
        if not text or self._content(text) is None:
            return []
        headers: list[Header] = []
        for pair in text.split(self.headers_separator.encode()):
            name, separator, value = pair.partition(self.headers_key_separator.encode())
            self._require(bool(separator), "header key separator", number, line)
            headers.append((_text(name), self._content(value) if separator else None))
        return headers

    def _content(self, content: bytes) -> bytes | None:
        is_nothing = self.null_marker is not None and content == self.null_marker.encode()
        return None if is_nothing else content

    def _require(self, is_there: bool, what: str, number: int, line: bytes) -> None:
        if not is_there and not self.ignore_error:
            raise CommandError(f"No {what} found on line number {number}: '{_text(line)}'")


Deserializer = Callable[[bytes], bytes]
"""Returns the bytes to print for a value."""


def _unchanged(content: bytes) -> bytes:
    return content


@dataclass(slots=True, frozen=True)
class LineFormatter:
    """Formats a record as its parts in this order, with separators between."""

    timestamp: bool = False
    partition: bool = False
    offset: bool = False
    delivery: bool = False
    epoch: bool = False
    headers: bool = False
    key: bool = False
    value: bool = True
    key_separator: str = "\t"
    line_separator: str = "\n"
    headers_separator: str = ","
    null_literal: str = "null"
    read_key: Deserializer = _unchanged
    read_value: Deserializer = _unchanged
    read_header: Deserializer = _unchanged

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> "LineFormatter":
        """Takes the property names of Kafka's formatter, and ignores others, as it does."""
        names = {f"print_{part}": part for part in _PARTS}
        names |= {word: word for word in _WORDS}
        values = _field_values(cls, names, properties)
        for part in "key", "value", "header":
            if (name := properties.get(f"{part}.deserializer")) is not None:
                values[f"read_{part}"] = deserializer(name)
        return cls(**values)

    def line(self, message: Any) -> bytes:
        parts: list[bytes] = []
        if self.timestamp:
            kind, at = message.timestamp()
            named = f"{_TIMESTAMPS[kind]}:{at}" if kind in _TIMESTAMPS else "NO_TIMESTAMP"
            parts.append(named.encode())
        if self.partition:
            parts.append(b"Partition:%d" % message.partition())
        if self.offset:
            parts.append(b"Offset:%d" % message.offset())
        if self.delivery:
            parts.append(
                b"Delivery:NOT_PRESENT"
            )  # the delivery count, which only share groups have
        if self.epoch:
            epoch = message.leader_epoch()
            parts.append(b"Epoch:NOT_PRESENT" if epoch is None else b"Epoch:%d" % epoch)
        if self.headers:
            parts.append(self._headers(message.headers()))
        if self.key:
            parts.append(self._content(message.key(), self.read_key))
        if self.value:
            parts.append(self._content(message.value(), self.read_value))
        return self.key_separator.encode().join(parts) + self.line_separator.encode()

    def _headers(self, headers: list[Header] | None) -> bytes:
        if not headers:
            return b"NO_HEADERS"
        return self.headers_separator.encode().join(
            name.encode() + b":" + self._content(value, self.read_header) for name, value in headers
        )

    def _content(self, content: bytes | None, read: Deserializer) -> bytes:
        return self.null_literal.encode() if content is None else read(content)


_PARTS = ("timestamp", "partition", "offset", "delivery", "epoch", "headers", "key", "value")
_WORDS = ("key_separator", "line_separator", "headers_separator", "null_literal")
_TIMESTAMPS = {1: "CreateTime", 2: "LogAppendTime"}


def deserializer(name: str) -> Deserializer:
    """Returns the deserializer that corresponds to a Java class."""
    deserializers: dict[str, Deserializer] = {
        "StringDeserializer": lambda content: _text(content).encode(),
        "ByteArrayDeserializer": _unchanged,
        "BytesDeserializer": _escaped,
        "IntegerDeserializer": lambda content: _number(">i", content),
        "LongDeserializer": lambda content: _number(">q", content),
        "ShortDeserializer": lambda content: _number(">h", content),
        "DoubleDeserializer": lambda content: _number(">d", content),
        "FloatDeserializer": lambda content: _number(">f", content),
    }
    read = deserializers.get(name.rpartition(".")[2])
    if read is None:
        raise CommandError(f"Unknown deserializer {name}; use one of {', '.join(deserializers)}.")
    return read


def _field_values(
    kind: type[Any], names: Mapping[str, str], properties: Mapping[str, str]
) -> dict[str, Any]:
    """Returns the field values that properties set; property names have dots for underscores."""
    flags = {field.name for field in fields(kind) if field.type is bool}
    values: dict[str, Any] = {}
    for name, field in names.items():
        value = properties.get(name.replace("_", "."))
        if value is not None:
            values[field] = value.strip().lower() == "true" if field in flags else value
    return values


def _number(layout: str, content: bytes) -> bytes:
    form = Struct(layout)
    if len(content) != form.size:
        raise CommandError(
            f"{content!r} has {len(content)} bytes, not the {form.size} of such a number"
        )
    return str(form.unpack(content)[0]).encode()


def _escaped(content: bytes) -> bytes:
    characters = (chr(b) if 32 <= b < 127 else f"\\x{b:02X}" for b in content)
    return "".join(characters).encode()


def _text(content: bytes) -> str:
    return content.decode(errors="replace")
