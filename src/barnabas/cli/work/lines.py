"""Records as lines of text: how the console commands read and print them."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from struct import Struct
from typing import Any, NamedTuple

from barnabas.cli.work.refused import Refused

Header = tuple[str, bytes | None]


class Line(NamedTuple):
    key: bytes | None
    value: bytes | None
    headers: list[Header]


@dataclass(slots=True, frozen=True)
class Reading:
    """How a line is a record: `headers<TAB>key<TAB>value`, of which the value alone must be."""

    parse_key: bool = False
    parse_headers: bool = False
    ignore_error: bool = False
    key_separator: str = "\t"
    headers_delimiter: str = "\t"
    headers_separator: str = ","
    headers_key_separator: str = ":"
    null_marker: str | None = None

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> "Reading":
        """By the names that Kafka's line reader gives them."""
        known = {name.replace("_", "."): name for name in cls.__dataclass_fields__}
        told: dict[str, Any] = {}
        for name, value in properties.items():
            if name not in known:
                raise Refused(
                    f"There is no reader property {name!r}; there are {', '.join(known)}."
                )
            is_flag = cls.__dataclass_fields__[known[name]].type is bool
            told[known[name]] = value.strip().lower() == "true" if is_flag else value
        return cls(**told)

    def records(self, lines: Iterable[str]) -> Iterator[Line]:
        for number, line in enumerate(lines, 1):
            yield self._record(line.rstrip("\r\n"), number)

    def _record(self, line: str, number: int) -> Line:
        headers: list[Header] = []
        rest = line
        key: str | None = None
        if self.parse_headers:
            told, found, after = rest.partition(self.headers_delimiter)
            self._require(bool(found), "headers delimiter", number, line)
            if found:
                rest = after
                headers = self._headers(told, number, line)
        if self.parse_key:
            told, found, after = rest.partition(self.key_separator)
            self._require(bool(found), "key separator", number, line)
            if found:
                key, rest = told, after
        return Line(self._content(key), self._content(rest), headers)

    def _headers(self, text: str, number: int, line: str) -> list[Header]:
        if text == self.null_marker or not text:
            return []
        headers: list[Header] = []
        for pair in text.split(self.headers_separator):
            name, found, value = pair.partition(self.headers_key_separator)
            self._require(bool(found), "header key separator", number, line)
            headers.append((name, self._content(value) if found else None))
        return headers

    def _content(self, text: str | None) -> bytes | None:
        return None if text is None or text == self.null_marker else text.encode()

    def _require(self, is_there: bool, what: str, number: int, line: str) -> None:
        if not is_there and not self.ignore_error:
            raise Refused(f"No {what} found on line number {number}: '{line}'")


@dataclass(slots=True, frozen=True)
class Printing:
    """How a record is a line: its parts in this order, with separators between."""

    timestamp: bool = False
    partition: bool = False
    offset: bool = False
    epoch: bool = False
    headers: bool = False
    key: bool = False
    value: bool = True
    key_separator: str = "\t"
    line_separator: str = "\n"
    headers_separator: str = ","
    null_literal: str = "null"
    read_key: Callable[[bytes], str] = lambda content: content.decode(errors="replace")
    read_value: Callable[[bytes], str] = lambda content: content.decode(errors="replace")
    read_header: Callable[[bytes], str] = lambda content: content.decode(errors="replace")

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> "Printing":
        """By the names that Kafka's formatter gives them."""
        told: dict[str, Any] = {}
        for name, value in properties.items():
            kind, _, part = name.partition(".")
            if kind == "print" and part in cls.__dataclass_fields__:
                told[part] = value.strip().lower() == "true"
            elif part == "deserializer" and kind in ("key", "value", "header"):
                told[f"read_{kind}"] = deserializer(value)
            elif name in ("key.separator", "line.separator", "headers.separator", "null.literal"):
                told[name.replace(".", "_")] = value
            else:
                raise Refused(f"There is no formatter property {name!r}.")
        return cls(**told)

    def line(self, message: Any) -> str:
        parts: list[str] = []
        if self.timestamp:
            kind, at = message.timestamp()
            names = {1: "CreateTime", 2: "LogAppendTime"}
            parts.append(f"{names[kind]}:{at}" if kind in names else "NO_TIMESTAMP")
        if self.partition:
            parts.append(f"Partition:{message.partition()}")
        if self.offset:
            parts.append(f"Offset:{message.offset()}")
        if self.epoch:
            epoch = message.leader_epoch()
            parts.append(f"Epoch:{'NOT_PRESENT' if epoch is None else epoch}")
        if self.headers:
            parts.append(self._headers(message.headers()))
        if self.key:
            parts.append(self._content(message.key(), self.read_key))
        if self.value:
            parts.append(self._content(message.value(), self.read_value))
        return self.key_separator.join(parts) + self.line_separator

    def _headers(self, headers: list[Header] | None) -> str:
        if not headers:
            return "NO_HEADERS"
        return self.headers_separator.join(
            f"{name}:{self._content(value, self.read_header)}" for name, value in headers
        )

    def _content(self, content: bytes | None, read: Callable[[bytes], str]) -> str:
        return self.null_literal if content is None else read(content)


def deserializer(name: str) -> Callable[[bytes], str]:
    """What the Java class of that name does, to be printed."""
    known = {
        "StringDeserializer": lambda content: content.decode(errors="replace"),
        "ByteArrayDeserializer": lambda content: content.decode(errors="replace"),
        "BytesDeserializer": _escaped,
        "IntegerDeserializer": lambda content: str(_number(">i", content)),
        "LongDeserializer": lambda content: str(_number(">q", content)),
        "ShortDeserializer": lambda content: str(_number(">h", content)),
        "DoubleDeserializer": lambda content: repr(_number(">d", content)),
        "FloatDeserializer": lambda content: repr(_number(">f", content)),
    }
    read = known.get(name.rpartition(".")[2])
    if read is None:
        raise Refused(f"There is no deserializer {name} here; there are {', '.join(known)}.")
    return read


def _number(layout: str, content: bytes) -> Any:
    form = Struct(layout)
    if len(content) != form.size:
        raise Refused(f"{content!r} has {len(content)} bytes, not the {form.size} of such a number")
    return form.unpack(content)[0]


def _escaped(content: bytes) -> str:
    return "".join(chr(b) if 32 <= b < 127 else f"\\x{b:02X}" for b in content)
