"""Avro's schema resolution: readers that decode a writer's schema into columns of a reader's.

The rules apply once for a pair of schemas: fields match by name or alias, are skipped, or have
their defaults; numbers are promoted; bytes and text are exchangeable; a union's branches match the
reader's. Where the schemas agree, resolution costs nothing at decoding.
"""

from __future__ import annotations

from barnabas.columns.avro import _decoder
from barnabas.columns.avro.column_builder import AvroColumn, AvroColumnBuilder
from barnabas.columns.avro.defaults import encode_default
from barnabas.columns.avro.schemas import MAP_KEY
from barnabas.columns.avro.skipper import AvroSkipper
from barnabas.columns.avro.types import timestamp_unit
from barnabas.schemas import SchemaError
from barnabas.schemas.avro.model import (
    MISSING,
    AvroArray,
    AvroEnum,
    AvroField,
    AvroFixed,
    AvroMap,
    AvroPrimitive,
    AvroRecord,
    AvroType,
    AvroUnion,
)

_LOW_BITS = (1 << 64) - 1
_MIN, _MAX = -(1 << 63), (1 << 63) - 1
_MILLIS_A_DAY = 24 * 60 * 60 * 1000
_RANGES = {
    "time-millis": (0, _MILLIS_A_DAY - 1, 1_000_000, 1),
    "time-micros": (0, _MILLIS_A_DAY * 1000 - 1, 1000, 1),
    "millis": (-(_MAX // 1000), _MAX // 1000, 1000, 1),
    "micros": (_MIN, _MAX, 1, 1),
    "nanos": (_MIN, _MAX, 1, 1000),
}
"""By unit: minimum, maximum, multiplier and divisor."""


def resolve_program(writer_schema: AvroType, builder: AvroColumnBuilder) -> _decoder.AvroProgram:
    """Raises SchemaError, with the field, if the schemas do not match."""
    root = builder.root
    reader = _Resolver().reader(writer_schema, root, "")
    return _decoder.AvroProgram(reader, root.buffer, builder.buffers, builder.nested_buffers)


class _Resolver:
    def __init__(self) -> None:
        self._skipper = AvroSkipper()

    def reader(self, writer_schema: AvroType, column: AvroColumn, path: str) -> _decoder.AvroReader:
        if isinstance(writer_schema, AvroUnion):
            return _decoder.AvroUnionReader(
                [self._branch(branch, column, path) for branch in writer_schema.branches]
            )
        if writer_schema.kind == "null":
            if not column.is_nullable:
                raise _mismatch(writer_schema, column.schema, path)
            return _decoder.AvroNullReader(column.buffer)
        if isinstance(column.schema, AvroUnion):
            return self._into_union(writer_schema, column, path)
        if isinstance(column.schema, AvroRecord) and isinstance(writer_schema, AvroRecord):
            return self._record(writer_schema, column, column.schema, path)
        if isinstance(column.schema, AvroArray) and isinstance(writer_schema, AvroArray):
            return self._items(column, [(writer_schema.items, column.children[0])], path)
        if isinstance(column.schema, AvroMap) and isinstance(writer_schema, AvroMap):
            key, value = column.children
            return self._items(column, [(MAP_KEY, key), (writer_schema.values, value)], path)
        if isinstance(column.schema, AvroEnum) and isinstance(writer_schema, AvroEnum):
            return _decoder.AvroEnumReader(column.buffer, _symbols(writer_schema, column.schema))
        if isinstance(column.schema, AvroFixed) and isinstance(writer_schema, AvroFixed):
            return _fixed(writer_schema, column.schema, column, path)
        if isinstance(column.schema, AvroPrimitive) and isinstance(writer_schema, AvroPrimitive):
            return _primitive(writer_schema, column.schema, column, path)
        raise _mismatch(writer_schema, column.schema, path)

    def _branch(self, member: AvroType, column: AvroColumn, path: str) -> _decoder.AvroReader:
        """A branch of the writer's union that cannot be read is an error only if it occurs."""
        try:
            return self.reader(member, column, path)
        except SchemaError:
            return _decoder.AvroMismatchReader()

    def _into_union(
        self, writer_schema: AvroType, column: AvroColumn, path: str
    ) -> _decoder.AvroReader:
        """Selects the reader's branch of the same type and name, else the first that matches."""
        by_similarity = sorted(
            column.children, key=lambda child: -_similarity(writer_schema, child.schema)
        )
        for child in by_similarity:
            try:
                inner = self.reader(writer_schema, child, path)
            except SchemaError:
                continue
            others = [other.buffer for other in column.children if other is not child]
            return _decoder.AvroBranchReader(column.buffer, inner, others)
        raise _mismatch(writer_schema, column.schema, path)

    def _record(
        self, writer_schema: AvroRecord, column: AvroColumn, reader_schema: AvroRecord, path: str
    ) -> _decoder.AvroReader:
        readers: list[_decoder.AvroReader] = []
        names: list[str] = []
        unread = {
            field.name: (field, child)
            for field, child in zip(reader_schema.fields, column.children, strict=True)
        }
        names_by_writer = _names(writer_schema, reader_schema)
        for field in writer_schema.fields:
            _, child = unread.pop(names_by_writer.get(field.name, ""), (None, None))
            inner = f"{path}.{field.name}" if path else field.name
            readers.append(
                self.reader(field.type, child, inner) if child else self._skipper.reader(field.type)
            )
            names.append(field.name)
        for name, (field, child) in unread.items():
            readers.append(self._default(field, child, f"{path}.{name}" if path else name))
            names.append(name)
        return _decoder.AvroRecordReader(column.buffer, readers, names)

    def _default(self, field: AvroField, column: AvroColumn, path: str) -> _decoder.AvroReader:
        if field.default is MISSING:
            raise SchemaError(f"Field {path!r} was not written and has no default.")
        if field.default is None and column.is_nullable:
            return _decoder.AvroNullReader(column.buffer)
        encoded = encode_default(field.type, field.default, path)
        return _decoder.AvroDefaultReader(self.reader(field.type, column, path), encoded)

    def _items(
        self, column: AvroColumn, parts: list[tuple[AvroType, AvroColumn]], path: str
    ) -> _decoder.AvroReader:
        readers = [self.reader(writer_schema, child, path) for writer_schema, child in parts]
        return _decoder.AvroArrayReader(
            column.buffer,
            column.children[0].buffer,
            readers,
            min(1, sum(self._skipper.min_bytes(writer_schema) for writer_schema, _ in parts)),
        )


def _names(writer_schema: AvroRecord, reader_schema: AvroRecord) -> dict[str, str]:
    """Returns the reader's field names by the writer's; a name has priority over an alias."""
    own = {field.name: field.name for field in reader_schema.fields}
    writer_names = {field.name for field in writer_schema.fields}
    by_alias = {
        alias: field.name
        for field in reader_schema.fields
        if field.name not in writer_names
        for alias in field.aliases
    }
    return by_alias | own


def _similarity(writer_schema: AvroType, reader_schema: AvroType) -> int:
    if writer_schema.kind != reader_schema.kind:
        return 0
    if isinstance(writer_schema, AvroPrimitive) and isinstance(reader_schema, AvroPrimitive):
        return 2 + (writer_schema.logical_type == reader_schema.logical_type)
    if isinstance(writer_schema, AvroRecord | AvroEnum | AvroFixed) and isinstance(
        reader_schema, AvroRecord | AvroEnum | AvroFixed
    ):
        return 2 + (writer_schema.name == reader_schema.name)
    return 2


def _symbols(writer_schema: AvroEnum, reader_schema: AvroEnum) -> list[bytes | None]:
    writer_names = set(reader_schema.symbols)
    return [
        symbol.encode()
        if symbol in writer_names
        else None
        if reader_schema.default is None
        else reader_schema.default.encode()
        for symbol in writer_schema.symbols
    ]


def _fixed(
    writer_schema: AvroFixed, reader_schema: AvroFixed, column: AvroColumn, path: str
) -> _decoder.AvroReader:
    import pyarrow as pa

    if writer_schema.size != reader_schema.size:
        raise _mismatch(writer_schema, reader_schema, path)
    if pa.types.is_decimal(column.type):
        return _decimal(column, writer_schema.size)
    if pa.types.is_string(column.type):
        return _decoder.AvroUuidReader(column.buffer)
    return _decoder.AvroFixedReader(column.buffer, writer_schema.size)


def _decimal(column: AvroColumn, size: int) -> _decoder.AvroReader:
    largest = 10**column.type.precision - 1
    return _decoder.AvroDecimalReader(column.buffer, size, largest >> 64, largest & _LOW_BITS)


def _primitive(
    writer_schema: AvroPrimitive, reader_schema: AvroPrimitive, column: AvroColumn, path: str
) -> _decoder.AvroReader:
    import pyarrow as pa

    buffer = column.buffer
    match writer_schema.kind, reader_schema.kind:
        case "boolean", "boolean":
            return _decoder.AvroBooleanReader(buffer)
        case "int", "int" if column.type.bit_width == 32:
            return _decoder.AvroIntReader(buffer)
        case ("int" | "long", "long") | ("int", "int"):
            return _decoder.AvroLongReader(buffer, *_range(writer_schema, reader_schema))
        case "int" | "long", "float" | "double":
            return _decoder.AvroIntToFloatReader(buffer)
        case ("float", "float") | ("double", "double"):
            return _decoder.AvroFloatReader(buffer)
        case "float", "double":
            return _decoder.AvroFloatToDoubleReader(buffer)
        case "bytes", "bytes" if pa.types.is_decimal(column.type):
            return _decimal(column, -1)
        case "bytes" | "string", "bytes" if pa.types.is_binary(column.type):
            return _decoder.AvroBytesReader(buffer, False)
        case "bytes" | "string", "string":
            return _decoder.AvroBytesReader(buffer, True)
    raise _mismatch(writer_schema, reader_schema, path)


def _range(writer_schema: AvroPrimitive, reader_schema: AvroPrimitive) -> tuple[int, int, int, int]:
    """Returns the range and conversion: times have the unit of the writer, if it has one."""
    unit = timestamp_unit(reader_schema.logical_type)
    if unit in _RANGES:
        writer_unit = timestamp_unit(writer_schema.logical_type)
        return _RANGES[writer_unit if writer_unit in _RANGES else unit]
    name = reader_schema.logical_type.name if reader_schema.logical_type else ""
    return _RANGES.get(name, (_MIN, _MAX, 1, 1))


def _mismatch(writer_schema: AvroType, reader_schema: AvroType, path: str) -> SchemaError:
    where = f"Field {path!r}" if path else "The value"
    return SchemaError(
        f"{where} was written as {_describe(writer_schema)} and cannot be read as"
        f" {_describe(reader_schema)}."
    )


def _describe(schema: AvroType) -> str:
    if isinstance(schema, AvroUnion):
        return "a union"
    return (
        f"{schema.kind} {schema.name.full}"
        if isinstance(schema, AvroRecord | AvroEnum | AvroFixed)
        else schema.kind
    )
