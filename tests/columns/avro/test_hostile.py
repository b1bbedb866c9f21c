"""Bytes and schemas that somebody made to do harm: a reason is all they come to."""

import json
from typing import Any

import pyarrow as pa
import pytest
from tests.columns.avro.examples import write
from tests.columns.avro.test_decoding import decode, field, record

from barnabas.columns import avro
from barnabas.columns.language import SchemaSource
from barnabas.schemas import SchemaError

LINKED = record(field("a", "long"), field("next", ["null", "R"]))


def test_a_record_nested_beyond_the_stack_is_an_error() -> None:
    endless, short = b"\x02\x02" * 500_000, b"\x02\x02\x04\x00"
    decoded = decode(LINKED, [endless, short], record(field("a", "long")))
    assert decoded.values.to_pylist() == [None, {"a": 1}]
    assert decoded.reasons is not None
    assert "in field 'next': a record contains itself too many times" in decoded.reasons[0].as_py()


def test_a_recursive_record_is_read_to_the_depth_of_the_reader() -> None:
    payload = write(LINKED, {"a": 1, "next": {"a": 2, "next": {"a": 3, "next": None}}})
    inner = record(field("a", "long"), name="S")
    wanted = record(field("next", ["null", inner]), field("a", "long"))
    assert decode(LINKED, [payload], wanted).values.to_pylist() == [{"next": {"a": 2}, "a": 1}]


def test_mutually_recursive_records_are_resolved_in_references() -> None:
    tree = record(field("leaf", ["null", "Leaf"]), name="Tree")
    leaf = record(field("tree", ["null", tree]), field("b", "long"), name="Leaf")
    whole = record(field("first", leaf), field("a", "long"))
    referring = SchemaSource(
        json.dumps(record(field("first", "Leaf"), field("a", "long"))), {"leaf": json.dumps(leaf)}
    )
    wanted = SchemaSource(json.dumps(record(field("a", "long"))))
    value = {"first": {"tree": {"leaf": {"tree": None, "b": 1}}, "b": 2}, "a": 3}
    decoder = avro.decoder(referring, wanted, None, framed=False)
    assert decoder.decode(pa.array([write(whole, value)])).values.to_pylist() == [{"a": 3}]


@pytest.mark.parametrize("digits", [10, 38])
def test_the_minimum_of_sixteen_bytes_is_beyond_every_decimal(digits: int) -> None:
    kind = {"type": "bytes", "logicalType": "decimal", "precision": digits, "scale": 2}
    decoded = decode(record(field("d", kind)), [b"\x20\x80" + bytes(15)])
    assert decoded.values.to_pylist() == [None]


def test_empty_items_are_counted_across_the_arrays_of_a_payload() -> None:
    empty = {"type": "array", "items": record(name="Empty")}
    schema = record(field("a", {"type": "array", "items": empty}))
    inner = write("long", 1000) + b"\0"
    one, many = write("long", 1) + inner + b"\0", write("long", 100) + inner * 100 + b"\0"
    decoded = decode(schema, [many, one])
    assert decoded.reasons is not None
    assert "too many empty items" in decoded.reasons[0].as_py()
    assert decoded.values[1].as_py() == {"a": [[{}] * 1000]}


def test_a_field_name_has_priority_over_aliases() -> None:
    written = record(field("old", "long"), field("new", "long"))
    payload = write(written, {"old": 1, "new": 2})
    wanted = record(field("new", "long", aliases=["old"]))
    assert decode(written, [payload], wanted).values.to_pylist() == [{"new": 2}]


def _bomb(levels: int) -> Any:
    kind: Any = "int"
    for level in range(levels):
        before = f"L{level - 1}" if level else "int"
        kind = record(field("a", ["null", kind]), field("b", ["null", before]), name=f"L{level}")
    return kind


def test_records_that_contain_each_other_twice_are_skipped() -> None:
    written = record(field("bomb", _bomb(15)), field("bombs", {"type": "array", "items": "L14"}))
    payload = b"\x00\x00" + b"\x04\x00\x00\x00\x02\x00\x00\x00"
    assert decode(written, [payload], record()).values.to_pylist() == [{}]


@pytest.mark.parametrize(
    ("schema", "says"),
    [
        (record(field("a", "int"), field("a", "int")), "two fields called a"),
        (_bomb(15), "more than 5000 types"),
    ],
)
def test_schemas_that_columns_cannot_represent_are_rejected(schema: Any, says: str) -> None:
    source = SchemaSource(json.dumps(schema))
    with pytest.raises(SchemaError, match=says):
        avro.decoder(source, source, None, framed=False)
