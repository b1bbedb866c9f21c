"""What is encoded is what fastavro reads, and what does not fit the schema is said."""

import datetime as dt
import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from tests.columns.avro.examples import Example, examples, read, write

from barnabas.columns import avro
from barnabas.columns.language import SchemaSource
from barnabas.schemas import SchemaError
from barnabas.schemas.framing import id_prefix


def encode(schema: Any, values: pa.Array, schema_id: int | None = None) -> list[bytes | None]:
    source = SchemaSource(json.dumps(schema))
    encoded = avro.encoder(source, values.type, None, schema_id=schema_id).encode(values)
    encoded.validate(full=True)
    payloads: list[bytes | None] = encoded.to_pylist()
    return payloads


def record(**fields: Any) -> Any:
    return {
        "type": "record",
        "name": "R",
        "fields": [{"name": name, "type": kind} for name, kind in fields.items()],
    }


@settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(examples())
def test_encoded_payloads_are_those_of_fastavro(example: Example) -> None:
    kind = avro.arrow_type(example.source, None)
    rows = pa.array([None, *example.values, None], kind)
    payloads = encode(example.schema, rows[1:])
    assert payloads[-1] is None
    assert [read(example.schema, payload) for payload in payloads[:-1] if payload is not None] == [
        read(example.schema, payload) for payload in example.payloads
    ]
    decoder = avro.decoder(example.source, example.source, None, framed=False)
    assert decoder.decode(pa.array(payloads, pa.binary())).values.equals(rows[1:])


def test_the_id_precedes_each_payload_and_nulls_stay_null() -> None:
    values = pa.array([{"a": 1}, None, {"a": 2}])
    assert encode(record(a="long"), values, 7) == [
        id_prefix(7) + b"\x02",
        None,
        id_prefix(7) + b"\x04",
    ]


def test_the_schema_bytes_has_no_length_after_the_id() -> None:
    payloads = pa.array([b"abc", None, b""], pa.binary())
    encoded = encode("bytes", payloads, 7)
    assert encoded == [b"\0\0\0\0\7abc", None, b"\0\0\0\0\7"]
    source = SchemaSource('"bytes"', {})
    decoded = avro.decoder(source, source, None, framed=True).decode(pa.array(encoded, pa.binary()))
    assert decoded.values.equals(payloads)
    assert decoded.reasons is None


def test_a_derived_schema_accepts_all_values_of_the_type() -> None:
    inner = pa.struct([pa.field("x", pa.list_(pa.int32())), pa.field("y", pa.string())])
    kind = pa.struct(
        [
            pa.field("a", pa.int64(), nullable=False),
            pa.field("when", pa.timestamp("us", tz="UTC")),
            pa.field("local", pa.timestamp("us")),
            pa.field("day", pa.date32()),
            pa.field("money", pa.decimal128(12, 2)),
            pa.field("inner", inner),
            pa.field("names", pa.map_(pa.string(), inner)),
            pa.field("small", pa.int8()),
            pa.field("flag", pa.bool_()),
        ]
    )
    text = avro.derive(kind, "orders.v1")
    moment = dt.datetime(1969, 12, 31, 23, 59, 59, 999999)
    row = {
        "a": 1,
        "when": moment.replace(tzinfo=dt.UTC),
        "local": moment,
        "day": moment.date(),
        "money": None,
        "inner": {"x": [1, None], "y": None},
        "names": [("k", {"x": None, "y": "y"})],
        "small": -3,
        "flag": True,
    }
    empty = {**dict.fromkeys(kind.names), "a": 2}
    rows = pa.array([row, empty], kind)
    source = SchemaSource(text)
    encoded = avro.encoder(source, kind, None, schema_id=None).encode(rows)
    decoded = avro.decoder(source, source, None, framed=False).decode(encoded)
    assert decoded.values.to_pylist() == rows.to_pylist()


@pytest.mark.parametrize(
    ("schema", "values", "says"),
    [
        (
            record(a="long"),
            pa.array([{"a": "x"}]),
            "'a' has type string, and the schema requires long",
        ),
        (record(), pa.array([{"b": 1}]), "Field 'b' is not in the schema"),
        (record(a="int", b="int"), pa.array([{"a": 1}]), "Field 'b' is in the schema"),
    ],
)
def test_columns_that_do_not_fit_the_schema_are_rejected(
    schema: Any, values: pa.Array, says: str
) -> None:
    with pytest.raises(SchemaError, match=says):
        avro.encoder(SchemaSource(json.dumps(schema)), values.type, None, schema_id=None)


@pytest.mark.parametrize(
    ("schema", "values", "says"),
    [
        (record(a="long"), pa.array([{"a": 1}, {"a": None}]), "Row 1 .* field 'a': it is null"),
        (record(a="int"), pa.array([{"a": 2**31}]), "Field 'a' cannot be written"),
        (
            record(t={"type": "long", "logicalType": "timestamp-nanos"}),
            pa.array([{"t": 2**62}], pa.struct([("t", pa.timestamp("us", tz="UTC"))])),
            "Field 't' cannot be written: overflow",
        ),
        (
            record(e={"type": "enum", "name": "E", "symbols": ["A"]}),
            pa.array([{"e": "A"}, {"e": "B"}]),
            "Row 1 .* field 'e': it is not a symbol of enum E",
        ),
        (
            record(f={"type": "fixed", "name": "F", "size": 2}),
            pa.array([{"f": b"abc"}]),
            "Row 0 .* field 'f': it has 3 bytes",
        ),
        (
            record(r={**record(x="long"), "name": "X"}),
            pa.array([{"r": {"x": None}}]),
            r"field 'r\.x'",
        ),
    ],
)
def test_a_value_that_does_not_fit_is_named(schema: Any, values: pa.Array, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        encode(schema, values)


def test_fields_without_a_column_have_their_defaults() -> None:
    schema = {
        "type": "record",
        "name": "R",
        "fields": [
            {"name": "a", "type": "int"},
            {"name": "b", "type": "string", "default": "x"},
            {"name": "c", "type": ["int", "null"]},
        ],
    }
    (payload,) = encode(schema, pa.array([{"a": 1}]))
    assert payload is not None
    assert read(schema, payload) == {"a": 1, "b": "x", "c": None}


def test_the_branch_of_a_union_is_selected_by_value_or_type() -> None:
    schema = record(u=["null", "string", "long"])
    members = pa.struct([("member0", pa.string()), ("member1", pa.int64())])
    values = pa.array(
        [
            {"u": {"member0": "a", "member1": None}},
            {"u": {"member0": None, "member1": 5}},
            {"u": None},
        ],
        pa.struct([("u", members)]),
    )
    payloads = [write(schema, {"u": value}) for value in ("a", 5, None)]
    assert encode(schema, values) == payloads
    assert encode(schema, pa.array([{"u": 5}])) == payloads[1:2]
    with pytest.raises(ValueError, match="no branch of the union is set"):
        encode(schema, pa.array([{"u": {"member0": None, "member1": None}}], values.type))


def test_times_before_the_epoch_are_rounded_down() -> None:
    schema = record(t={"type": "long", "logicalType": "timestamp-millis"})
    moment = dt.datetime(1969, 12, 31, 23, 59, 59, 999999, dt.UTC)
    values = pa.array([{"t": moment}], pa.struct([("t", pa.timestamp("us", tz="UTC"))]))
    (payload,) = encode(schema, values)
    assert payload is not None
    assert read(record(t="long"), payload) == {"t": -1}
