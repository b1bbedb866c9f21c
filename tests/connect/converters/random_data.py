"""Strategies for schemas and values of Connect."""

from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from hypothesis import strategies as st

from barnabas.connect.data.decimals import decimal_of
from barnabas.connect.data.schema import (
    DATE,
    DECIMAL,
    SCALE,
    TIME,
    TIMESTAMP,
    ConnectSchema,
    SchemaField,
    Type,
)

BITS = {Type.INT8: 8, Type.INT16: 16, Type.INT32: 32, Type.INT64: 64}
NAMES = st.from_regex(r"[a-zA-Z_][a-zA-Z0-9_]{0,6}", fullmatch=True)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)

PRIMITIVES = st.sampled_from(
    [
        Type.BOOLEAN,
        Type.INT8,
        Type.INT16,
        Type.INT32,
        Type.INT64,
        Type.FLOAT32,
        Type.FLOAT64,
        Type.STRING,
        Type.BYTES,
    ]
)


@st.composite
def leaves(draw: st.DrawFn) -> ConnectSchema:
    is_optional = draw(st.booleans())
    match draw(st.integers(0, 5)):
        case 0:
            scale = draw(st.integers(0, 9))
            return ConnectSchema(
                Type.BYTES, is_optional, DECIMAL, 1, parameters={SCALE: str(scale)}
            )
        case 1:
            type_, name = draw(
                st.sampled_from([(Type.INT32, DATE), (Type.INT32, TIME), (Type.INT64, TIMESTAMP)])
            )
            return ConnectSchema(type_, is_optional, name, 1)
    return ConnectSchema(draw(PRIMITIVES), is_optional)


@st.composite
def structs(draw: st.DrawFn, inner: st.SearchStrategy[ConnectSchema]) -> ConnectSchema:
    names = draw(st.lists(NAMES, min_size=1, max_size=4, unique_by=str.lower))
    fields = tuple(SchemaField(name, draw(inner)) for name in names)
    name = draw(st.none() | NAMES)
    return ConnectSchema(Type.STRUCT, draw(st.booleans()), name, fields=fields)


@st.composite
def arrays(draw: st.DrawFn, inner: st.SearchStrategy[ConnectSchema]) -> ConnectSchema:
    return ConnectSchema(Type.ARRAY, draw(st.booleans()), value_schema=draw(inner))


@st.composite
def maps(draw: st.DrawFn, inner: st.SearchStrategy[ConnectSchema]) -> ConnectSchema:
    key = ConnectSchema(draw(st.sampled_from([Type.STRING, Type.INT32, Type.BOOLEAN])))
    return ConnectSchema(Type.MAP, draw(st.booleans()), key_schema=key, value_schema=draw(inner))


def nested(inner: st.SearchStrategy[ConnectSchema]) -> st.SearchStrategy[ConnectSchema]:
    return structs(inner) | arrays(inner) | maps(inner)


SCHEMAS = st.recursive(leaves(), nested, max_leaves=6)
STRUCTS = structs(SCHEMAS).map(lambda schema: replace(schema, is_optional=False))


def value_of(schema: ConnectSchema) -> st.SearchStrategy[Any]:
    present = _present(schema)
    return st.none() | present if schema.is_optional else present


def _present(schema: ConnectSchema) -> st.SearchStrategy[Any]:
    match schema.name:
        case name if name == DECIMAL:
            scale = int(schema.parameters[SCALE])
            return st.integers(-(10**38) + 1, 10**38 - 1).map(
                lambda digits: decimal_of(digits, scale)
            )
        case name if name == DATE:
            return st.dates(date(1900, 1, 1), date(2100, 1, 1))
        case name if name == TIME:
            return st.integers(0, 86_399_999).map(_time)
        case name if name == TIMESTAMP:
            return st.integers(-(10**12), 4 * 10**12).map(
                lambda ms: datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=ms)
            )
    match schema.type:
        case Type.BOOLEAN:
            return st.booleans()
        case Type.INT8 | Type.INT16 | Type.INT32 | Type.INT64:
            limit = 1 << BITS[schema.type] - 1
            return st.integers(-limit, limit - 1)
        case Type.FLOAT32:
            return st.floats(width=32, allow_nan=False)
        case Type.FLOAT64:
            return st.floats(allow_nan=False)
        case Type.STRING:
            return TEXT
        case Type.BYTES:
            return st.binary(max_size=9)
        case Type.ARRAY:
            assert schema.value_schema is not None
            return st.lists(value_of(schema.value_schema), max_size=3)
        case Type.MAP:
            assert schema.key_schema is not None
            assert schema.value_schema is not None
            return st.dictionaries(
                value_of(schema.key_schema), value_of(schema.value_schema), max_size=3
            ).map(lambda entries: list(entries.items()))
        case _:
            return st.fixed_dictionaries(
                {field.name: value_of(field.schema) for field in schema.fields}
            )


def _time(milliseconds: int) -> time:
    return (datetime(1970, 1, 1) + timedelta(milliseconds=milliseconds)).time()
