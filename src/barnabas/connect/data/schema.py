"""Connect's schemas, and the Arrow types that their values have here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from barnabas.connect.errors import SchemaBuildError

if TYPE_CHECKING:
    import pyarrow as pa


class Type(StrEnum):
    """Connect's types; the values are the names in JSON schemas."""

    INT8 = "int8"
    INT16 = "int16"
    INT32 = "int32"
    INT64 = "int64"
    FLOAT32 = "float"
    FLOAT64 = "double"
    BOOLEAN = "boolean"
    STRING = "string"
    BYTES = "bytes"
    ARRAY = "array"
    MAP = "map"
    STRUCT = "struct"


DECIMAL: Final = "org.apache.kafka.connect.data.Decimal"
DATE: Final = "org.apache.kafka.connect.data.Date"
TIME: Final = "org.apache.kafka.connect.data.Time"
TIMESTAMP: Final = "org.apache.kafka.connect.data.Timestamp"
LOGICAL_NAMES: Final = frozenset({DECIMAL, DATE, TIME, TIMESTAMP})

SCALE: Final = "scale"
"""The parameter of a Decimal schema."""

JSON_TEXT: Final = "barnabas.connect.data.Json"
"""The name of strings that are the text of any JSON value, which is written as it is."""

MAX_DECIMAL128_DIGITS = 38


class _NoDefault:
    """The default of a schema without one: None is a default value."""

    def __repr__(self) -> str:
        return "NO_DEFAULT"

    def __reduce__(self) -> str:
        return "NO_DEFAULT"


NO_DEFAULT: Final = _NoDefault()


@dataclass(slots=True, frozen=True)
class SchemaField:
    """A field of a struct."""

    name: str
    schema: ConnectSchema


@dataclass(slots=True, frozen=True)
class ConnectSchema:
    """A Connect schema. Values are equal if everything in them is."""

    type: Type
    is_optional: bool = False
    name: str | None = None
    version: int | None = None
    doc: str | None = None
    default: Any = NO_DEFAULT
    """The default value, as the Python value that Arrow returns for the type."""
    parameters: Mapping[str, str] = field(default_factory=dict)
    fields: tuple[SchemaField, ...] = ()
    """The fields of a STRUCT."""
    value_schema: ConnectSchema | None = None
    """The schema of the elements of an ARRAY, or of the values of a MAP."""
    key_schema: ConnectSchema | None = None
    """The schema of the keys of a MAP."""

    def __hash__(self) -> int:
        return hash((self.type, self.is_optional, self.name, self.version, len(self.fields)))

    @property
    def has_default(self) -> bool:
        return not isinstance(self.default, _NoDefault)

    @property
    def is_logical(self) -> bool:
        return self.name in LOGICAL_NAMES

    def field(self, name: str) -> SchemaField | None:
        return next((each for each in self.fields if each.name == name), None)

    def as_optional(self) -> ConnectSchema:
        return self if self.is_optional else replace(self, is_optional=True)

    def arrow_type(self) -> pa.DataType:
        """Returns the Arrow type of the values."""
        import pyarrow as pa

        match self.type:
            case Type.STRUCT:
                return pa.struct([arrow_field(each.name, each.schema) for each in self.fields])
            case Type.ARRAY:
                return pa.list_(arrow_field("item", _require(self.value_schema, self)))
            case Type.MAP:
                keys, values = _require(self.key_schema, self), _require(self.value_schema, self)
                return pa.map_(
                    pa.field("key", keys.arrow_type(), nullable=False), arrow_field("value", values)
                )
            case _:
                return self._logical_arrow_type() or _PRIMITIVES[self.type]()

    def _logical_arrow_type(self) -> pa.DataType | None:
        import pyarrow as pa

        match self.name, self.type:
            case (name, Type.BYTES) if name == DECIMAL:
                digits = int(self.parameters.get("connect.decimal.precision", 0))
                decimal = pa.decimal256 if digits > MAX_DECIMAL128_DIGITS else pa.decimal128
                widest = 76 if digits > MAX_DECIMAL128_DIGITS else MAX_DECIMAL128_DIGITS
                return decimal(widest, int(self.parameters[SCALE]))
            case (name, Type.INT32) if name == DATE:
                return pa.date32()
            case (name, Type.INT32) if name == TIME:
                return pa.time32("ms")
            case (name, Type.INT64) if name == TIMESTAMP:
                return pa.timestamp("ms", "UTC")
        return None


def arrow_field(name: str, schema: ConnectSchema) -> pa.Field:
    """Returns the Arrow field of a schema. It is nullable; the schema says what is allowed."""
    import pyarrow as pa

    return pa.field(name, schema.arrow_type(), nullable=True)


