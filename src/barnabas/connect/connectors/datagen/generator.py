"""Random columns for an Avro schema, with the hints of Confluent's Avro Random Generator.

`arg.properties` of a type can have `options`, `range` (`min`, `max`, which is exclusive),
`iteration` (`start`, `step`, `restart`), `regex`, `length` (a number, or `min` and `max`),
`prefix`, `suffix`, `odds` (of true, or of null), and `keys` (of a map).

The values of a row depend only on the seed and its number, so a position is enough to continue.
"""

from __future__ import annotations

import string
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from barnabas.connect.connectors.datagen.patterns import (
    CharactersPattern,
    RepeatedPattern,
    TextPattern,
    parse_pattern,
)
from barnabas.connect.data.schema import (
    DATE,
    TIME,
    TIMESTAMP,
    ConnectSchema,
    SchemaField,
    Type,
    decimal_schema,
)
from barnabas.connect.errors import InvalidConfigError

CHUNK_ROWS: Final = 4096
"""RowRange that are made at once, from one state of the random generator."""

ARGUMENTS: Final = "arg.properties"

_INTEGERS = {"int": (Type.INT32, 32), "long": (Type.INT64, 64)}
_LOGICAL = {
    ("int", "date"): DATE,
    ("int", "time-millis"): TIME,
    ("long", "timestamp-millis"): TIMESTAMP,
}


@dataclass(slots=True, frozen=True)
class RowRange:
    """The rows to make values for."""

    start: int
    """The number of the first row."""
    count: int
    random: np.random.Generator


class ColumnGenerator(ABC):
    def __init__(self, schema: ConnectSchema) -> None:
        self.schema = schema

    @abstractmethod
    def generate(self, rows: RowRange) -> pa.Array:
        """Returns a value of `schema` for each row."""


