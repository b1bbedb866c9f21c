"""What fastavro writes is decoded to the same values, and foreign bytes hurt no other row."""

import io
import json
import math
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.columns.avro.examples import Example, examples, write

from barnabas.columns import DecodedColumn, avro
from barnabas.columns.language import SchemaSource
from barnabas.schemas import SchemaError
from barnabas.schemas.framing import id_prefix

few = settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def decode(
    written: Any, payloads: list[bytes | None], wanted: Any = None, *, framed: bool = False
) -> DecodedColumn:
    source = SchemaSource(json.dumps(written))
    target = source if wanted is None else SchemaSource(json.dumps(wanted))
    decoded = avro.decoder(source, target, None, framed=framed).decode(
        pa.array(payloads, pa.binary())
    )
    decoded.values.validate(full=True)
    assert decoded.values.type == avro.arrow_type(target, None)
    return decoded


def record(*fields: Any, name: str = "R") -> Any:
    return {"type": "record", "name": name, "fields": list(fields)}


def field(name: str, kind: Any, **more: Any) -> Any:
    return {"name": name, "type": kind, **more}


@few
@given(examples())
def test_payloads_of_fastavro_are_decoded_to_the_same_values(example: Example) -> None:
    decoded = decode(example.schema, [*example.payloads, None])
    assert decoded.reasons is None
    expected = pa.array([*example.values, None], decoded.values.type)
    assert decoded.values.equals(expected)


@few
@given(examples(max_size=4), st.data())
def test_a_truncated_payload_is_null_with_a_reason_and_its_neighbours_are_intact(
    example: Example, data: st.DataObject
) -> None:
    payloads: list[bytes | None] = []
    expected: list[Any] = []
    for payload, value in zip(example.payloads, example.values, strict=True):
        cut = payload[: data.draw(st.integers(0, len(payload) - 1))] if payload else payload
        payloads += [payload, cut, payload]
        expected += [value, None if payload else value, value]
    decoded = decode(example.schema, payloads)
    assert decoded.values.equals(pa.array(expected, decoded.values.type))
    if decoded.reasons is not None:
        reasons = decoded.reasons.to_pylist()
        assert [row for row, reason in enumerate(reasons) if reason] == [
            row for row, value in enumerate(expected) if value is None
        ]


@few
@given(examples(max_size=1), st.lists(st.binary(max_size=40), max_size=20))
def test_any_bytes_are_either_values_or_errors(example: Example, payloads: list[bytes]) -> None:
    decoded = decode(example.schema, list(payloads))
    assert len(decoded.values) == len(payloads)
    reasons = decoded.reasons.to_pylist() if decoded.reasons is not None else [None] * len(payloads)
    assert decoded.values.is_null().to_pylist() == [reason is not None for reason in reasons]


def test_a_slice_of_payloads_with_ids_before_them_is_decoded() -> None:
    schema = record(field("a", "long"), field("b", ["null", "string"]))
    values = [{"a": row, "b": None if row % 2 else f"b{row}"} for row in range(5)]
    payloads = pa.array([id_prefix(7) + write(schema, value) for value in values] + [None])
    source = SchemaSource(json.dumps(schema))
    decoded = avro.decoder(source, source, None, framed=True).decode(payloads[2:])
    assert decoded.values.to_pylist() == [*values[2:], None]


def test_a_reason_names_the_field() -> None:
    schema = record(field("a", "long"), field("b", record(field("c", "string"), name="B")))
    decoded = decode(schema, [b"\x02\x04\xff\xfe", b"\x02\x10abc", b"\x02"])
    assert decoded.reasons is not None
    assert decoded.reasons.to_pylist() == [
        "The payload is not Avro of its schema in field 'b.c': text is not UTF-8.",
        "The payload is not Avro of its schema in field 'b.c': the payload ends within it.",
        "The payload is not Avro of its schema in field 'b.c': the payload ends within it.",
    ]


