"""Decodes what clients push: MetricsData of OpenTelemetry (OTLP v1), which is Protobuf.

A small decoder of the fields that are shown: protobuf is no dependency of a broker, and a decoder
of our own can stop at a bound. Everything comes from clients and may be anything.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from struct import error as struct_error
from struct import unpack_from
from typing import Final, TypeAlias

from barnabas.wire.errors import ErrorCode, KafkaError

MAX_FIELDS: Final = 20_000
"""The fields of one push. The Java client has about 6,000 if it pushes all its metrics."""

MAX_TEXT_CHARACTERS: Final = 256
"""Names and texts of labels end there: each point of a histogram has copies of its name."""

FIELDS_OF_STEP: Final = 200
"""Fields that are decoded before other requests get their turn: a third of a millisecond."""

_MAX_ATTRIBUTES = 32
_MAX_VARINT_BYTES = 10

FieldValue: TypeAlias = "int | memoryview"


class OtlpWireType(IntEnum):
    """How a field of Protobuf is encoded."""

    VARINT = 0
    FIXED64 = 1
    BYTES = 2
    FIXED32 = 5


class Temporality(IntEnum):
    """What a sum counts: all since the client started, or what is new since its last push."""

    UNSPECIFIED = 0
    DELTA = 1
    CUMULATIVE = 2


@dataclass(slots=True, frozen=True)
class MetricPoint:
    """One value of one metric."""

    name: str
    labels: tuple[tuple[str, str], ...]
    value: float
    is_counter: bool
    is_delta: bool


class OtlpDecoder:
    """Decodes one MetricsData. `steps` is iterated over; then `points` has the result."""

    def __init__(self, content: bytes) -> None:
        self.points: list[MetricPoint] = []
        self._content = memoryview(content)
        self._fields = 0

    def steps(self) -> Iterator[None]:
        """Yields between steps. Raises KafkaError INVALID_RECORD."""
        done = 0
        try:
            for _ in self._metrics_data():
                if self._fields - done >= FIELDS_OF_STEP:
                    done = self._fields
                    yield
        except (ValueError, IndexError, struct_error, RecursionError):
            raise KafkaError(
                ErrorCode.INVALID_RECORD, "The metrics are not MetricsData of OTLP v1."
            ) from None

    def _metrics_data(self) -> Iterator[None]:
        for number, resource_metrics in self._fields_of(self._content):
            yield
            if number != 1:
                continue
            labels: tuple[tuple[str, str], ...] = ()
            for inner, value in self._fields_of(_message(resource_metrics)):
                if inner == 1:
                    labels = self._attributes(_message(value), 1)
                elif inner == 2:
                    yield from self._scope_metrics(_message(value), labels)

    def _scope_metrics(
        self, message: memoryview, labels: tuple[tuple[str, str], ...]
    ) -> Iterator[None]:
        for number, value in self._fields_of(message):
            yield
            if number == 2:
                yield from self._metric(_message(value), labels)

    def _metric(self, message: memoryview, labels: tuple[tuple[str, str], ...]) -> Iterator[None]:
        name = ""
        data: list[tuple[int, memoryview]] = []
        for number, value in self._fields_of(message):
            yield
            if number == 1:
                name = _text(value)
            elif number in (5, 7, 9):  # gauge, sum, histogram
                data.append((number, _message(value)))
        for kind, content in data:
            yield from self._data(kind, name, content, labels)

    def _data(
        self, kind: int, name: str, message: memoryview, labels: tuple[tuple[str, str], ...]
    ) -> Iterator[None]:
        temporality, is_monotonic = 0, kind == 9
        points = []
        for number, value in self._fields_of(message):
            yield
            if number == 1:
                points.append(_message(value))
            elif number == 2 and isinstance(value, int):
                temporality = value
            elif number == 3 and kind == 7:
                is_monotonic = bool(value)
        is_delta = kind != 5 and temporality == Temporality.DELTA
        for point in points:
            if kind == 9:
                self._histogram_point(point, name, labels, is_delta)
            else:
                self._number_point(point, name, labels, is_monotonic, is_delta)
            yield

    def _number_point(
        self,
        message: memoryview,
        name: str,
        labels: tuple[tuple[str, str], ...],
        is_counter: bool,
        is_delta: bool,
    ) -> None:
        number_value: float | None = None
        own: list[tuple[str, str]] = []
        for number, value in self._fields_of(message):
            if number == 4:
                number_value = _double(value)
            elif number == 6:
                number_value = float(_signed(value))
            elif number == 7:
                own += self._attribute(_message(value))
        if number_value is not None:
            self.points.append(
                MetricPoint(name, (*labels, *own), number_value, is_counter, is_delta)
            )

    def _histogram_point(
        self,
        message: memoryview,
        name: str,
        labels: tuple[tuple[str, str], ...],
        is_delta: bool,
    ) -> None:
        """Of a histogram, the count and the sum are shown."""
        parts: dict[str, float] = {}
        own: list[tuple[str, str]] = []
        for number, value in self._fields_of(message):
            if number == 4:
                parts[".count"] = float(_signed(value))
            elif number == 5:
                parts[".sum"] = _double(value)
            elif number == 9:
                own += self._attribute(_message(value))
        for suffix, part in parts.items():
            self.points.append(MetricPoint(name + suffix, (*labels, *own), part, True, is_delta))

    def _attributes(self, message: memoryview, field: int) -> tuple[tuple[str, str], ...]:
        found: list[tuple[str, str]] = []
        for number, value in self._fields_of(message):
            if number == field and len(found) < _MAX_ATTRIBUTES:
                found += self._attribute(_message(value))
        return tuple(found)

    def _attribute(self, message: memoryview) -> list[tuple[str, str]]:
        """Returns a key with its value, or nothing for a value that is no scalar."""
        key, text = "", None
        for number, value in self._fields_of(message):
            if number == 1:
                key = _text(value)
            elif number == 2:
                text = self._any_value(_message(value))
        return [(key, text)] if key and text is not None else []

    def _any_value(self, message: memoryview) -> str | None:
        for number, value in self._fields_of(message):
            match number:
                case 1:
                    return _text(value)
                case 2:
                    return "true" if value else "false"
                case 3 if isinstance(value, int):
                    return str(value - (1 << 64) if value >> 63 else value)
                case 4:
                    return str(_double(value))
        return None

    def _fields_of(self, message: memoryview) -> Iterator[tuple[int, FieldValue]]:
        """Yields numbers and values: integers, or the bytes of other types."""
        position, end = 0, len(message)
        while position < end:
            self._fields += 1
            if self._fields > MAX_FIELDS:
                raise ValueError("too many fields")
            tag, position = _varint(message, position)
            number, kind = tag >> 3, tag & 7
            if kind == OtlpWireType.VARINT:
                value, position = _varint(message, position)
                yield number, value
                continue
            if kind == OtlpWireType.BYTES:
                size, position = _varint(message, position)
            elif kind == OtlpWireType.FIXED64:
                size = 8
            elif kind == OtlpWireType.FIXED32:
                size = 4
            else:
                raise ValueError("an unknown type of field")
            if size > end - position:
                raise ValueError("a field is cut off")
            yield number, message[position : position + size]
            position += size


def _varint(message: memoryview, position: int) -> tuple[int, int]:
    value = 0
    for index in range(_MAX_VARINT_BYTES):
        byte = message[position + index]
        value |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            return value & 0xFFFF_FFFF_FFFF_FFFF, position + index + 1
    raise ValueError("a number has too many bytes")


def _message(value: FieldValue) -> memoryview:
    if isinstance(value, int):
        raise ValueError("a number instead of a message")
    return value


def _text(value: FieldValue) -> str:
    return bytes(_message(value)).decode()[:MAX_TEXT_CHARACTERS]


def _double(value: FieldValue) -> float:
    number: float = unpack_from("<d", _message(value))[0]
    return number


def _signed(value: FieldValue) -> int:
    number: int = unpack_from("<q", _message(value))[0]
    return number
