"""Avro schemas by chance, values of them, and what those are in Arrow."""

import datetime as dt
import decimal
import io
import json
from dataclasses import dataclass
from typing import Any

import fastavro
from hypothesis import strategies as st

from barnabas.columns.language import SchemaSource

MAX_DEPTH = 3
EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


@dataclass(frozen=True)
class Example:
    schema: Any
    values: list[Any]

    @property
    def source(self) -> SchemaSource:
        return SchemaSource(json.dumps(self.schema))

    @property
    def payloads(self) -> list[bytes]:
        return [write(self.schema, value) for value in self.values]


def write(schema: Any, value: Any) -> bytes:
    target = io.BytesIO()
    fastavro.schemaless_writer(target, fastavro.parse_schema(schema), value)
    return target.getvalue()


def read(schema: Any, payload: bytes) -> Any:
    return fastavro.schemaless_reader(io.BytesIO(payload), fastavro.parse_schema(schema), None)


@st.composite
def examples(draw: st.DrawFn, max_size: int = 8) -> Example:
    """Records with fields of any type."""
    kind, values = draw(records("R"))
    return Example(kind, draw(st.lists(values, max_size=max_size)))


def moments(steps_in_us: int) -> st.SearchStrategy[dt.datetime]:
    return st.integers(-(10**9), 10**10).map(
        lambda step: EPOCH + dt.timedelta(microseconds=step * steps_in_us)
    )


def decimals(precision: int, scale: int) -> st.SearchStrategy[decimal.Decimal]:
    return st.integers(-(10**precision) + 1, 10**precision - 1).map(
        lambda digits: decimal.Decimal(digits).scaleb(-scale, decimal.Context(prec=60))
    )


LONG = st.integers(-(2**63), 2**63 - 1)
SIMPLE: list[tuple[Any, st.SearchStrategy[Any]]] = [
    ("boolean", st.booleans()),
    ("int", st.integers(-(2**31), 2**31 - 1)),
    ("long", LONG),
    ("float", st.floats(width=32, allow_nan=False)),
    ("double", st.floats(allow_nan=False)),
    ("bytes", st.binary(max_size=20)),
    ("string", st.text(max_size=12)),
    ({"type": "int", "logicalType": "date"}, st.dates()),
    ({"type": "long", "logicalType": "timestamp-millis"}, moments(1000)),
    ({"type": "long", "logicalType": "timestamp-micros"}, moments(1)),
    (
        {"type": "long", "logicalType": "local-timestamp-micros"},
        moments(1).map(lambda moment: moment.replace(tzinfo=None)),
    ),
    ({"type": "long", "logicalType": "time-micros"}, st.times()),
    (
        {"type": "int", "logicalType": "time-millis"},
        st.times().map(lambda time: time.replace(microsecond=time.microsecond // 1000 * 1000)),
    ),
    (
        {"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 6},
        decimals(38, 6),
    ),
    ({"type": "string", "logicalType": "uuid"}, st.uuids().map(str)),
]


@st.composite
def kinds(draw: st.DrawFn, name: str) -> tuple[Any, st.SearchStrategy[Any]]:
    """A type, and its values. The name is as long as the type is deep."""
    choice = draw(st.integers(0, 9))
    if choice < 4 or len(name) > MAX_DEPTH:
        return draw(st.sampled_from(SIMPLE))
    if choice == 4:
        symbols = ["RED", "GREEN", "BLUE"]
        return {"type": "enum", "name": name, "symbols": symbols}, st.sampled_from(symbols)
    if choice == 5:
        size = draw(st.integers(1, 5))
        return {"type": "fixed", "name": name, "size": size}, st.binary(
            min_size=size, max_size=size
        )
    if choice == 6:
        digits = {"type": "fixed", "name": name, "size": 9, "logicalType": "decimal"}
        return {**digits, "precision": 20, "scale": 3}, decimals(20, 3)
    if choice == 7:
        return draw(records(name))
    inner, values = draw(nullables(f"{name}I"))
    if choice == 8:
        return {"type": "array", "items": inner}, st.lists(values, max_size=3)
    return {"type": "map", "values": inner}, st.dictionaries(
        st.text(max_size=4), values, max_size=3
    )


@st.composite
def nullables(draw: st.DrawFn, name: str) -> tuple[Any, st.SearchStrategy[Any]]:
    kind, values = draw(kinds(name))
    if draw(st.booleans()):
        members = ["null", kind] if draw(st.booleans()) else [kind, "null"]
        return members, st.none() | values
    return kind, values


@st.composite
def records(draw: st.DrawFn, name: str) -> tuple[Any, st.SearchStrategy[Any]]:
    fields = [draw(nullables(f"{name}{index}")) for index in range(draw(st.integers(1, 4)))]
    kind = {
        "type": "record",
        "name": name,
        "fields": [{"name": f"f{index}", "type": each} for index, (each, _) in enumerate(fields)],
    }
    return kind, st.fixed_dictionaries(
        {f"f{index}": values for index, (_, values) in enumerate(fields)}
    )
