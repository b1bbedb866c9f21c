"""The Arrow types, and so Spark's types, of Avro types.

They are those of Spark's `from_avro`: a union with null is nullable, int and long together are a
long, float and double a double, and any other union is a struct with a nullable field for each
branch, of which one is set.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.schemas.avro.model import (
    AvroArray,
    AvroEnum,
    AvroFixed,
    AvroMap,
    AvroPrimitive,
    AvroRecord,
    AvroType,
    AvroUnion,
    LogicalType,
)

if TYPE_CHECKING:
    import pyarrow as pa

MAX_PRECISION = 38
"""Maximum precision of Spark's decimals. Decimals with more digits stay bytes."""

UUID_BYTES = 16


def arrow_type(schema: AvroType) -> pa.DataType:
    """Returns the type of a schema, which must not be a union with null (see `without_null`)."""
    import pyarrow as pa

    match schema:
        case AvroPrimitive(kind):
            return _logical_type(kind, schema.logical_type) or _plain_types()[kind]
        case AvroFixed(size=size):
            logical = schema.logical_type
            if logical is not None and logical.name == "uuid" and size == UUID_BYTES:
                return pa.string()
            return _decimal_type(logical) or pa.binary()
        case AvroEnum():
            return pa.string()
        case AvroArray(items):
            return pa.list_(arrow_field("element", items))
        case AvroMap(values):
            return pa.map_(
                pa.field("key", pa.string(), nullable=False), arrow_field("value", values)
            )
        case AvroRecord(fields=fields):
            return pa.struct([arrow_field(field.name, field.type) for field in fields])
        case AvroUnion(branches):
            return pa.struct(
                [
                    pa.field(f"member{index}", arrow_type(branch))
                    for index, branch in enumerate(branches)
                ]
            )


def arrow_field(name: str, schema: AvroType) -> pa.Field:
    import pyarrow as pa

    inner, nullable = without_null(schema)
    return pa.field(name, arrow_type(inner), nullable=nullable)


def without_null(schema: AvroType) -> tuple[AvroType, bool]:
    """Returns the schema of values that are not null, and whether nulls are allowed."""
    if not isinstance(schema, AvroUnion):
        return schema, schema.kind == "null"
    branches = tuple(branch for branch in schema.branches if branch.kind != "null")
    nullable = len(branches) < len(schema.branches)
    match [branch.kind if _is_bare(branch) else "" for branch in branches]:
        case []:
            return AvroPrimitive("null"), True
        case [_]:
            return branches[0], nullable
        case ["int", "long"] | ["long", "int"]:
            return AvroPrimitive("long"), nullable
        case ["float", "double"] | ["double", "float"]:
            return AvroPrimitive("double"), nullable
    return AvroUnion(branches), nullable


def timestamp_unit(logical: LogicalType | None) -> str | None:
    """Returns millis, micros or nanos; None if the type is not a timestamp."""
    if logical is None:
        return None
    name, _, unit = logical.name.rpartition("-")
    return unit if name in ("timestamp", "local-timestamp") else None


def _is_bare(schema: AvroType) -> bool:
    return isinstance(schema, AvroPrimitive) and schema.logical_type is None


def _logical_type(kind: str, logical: LogicalType | None) -> pa.DataType | None:
    import pyarrow as pa

    if logical is None:
        return None
    match kind, logical.name:
        case "int", "date":
            return pa.date32()
        case ("int", "time-millis") | ("long", "time-micros"):
            return pa.time64("ns")
        case "long", "timestamp-millis" | "timestamp-micros" | "timestamp-nanos":
            return pa.timestamp("us", tz="UTC")
        case (
            "long",
            "local-timestamp-millis" | "local-timestamp-micros" | "local-timestamp-nanos",
        ):
            return pa.timestamp("us")
        case "bytes", "decimal":
            return _decimal_type(logical)
    return None


def _decimal_type(logical: LogicalType | None) -> pa.DataType | None:
    import pyarrow as pa

    if logical is None or logical.name != "decimal" or logical.precision > MAX_PRECISION:
        return None
    return pa.decimal128(logical.precision, logical.scale)


def _plain_types() -> dict[str, pa.DataType]:
    import pyarrow as pa

    return {
        "null": pa.null(),
        "boolean": pa.bool_(),
        "int": pa.int32(),
        "long": pa.int64(),
        "float": pa.float32(),
        "double": pa.float64(),
        "bytes": pa.binary(),
        "string": pa.string(),
    }