OLD = record(
    field("id", "int"),
    field("dropped", {"type": "array", "items": ["null", {"type": "map", "values": "bytes"}]}),
    field("score", "float"),
    field("was", "string"),
    field("raw", "bytes"),
    field("colour", {"type": "enum", "name": "C", "symbols": ["RED", "PINK"]}),
    field("often", ["null", "int", "string"]),
)
NEW = record(
    field("often", ["null", "long", "string"]),
    field("new", {"type": "array", "items": "int"}, default=[1, 2]),
    field("is", ["null", "string"], aliases=["was"], default=None),
    field("colour", {"type": "enum", "name": "C", "symbols": ["RED", "NONE"], "default": "NONE"}),
    field("raw", "string"),
    field("score", "double"),
    field("inner", record(field("x", "int", default=3), name="I"), default={}),
    field("id", "double"),
    field("none", ["null", "int"], default=None),
)


def test_fields_are_skipped_defaulted_renamed_reordered_and_promoted() -> None:
    written = {
        "id": 3,
        "dropped": [None, {"k": b"v"}],
        "score": 0.5,
        "was": "w",
        "raw": b"raw",
        "colour": "PINK",
        "often": 8,
    }
    assert decode(OLD, [write(OLD, written)], NEW).values.to_pylist() == [
        {
            "often": {"member0": 8, "member1": None},
            "new": [1, 2],
            "is": "w",
            "colour": "NONE",
            "raw": "raw",
            "score": 0.5,
            "inner": {"x": 3},
            "id": 3.0,
            "none": None,
        }
    ]


@pytest.mark.parametrize(
    ("written", "wanted", "says"),
    [
        (record(field("a", "string")), record(field("a", "long")), "'a' was written as string"),
        (record(), record(field("b", "int")), "'b' was not written and has no default"),
        (record(), record(field("b", "int", default="x")), "The default of field 'b'"),
        (
            record(field("a", {"type": "fixed", "name": "F", "size": 2})),
            record(field("a", {"type": "fixed", "name": "F", "size": 3})),
            "fixed F",
        ),
    ],
)
def test_a_schema_mismatch_names_the_field(written: Any, wanted: Any, says: str) -> None:
    with pytest.raises(SchemaError, match=says):
        decode(written, [], wanted)


def test_a_writers_union_fails_only_for_branches_that_do_not_match() -> None:
    written = record(field("a", ["null", "long"]))
    decoded = decode(
        written, [write(written, {"a": 5}), write(written, {"a": None})], record(field("a", "long"))
    )
    assert decoded.values.to_pylist() == [{"a": 5}, None]
    assert decoded.reasons is not None
    assert "'a'" in decoded.reasons.to_pylist()[1]


def test_unions_of_numbers_are_promoted_and_others_are_structs() -> None:
    schema = record(
        field("n", ["int", "null", "long"]), field("x", ["string", "null", record(name="N")])
    )
    decoded = decode(
        schema,
        [b"\x00\x02\x00\x02a", b"\x04\x04\x04", b"\x02\x02"],
    )
    assert decoded.values.to_pylist() == [
        {"n": 1, "x": {"member0": "a", "member1": None}},
        {"n": 2, "x": {"member0": None, "member1": {}}},
        {"n": None, "x": None},
    ]


def test_a_union_of_one_type_is_that_type_after_the_branch_number() -> None:
    schema = record(field("a", ["string"]), field("b", "int"))
    value = {"a": "text", "b": 3}
    assert decode(schema, [write(schema, value)]).values.to_pylist() == [value]


def test_times_are_read_in_the_unit_they_were_written_in() -> None:
    def stamped(unit: str) -> Any:
        return record(field("t", {"type": "long", "logicalType": f"timestamp-{unit}"}))

    for unit, ticks in [("millis", -1), ("micros", -1000), ("nanos", -1_000_000)]:
        payload = write(record(field("t", "long")), {"t": ticks})
        decoded = decode(stamped(unit), [payload], stamped("micros"))
        assert pa.compute.cast(decoded.values.field(0), pa.int64()).to_pylist() == [-1000]


def test_a_time_out_of_range_is_an_error() -> None:
    schema = record(field("t", {"type": "long", "logicalType": "timestamp-millis"}))
    payload = write(record(field("t", "long")), {"t": 2**62})
    assert decode(schema, [payload]).reasons is not None