def schema_from_arrow(arrow_type: pa.DataType, *, is_optional: bool = True) -> ConnectSchema:
    """Returns the schema of values of an Arrow type, for a source whose data is Arrow.

    Raises SchemaBuildError if Connect has no such type.
    """
    import pyarrow.types as types

    if types.is_dictionary(arrow_type):
        return schema_from_arrow(arrow_type.value_type, is_optional=is_optional)
    if types.is_struct(arrow_type):
        fields = tuple(
            SchemaField(each.name, schema_from_arrow(each.type, is_optional=each.nullable))
            for each in arrow_type
        )
        return ConnectSchema(Type.STRUCT, is_optional, fields=fields)
    if types.is_map(arrow_type):
        return ConnectSchema(
            Type.MAP,
            is_optional,
            key_schema=schema_from_arrow(arrow_type.key_type, is_optional=False),
            value_schema=schema_from_arrow(arrow_type.item_type),
        )
    if types.is_list(arrow_type) or types.is_large_list(arrow_type):
        return ConnectSchema(
            Type.ARRAY, is_optional, value_schema=schema_from_arrow(arrow_type.value_type)
        )
    for is_type, type_, name in _FROM_ARROW:
        if getattr(types, is_type)(arrow_type):
            parameters = {SCALE: str(arrow_type.scale)} if name == DECIMAL else {}
            return ConnectSchema(
                type_, is_optional, name, 1 if name else None, parameters=parameters
            )
    raise SchemaBuildError(f"Arrow type {arrow_type} has no type in Connect.")


def decimal_schema(scale: int, *, is_optional: bool = False) -> ConnectSchema:
    return ConnectSchema(Type.BYTES, is_optional, DECIMAL, 1, parameters={SCALE: str(scale)})


def struct_schema(fields: Mapping[str, ConnectSchema], name: str | None = None) -> ConnectSchema:
    return ConnectSchema(
        Type.STRUCT, name=name, fields=tuple(SchemaField(*entry) for entry in fields.items())
    )


def _require(schema: ConnectSchema | None, parent: ConnectSchema) -> ConnectSchema:
    if schema is None:
        raise SchemaBuildError(f"A schema of type {parent.type} has no schema of its elements.")
    return schema


def _primitive(name: str) -> Any:
    def create() -> pa.DataType:
        import pyarrow as pa

        return getattr(pa, name)()

    return create


_PRIMITIVES = {
    Type.INT8: _primitive("int8"),
    Type.INT16: _primitive("int16"),
    Type.INT32: _primitive("int32"),
    Type.INT64: _primitive("int64"),
    Type.FLOAT32: _primitive("float32"),
    Type.FLOAT64: _primitive("float64"),
    Type.BOOLEAN: _primitive("bool_"),
    Type.STRING: _primitive("string"),
    Type.BYTES: _primitive("binary"),
}

_FROM_ARROW: tuple[tuple[str, Type, str | None], ...] = (
    ("is_boolean", Type.BOOLEAN, None),
    ("is_int8", Type.INT8, None),
    ("is_int16", Type.INT16, None),
    ("is_uint8", Type.INT16, None),
    ("is_int32", Type.INT32, None),
    ("is_uint16", Type.INT32, None),
    ("is_int64", Type.INT64, None),
    ("is_uint32", Type.INT64, None),
    ("is_float16", Type.FLOAT32, None),
    ("is_float32", Type.FLOAT32, None),
    ("is_float64", Type.FLOAT64, None),
    ("is_string", Type.STRING, None),
    ("is_large_string", Type.STRING, None),
    ("is_binary", Type.BYTES, None),
    ("is_large_binary", Type.BYTES, None),
    ("is_fixed_size_binary", Type.BYTES, None),
    ("is_decimal", Type.BYTES, DECIMAL),
    ("is_date", Type.INT32, DATE),
    ("is_time", Type.INT32, TIME),
    ("is_timestamp", Type.INT64, TIMESTAMP),
)


def java_type_name(arrow_type: pa.DataType) -> str:
    """Returns the class that Kafka Connect has values of the type in, for error messages."""
    import pyarrow.types as types

    names = ((check, name) for check, name in _JAVA_CLASSES if getattr(types, check)(arrow_type))
    return next((f"class {name}" for _, name in names), f"Arrow type {arrow_type}")


_JAVA_CLASSES = (
    ("is_boolean", "java.lang.Boolean"),
    ("is_int8", "java.lang.Byte"),
    ("is_int16", "java.lang.Short"),
    ("is_int32", "java.lang.Integer"),
    ("is_int64", "java.lang.Long"),
    ("is_float32", "java.lang.Float"),
    ("is_float64", "java.lang.Double"),
    ("is_string", "java.lang.String"),
    ("is_large_string", "java.lang.String"),
    ("is_binary", "[B"),
    ("is_large_binary", "[B"),
    ("is_decimal", "java.math.BigDecimal"),
    ("is_date", "java.util.Date"),
    ("is_time", "java.util.Date"),
    ("is_timestamp", "java.util.Date"),
    ("is_struct", "org.apache.kafka.connect.data.Struct"),
    ("is_map", "java.util.HashMap"),
    ("is_list", "java.util.ArrayList"),
    ("is_large_list", "java.util.ArrayList"),
)
