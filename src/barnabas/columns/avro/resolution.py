"""Steps that decode what one schema wrote into the columns of another.

Avro's rules of resolution are settled here, once for a pair of schemas: fields are found by name
or alias, dropped, or read from their defaults; numbers widen; bytes and text stand for each other;
members of unions find the member that fits. Whatever the schemas agree on costs nothing more.
"""

from __future__ import annotations

from barnabas.columns.avro import _decode
from barnabas.columns.avro.building import Builder, Slot
from barnabas.columns.avro.defaults import encode_default
from barnabas.columns.avro.schemas import MAP_KEY
from barnabas.columns.avro.skipping import Skipper
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
_LEAST, _MOST = -(1 << 63), (1 << 63) - 1
_MILLIS_A_DAY = 24 * 60 * 60 * 1000
_RANGES = {
    "time-millis": (0, _MILLIS_A_DAY - 1, 1_000_000, 1),
    "time-micros": (0, _MILLIS_A_DAY * 1000 - 1, 1000, 1),
    "millis": (-(_MOST // 1000), _MOST // 1000, 1000, 1),
    "micros": (_LEAST, _MOST, 1, 1),
    "nanos": (_LEAST, _MOST, 1, 1000),
}
"""By unit: the least and the most, and what they are multiplied with and divided by."""


def program(written: AvroType, builder: Builder) -> _decode.Program:
    """SchemaError, naming the field, where the one cannot be read as the other."""
    root = builder.root
    step = _Resolution().step(written, root, "")
    return _decode.Program(step, root.column, builder.columns, builder.nested)


class _Resolution:
    def __init__(self) -> None:
        self._skipper = Skipper()

    def step(self, written: AvroType, slot: Slot, path: str) -> _decode.Step:
        if isinstance(written, AvroUnion):
            return _decode.Choice([self._branch(branch, slot, path) for branch in written.branches])
        if written.kind == "null":
            if not slot.is_nullable:
                raise _mismatch(written, slot.schema, path)
            return _decode.Nothing(slot.column)
        if isinstance(slot.schema, AvroUnion):
            return self._member(written, slot, path)
        if isinstance(slot.schema, AvroRecord) and isinstance(written, AvroRecord):
            return self._record(written, slot, slot.schema, path)
        if isinstance(slot.schema, AvroArray) and isinstance(written, AvroArray):
            return self._items(slot, [(written.items, slot.children[0])], path)
        if isinstance(slot.schema, AvroMap) and isinstance(written, AvroMap):
            key, value = slot.children
            return self._items(slot, [(MAP_KEY, key), (written.values, value)], path)
        if isinstance(slot.schema, AvroEnum) and isinstance(written, AvroEnum):
            return _decode.Symbol(slot.column, _symbols(written, slot.schema))
        if isinstance(slot.schema, AvroFixed) and isinstance(written, AvroFixed):
            return _fixed(written, slot.schema, slot, path)
        if isinstance(slot.schema, AvroPrimitive) and isinstance(written, AvroPrimitive):
            return _primitive(written, slot.schema, slot, path)
        raise _mismatch(written, slot.schema, path)

    def _branch(self, member: AvroType, slot: Slot, path: str) -> _decode.Step:
        """Of a union that was written: a member that cannot be read is a fault where it occurs."""
        try:
            return self.step(member, slot, path)
        except SchemaError:
            return _decode.Refuse()

    def _member(self, written: AvroType, slot: Slot, path: str) -> _decode.Step:
        """Into a union: the member of the same type and name, else the first that can take it."""
        by_likeness = sorted(slot.children, key=lambda child: -_likeness(written, child.schema))
        for child in by_likeness:
            try:
                inner = self.step(written, child, path)
            except SchemaError:
                continue
            others = [other.column for other in slot.children if other is not child]
            return _decode.Member(slot.column, inner, others)
        raise _mismatch(written, slot.schema, path)

    def _record(
        self, written: AvroRecord, slot: Slot, wanted: AvroRecord, path: str
    ) -> _decode.Step:
        steps: list[_decode.Step] = []
        names: list[str] = []
        left = {
            field.name: (field, place)
            for field, place in zip(wanted.fields, slot.children, strict=True)
        }
        found = _names(written, wanted)
        for field in written.fields:
            _, place = left.pop(found.get(field.name, ""), (None, None))
            inner = f"{path}.{field.name}" if path else field.name
            steps.append(
                self.step(field.type, place, inner) if place else self._skipper.step(field.type)
            )
            names.append(field.name)
        for name, (field, place) in left.items():
            steps.append(self._default(field, place, f"{path}.{name}" if path else name))
            names.append(name)
        return _decode.RecordFields(slot.column, steps, names)

    def _default(self, field: AvroField, slot: Slot, path: str) -> _decode.Step:
        if field.default is MISSING:
            raise SchemaError(f"Field {path!r} was not written and has no default.")
        if field.default is None and slot.is_nullable:
            return _decode.Nothing(slot.column)
        encoded = encode_default(field.type, field.default, path)
        return _decode.Default(self.step(field.type, slot, path), encoded)

    def _items(self, slot: Slot, parts: list[tuple[AvroType, Slot]], path: str) -> _decode.Step:
        steps = [self.step(written, child, path) for written, child in parts]
        return _decode.Items(
            slot.column,
            slot.children[0].column,
            steps,
            min(1, sum(self._skipper.least_bytes(written) for written, _ in parts)),
        )


def _names(written: AvroRecord, wanted: AvroRecord) -> dict[str, str]:
    """Of the fields that are read, by what they were written as: an alias only stands in."""
    own = {field.name: field.name for field in wanted.fields}
    known = {field.name for field in written.fields}
    by_alias = {
        alias: field.name
        for field in wanted.fields
        if field.name not in known
        for alias in field.aliases
    }
    return by_alias | own


def _likeness(written: AvroType, wanted: AvroType) -> int:
    if written.kind != wanted.kind:
        return 0
    if isinstance(written, AvroPrimitive) and isinstance(wanted, AvroPrimitive):
        return 2 + (written.logical_type == wanted.logical_type)
    if isinstance(written, AvroRecord | AvroEnum | AvroFixed) and isinstance(
        wanted, AvroRecord | AvroEnum | AvroFixed
    ):
        return 2 + (written.name == wanted.name)
    return 2


def _symbols(written: AvroEnum, wanted: AvroEnum) -> list[bytes | None]:
    known = set(wanted.symbols)
    return [
        symbol.encode()
        if symbol in known
        else None
        if wanted.default is None
        else wanted.default.encode()
        for symbol in written.symbols
    ]


def _fixed(written: AvroFixed, wanted: AvroFixed, slot: Slot, path: str) -> _decode.Step:
    import pyarrow as pa

    if written.size != wanted.size:
        raise _mismatch(written, wanted, path)
    if pa.types.is_decimal(slot.type):
        return _decimal(slot, written.size)
    if pa.types.is_string(slot.type):
        return _decode.Uuid(slot.column)
    return _decode.FixedBytes(slot.column, written.size)


def _decimal(slot: Slot, size: int) -> _decode.Step:
    largest = 10**slot.type.precision - 1
    return _decode.Decimal(slot.column, size, largest >> 64, largest & _LOW_BITS)


def _primitive(
    written: AvroPrimitive, wanted: AvroPrimitive, slot: Slot, path: str
) -> _decode.Step:
    import pyarrow as pa

    column = slot.column
    match written.kind, wanted.kind:
        case "boolean", "boolean":
            return _decode.Boolean(column)
        case "int", "int" if slot.type.bit_width == 32:
            return _decode.Int(column)
        case ("int" | "long", "long") | ("int", "int"):
            return _decode.Long64(column, *_range(written, wanted))
        case "int" | "long", "float" | "double":
            return _decode.IntegerToFloat(column)
        case ("float", "float") | ("double", "double"):
            return _decode.Floating(column)
        case "float", "double":
            return _decode.FloatToDouble(column)
        case "bytes", "bytes" if pa.types.is_decimal(slot.type):
            return _decimal(slot, -1)
        case "bytes" | "string", "bytes" if pa.types.is_binary(slot.type):
            return _decode.Bytes(column, False)
        case "bytes" | "string", "string":
            return _decode.Bytes(column, True)
    raise _mismatch(written, wanted, path)


def _range(written: AvroPrimitive, wanted: AvroPrimitive) -> tuple[int, int, int, int]:
    """Times in the unit they were written in, if that was said, become those of the column."""
    unit = timestamp_unit(wanted.logical_type)
    if unit in _RANGES:
        said = timestamp_unit(written.logical_type)
        return _RANGES[said if said in _RANGES else unit]
    name = wanted.logical_type.name if wanted.logical_type else ""
    return _RANGES.get(name, (_LEAST, _MOST, 1, 1))


def _mismatch(written: AvroType, wanted: AvroType, path: str) -> SchemaError:
    where = f"Field {path!r}" if path else "The value"
    return SchemaError(
        f"{where} was written as {_called(written)} and cannot be read as {_called(wanted)}."
    )


def _called(schema: AvroType) -> str:
    if isinstance(schema, AvroUnion):
        return "a union"
    return (
        f"{schema.kind} {schema.name.full}"
        if isinstance(schema, AvroRecord | AvroEnum | AvroFixed)
        else schema.kind
    )