class RecordGenerator:
    """Makes the rows of a schema."""

    def __init__(self, avro: Any) -> None:
        self._root = build(avro)
        if self._root.schema.type is not Type.STRUCT:
            raise InvalidConfigError("The schema has to be a record.")
        self.schema = self._root.schema

    def generate(self, seed: int, task: int, start: int, count: int) -> pa.Array:
        """Returns rows from a number on."""
        parts = []
        end = start + count
        for chunk in range(start // CHUNK_ROWS, -(-end // CHUNK_ROWS)):
            first = chunk * CHUNK_ROWS
            random = np.random.default_rng([seed & (1 << 64) - 1, task, chunk])
            rows = self._root.generate(RowRange(first, CHUNK_ROWS, random))
            low, high = max(start, first), min(end, first + CHUNK_ROWS)
            parts.append(rows.slice(low - first, high - low))
        return pa.concat_arrays(parts) if parts else pa.array([], self.schema.arrow_type())


def build(avro: Any, namespace: str = "") -> ColumnGenerator:
    """Raises ConfigError for a schema that cannot be used."""
    if isinstance(avro, str):
        avro = {"type": avro}
    if isinstance(avro, list):
        return _build_union(avro, namespace)
    if not isinstance(avro, Mapping) or "type" not in avro:
        raise InvalidConfigError(f"This is no Avro schema: {avro!r}")
    arguments = avro.get(ARGUMENTS) or {}
    if not isinstance(arguments, Mapping):
        raise InvalidConfigError(f"{ARGUMENTS} has to be an object, and is {arguments!r}")
    kind = avro["type"]
    if not isinstance(kind, str):  # {"type": {"type": "string", ...}, ...}
        return build(kind, namespace)
    generator = _build_type(kind, avro, arguments, namespace)
    if "options" in arguments:
        return OptionsGenerator(generator.schema, arguments["options"])
    return generator


def _build_type(
    kind: str, avro: Mapping[str, Any], arguments: Mapping[str, Any], namespace: str
) -> ColumnGenerator:
    match kind:
        case "record":
            namespace = avro.get("namespace", namespace)
            return StructsGenerator(_full_name(avro, namespace), avro, namespace)
        case "int" | "long":
            return _build_integer(kind, avro, arguments)
        case "float" | "double":
            schema = ConnectSchema(Type.FLOAT32 if kind == "float" else Type.FLOAT64)
            return FloatsGenerator(schema, arguments)
        case "boolean":
            return BooleansGenerator(float(arguments.get("odds", 0.5)))
        case "string":
            return StringsGenerator(arguments)
        case "bytes" | "fixed":
            return _build_bytes(avro, arguments)
        case "enum":
            schema = ConnectSchema(Type.STRING, name=_full_name(avro, namespace))
            return OptionsGenerator(schema, avro.get("symbols", ()))
        case "array":
            return ArraysGenerator(build(avro["items"], namespace), arguments)
        case "map":
            keys = build({"type": "string", ARGUMENTS: arguments.get("keys", {})})
            return MapsGenerator(keys, build(avro["values"], namespace), arguments)
        case "null":
            raise InvalidConfigError("null can only be used in a union.")
    raise InvalidConfigError(f"Avro type '{kind}' is not supported.")


def _full_name(avro: Mapping[str, Any], namespace: str) -> str:
    name: str = avro.get("name", "")
    return f"{namespace}.{name}" if namespace and "." not in name else name


def _build_union(branches: Sequence[Any], namespace: str) -> ColumnGenerator:
    others = [branch for branch in branches if branch != "null"]
    if len(others) != 1:
        raise InvalidConfigError("Only unions of null and one other type are supported.")
    generator = build(others[0], namespace)
    if len(others) == len(branches):
        return generator
    arguments = others[0].get(ARGUMENTS, {}) if isinstance(others[0], Mapping) else {}
    return OptionalGenerator(generator, float(arguments.get("null.odds", 0.5)))


def _build_integer(
    kind: str, avro: Mapping[str, Any], arguments: Mapping[str, Any]
) -> ColumnGenerator:
    type_, bits = _INTEGERS[kind]
    logical = _LOGICAL.get((kind, avro.get("logicalType", "")))
    schema = ConnectSchema(type_, name=logical, version=1 if logical else None)
    if "iteration" in arguments:
        return IterationGenerator(schema, arguments["iteration"])
    low, high = _range(arguments, -(1 << (bits - 1)), (1 << (bits - 1)) - 1)
    if logical == TIME and "range" not in arguments:
        low, high = 0, 86_400_000
    elif logical in (DATE, TIMESTAMP) and "range" not in arguments:
        low, high = (0, 30_000) if logical == DATE else (0, 2_000_000_000_000)
    return IntegersGenerator(schema, int(low), int(high))


def _build_bytes(avro: Mapping[str, Any], arguments: Mapping[str, Any]) -> ColumnGenerator:
    if avro.get("logicalType") == "decimal":
        return DecimalsGenerator(
            int(avro.get("precision", 18)), int(avro.get("scale", 0)), arguments
        )
    length = (
        avro["size"] if avro["type"] == "fixed" else arguments.get("length", {"min": 8, "max": 17})
    )
    return BytesGenerator(*_length(length))


def _range(arguments: Mapping[str, Any], low: float, high: float) -> tuple[float, float]:
    given = arguments.get("range", {})
    if not isinstance(given, Mapping):
        raise InvalidConfigError(f"range has to be an object with min and max, and is {given!r}")
    low, high = given.get("min", low), given.get("max", high)
    if low >= high:
        raise InvalidConfigError(f"The range from {low} to {high} is empty.")
    return low, high


def _length(length: Any) -> tuple[int, int]:
    """Returns the least length, and the one that lengths are smaller than."""
    if isinstance(length, Mapping):
        low, high = int(length.get("min", 0)), int(length.get("max", 17))
    else:
        low = high = int(length)
    if low < 0 or high < low:
        raise InvalidConfigError(f"The length from {low} to {high} is not possible.")
    return low, max(high, low + 1)


def _to_type(values: pa.Array, schema: ConnectSchema) -> pa.Array:
    """Casts numbers, which may stand for dates and times."""
    if schema.name in (DATE, TIME):
        return values.cast(pa.int32()).cast(schema.arrow_type())
    return values.cast(schema.arrow_type())


class IntegersGenerator(ColumnGenerator):
    def __init__(self, schema: ConnectSchema, low: int, high: int) -> None:
        super().__init__(schema)
        self._low, self._high = low, high

    def generate(self, rows: RowRange) -> pa.Array:
        values = rows.random.integers(self._low, self._high, size=rows.count, dtype=np.int64)
        return _to_type(pa.array(values), self.schema)


class IterationGenerator(ColumnGenerator):
    """Counts up or down, and starts again before `restart`."""

    def __init__(self, schema: ConnectSchema, arguments: Any) -> None:
        super().__init__(schema)
        if not isinstance(arguments, Mapping) or "start" not in arguments:
            raise InvalidConfigError(f"iteration needs start: {arguments!r}")
        self._start = int(arguments["start"])
        restart = arguments.get("restart")
        default = 1 if restart is None or int(restart) > self._start else -1
        self._step = int(arguments.get("step", default))
        self._span = None if restart is None else int(restart) - self._start
        if self._step == 0 or self._span == 0 or (self._span or self._step) * self._step < 0:
            raise InvalidConfigError(f"iteration never reaches restart: {arguments!r}")

    def generate(self, rows: RowRange) -> pa.Array:
        number = np.arange(rows.start, rows.start + rows.count, dtype=np.int64)
        if self._span is not None:
            number %= -(-self._span // self._step)
        return _to_type(pa.array(self._start + number * self._step), self.schema)


class FloatsGenerator(ColumnGenerator):
    def __init__(self, schema: ConnectSchema, arguments: Mapping[str, Any]) -> None:
        super().__init__(schema)
        self._low, self._high = _range(arguments, 0.0, 1.0)

    def generate(self, rows: RowRange) -> pa.Array:
        values = rows.random.uniform(self._low, self._high, size=rows.count)
        return pa.array(values).cast(self.schema.arrow_type())


class DecimalsGenerator(ColumnGenerator):
    def __init__(self, precision: int, scale: int, arguments: Mapping[str, Any]) -> None:
        super().__init__(decimal_schema(scale))
        digits = min(precision, 18)
        most = 10**digits - 1
        low, high = _range(arguments, -most / 10**scale, most / 10**scale)
        self._low, self._high = round(low * 10**scale), round(high * 10**scale)
        self._scale = scale

    def generate(self, rows: RowRange) -> pa.Array:
        unscaled = pa.array(rows.random.integers(self._low, self._high, size=rows.count))
        whole = unscaled.cast(pa.decimal128(38, 0))
        # The same digits, with the point moved.
        return pa.Array.from_buffers(
            pa.decimal128(38, self._scale), len(whole), whole.buffers(), offset=whole.offset
        )


class BooleansGenerator(ColumnGenerator):
    def __init__(self, odds: float) -> None:
        super().__init__(ConnectSchema(Type.BOOLEAN))
        self._odds = odds

    def generate(self, rows: RowRange) -> pa.Array:
        return pa.array(rows.random.random(rows.count) < self._odds)


class StringsGenerator(ColumnGenerator):
    def __init__(self, arguments: Mapping[str, Any]) -> None:
        super().__init__(ConnectSchema(Type.STRING))
        self._prefix, self._suffix = arguments.get("prefix", ""), arguments.get("suffix", "")
        self._pattern: TextPattern | None = None
        self._iteration: IterationGenerator | None = None
        if "regex" in arguments:
            self._pattern = parse_pattern(arguments["regex"])
        elif "iteration" in arguments:
            self._iteration = IterationGenerator(ConnectSchema(Type.INT64), arguments["iteration"])
        else:
            low, high = _length(arguments.get("length", {"min": 8, "max": 17}))
            letters = CharactersPattern(string.ascii_letters + string.digits)
            self._pattern = RepeatedPattern(letters, low, high - 1)

    def generate(self, rows: RowRange) -> pa.Array:
        if self._iteration is not None:
            values = self._iteration.generate(rows).cast(pa.string())
        else:
            assert self._pattern is not None
            values = self._pattern.generate(rows.random, rows.count)
        if not self._prefix and not self._suffix:
            return values
        return pc.binary_join_element_wise(self._prefix, values, self._suffix, "")


class BytesGenerator(ColumnGenerator):
    def __init__(self, low: int, high: int) -> None:
        super().__init__(ConnectSchema(Type.BYTES))
        self._low, self._high = low, high

    def generate(self, rows: RowRange) -> pa.Array:
        offsets = _offsets(rows, self._low, self._high)
        data = rows.random.bytes(int(offsets[-1]))
        return pa.Array.from_buffers(
            pa.binary(), rows.count, [None, pa.py_buffer(offsets), pa.py_buffer(data)]
        )


class OptionsGenerator(ColumnGenerator):
    """One of several values."""

    def __init__(self, schema: ConnectSchema, options: Any) -> None:
        super().__init__(schema)
        if not isinstance(options, Sequence) or isinstance(options, str) or not options:
            raise InvalidConfigError(f"options has to be a list of values, and is {options!r}")
        try:
            self._values = self._array(list(options))
        except (pa.ArrowException, TypeError, ValueError) as error:
            raise InvalidConfigError(
                f"options {options!r} are not {schema.type}: {error}"
            ) from error

    def _array(self, options: list[Any]) -> pa.Array:
        if self.schema.is_logical and self.schema.type in (Type.INT32, Type.INT64):
            return _to_type(pa.array(options, pa.int64()), self.schema)
        if self.schema.type is Type.BYTES:
            options = [
                each.encode("latin-1") if isinstance(each, str) else each for each in options
            ]
        return pa.array(options, self.schema.arrow_type())

    def generate(self, rows: RowRange) -> pa.Array:
        return self._values.take(pa.array(rows.random.integers(len(self._values), size=rows.count)))


class StructsGenerator(ColumnGenerator):
    def __init__(self, name: str, avro: Mapping[str, Any], namespace: str) -> None:
        self._fields = []
        fields = []
        for field in avro.get("fields") or ():
            try:
                generator = build(_with_arguments(field), namespace)
            except InvalidConfigError as error:
                raise InvalidConfigError(f"Field '{field.get('name')}': {error}") from error
            except KeyError as error:
                raise InvalidConfigError(f"Field {field!r} has no {error}.") from error
            self._fields.append((field["name"], generator))
            schema = generator.schema
            doc = field.get("doc")
            fields.append(SchemaField(field["name"], replace(schema, doc=doc) if doc else schema))
        schema = ConnectSchema(
            Type.STRUCT, name=name or None, doc=avro.get("doc"), fields=tuple(fields)
        )
        super().__init__(schema)

    def generate(self, rows: RowRange) -> pa.Array:
        if not self._fields:
            return pa.array([{}] * rows.count, pa.struct([]))
        arrays = [generator.generate(rows) for _, generator in self._fields]
        return pa.StructArray.from_arrays(arrays, [name for name, _ in self._fields])


def _with_arguments(field: Mapping[str, Any]) -> Any:
    """Returns the type of a field. Hints may be beside it."""
    type_ = field["type"]
    if ARGUMENTS in field and isinstance(type_, str):
        return {"type": type_, ARGUMENTS: field[ARGUMENTS]}
    return type_


class ArraysGenerator(ColumnGenerator):
    def __init__(self, items: ColumnGenerator, arguments: Mapping[str, Any]) -> None:
        super().__init__(ConnectSchema(Type.ARRAY, value_schema=items.schema))
        self._items = items
        self._low, self._high = _length(arguments.get("length", {"min": 1, "max": 5}))

    def generate(self, rows: RowRange) -> pa.Array:
        offsets = _offsets(rows, self._low, self._high)
        items = self._items.generate(replace(rows, count=int(offsets[-1])))
        return pa.ListArray.from_arrays(pa.array(offsets), items).cast(self.schema.arrow_type())


class MapsGenerator(ColumnGenerator):
    def __init__(
        self, keys: ColumnGenerator, values: ColumnGenerator, arguments: Mapping[str, Any]
    ) -> None:
        super().__init__(
            ConnectSchema(
                Type.MAP, key_schema=ConnectSchema(Type.STRING), value_schema=values.schema
            )
        )
        self._keys, self._values = keys, values
        self._low, self._high = _length(arguments.get("length", {"min": 1, "max": 5}))

    def generate(self, rows: RowRange) -> pa.Array:
        offsets = _offsets(rows, self._low, self._high)
        entries = replace(rows, count=int(offsets[-1]))
        keys, values = self._keys.generate(entries), self._values.generate(entries)
        return pa.MapArray.from_arrays(pa.array(offsets), keys, values).cast(
            self.schema.arrow_type()
        )


class OptionalGenerator(ColumnGenerator):
    """Null, or a value."""

    def __init__(self, generator: ColumnGenerator, odds: float) -> None:
        super().__init__(generator.schema.as_optional())
        self._generator, self._odds = generator, odds

    def generate(self, rows: RowRange) -> pa.Array:
        values = self._generator.generate(rows)
        is_null = pa.array(rows.random.random(rows.count) < self._odds)
        return pc.if_else(is_null, pa.scalar(None, values.type), values)


def _offsets(rows: RowRange, low: int, high: int) -> np.ndarray[Any, np.dtype[np.int32]]:
    offsets = np.zeros(rows.count + 1, np.int32)
    offsets[1:] = np.cumsum(rows.random.integers(low, high, size=rows.count))
    return offsets