@pytest.mark.parametrize("digits", ["9999", "-9999", "10000", "-10000", "0"])
def test_a_decimal_beyond_its_precision_is_an_error(digits: str) -> None:
    schema = record(
        field("d", {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2})
    )
    unscaled = int(digits).to_bytes(20, "big", signed=True)
    decoded = decode(schema, [write(record(field("d", "bytes")), {"d": unscaled})])
    assert (decoded.reasons is None) == (abs(int(digits)) < 10**4)


def test_a_uuid_of_sixteen_bytes_is_text() -> None:
    schema = {"type": "fixed", "name": "U", "size": 16, "logicalType": "uuid"}
    decoded = decode(schema, [bytes(range(16))])
    assert decoded.values.to_pylist() == ["00010203-0405-0607-0809-0a0b0c0d0e0f"]


def test_nan_and_infinity_are_decoded() -> None:
    schema = record(field("f", "float"))
    (value,) = decode(
        schema, [write(schema, {"f": math.nan})], record(field("f", "double"))
    ).values.to_pylist()
    assert math.isnan(value["f"])


def test_arrays_with_too_many_empty_items_are_an_error() -> None:
    schema = {"type": "array", "items": "null"}
    endless = write("long", 2**62) + b"\0"
    many = (write("long", 1000)) * 50 + b"\0"
    decoded = decode(schema, [endless, many, write("long", 3) + b"\0"])
    assert decoded.values.to_pylist() == [None, None, [None] * 3]


def test_blocks_with_a_size_are_read_and_skipped() -> None:
    written = record(field("a", {"type": "array", "items": "int"}), field("b", "int"))
    payload = write("long", -2) + write("long", 2) + b"\x02\x04" + b"\x02\x06\0" + b"\x08"
    assert decode(written, [payload]).values.to_pylist() == [{"a": [1, 2, 3], "b": 4}]
    assert decode(written, [payload], record(field("b", "int"))).values.to_pylist() == [{"b": 4}]


def test_a_recursive_record_is_skipped_if_the_reader_does_not_have_it() -> None:
    written = record(field("a", "long"), field("next", ["null", "R"]))
    payload = write(written, {"a": 1, "next": {"a": 2, "next": None}})
    decoded = decode(written, [payload, b"\x02\x07", None], record(field("a", "long")))
    assert decoded.values.to_pylist() == [{"a": 1}, None, None]
    assert decoded.reasons is not None
    assert [reason is not None for reason in decoded.reasons.to_pylist()] == [False, True, False]


def test_a_record_within_itself_has_no_columns() -> None:
    with pytest.raises(SchemaError, match="contains itself"):
        avro.arrow_type(SchemaSource(json.dumps(record(field("next", ["null", "R"])))), None)


def test_types_of_references_are_resolved() -> None:
    inner = record(field("x", "int"), name="a.Inner")
    source = SchemaSource(
        json.dumps({**record(field("i", "Inner")), "namespace": "a"}), {"inner": json.dumps(inner)}
    )
    target = io.BytesIO()
    fastavro.schemaless_writer(
        target, fastavro.parse_schema(record(field("i", inner))), {"i": {"x": 1}}
    )
    decoder = avro.decoder(source, source, None, framed=False)
    assert decoder.decode(pa.array([target.getvalue()])).values.to_pylist() == [{"i": {"x": 1}}]


@pytest.mark.parametrize("kind", ["boolean", "int", "long", "float", "double", "string"])
def test_columns_grow_with_long_lists(kind: str) -> None:
    schema = {"type": "array", "items": kind}
    value = {"boolean": True, "string": "some text"}.get(kind, 3)
    wanted = {"float": "double", "long": "float"}.get(kind, kind)
    decoded = decode(schema, [write(schema, [value] * 1000)], {"type": "array", "items": wanted})
    assert decoded.values.to_pylist() == [[value] * 1000]


def test_several_payloads_of_bytes_after_their_ids_are_decoded() -> None:
    source = SchemaSource('"bytes"')
    decoder = avro.decoder(source, source, None, framed=True)
    payloads = [id_prefix(1) + b"ab", None, id_prefix(1), id_prefix(1) + b"c"]
    decoded = decoder.decode(pa.array(payloads, pa.binary()))
    assert decoded.values.to_pylist() == [b"ab", None, b"", b"c"]
