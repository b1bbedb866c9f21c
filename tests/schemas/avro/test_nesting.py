"""The nesting of payloads is checked before fastavro reads them, compiled and as plain Python."""

import io
import json
from typing import Any

import fastavro
import pytest
from tests.uncompiled import compiled_and_plain

from barnabas.schemas.avro import _nesting
from barnabas.schemas.avro.parser import parse_stored_schema

loops = compiled_and_plain(_nesting)


def record(name: str, /, **fields: Any) -> Any:
    listed = [{"name": field, "type": type_} for field, type_ in fields.items()]
    return {"type": "record", "name": name, "fields": listed}


def find_fault(schema: Any, payload: bytes) -> str:
    return _nesting.find_nesting_fault(parse_stored_schema(json.dumps(schema), {}), payload)


TREE = record(
    "Tree",
    name="string",
    size={"type": "fixed", "name": "Size", "size": 3},
    weight=["null", "double"],
    kind={"type": "enum", "name": "Kind", "symbols": ["A", "B"]},
    branches={"type": "array", "items": "Tree"},
    by_name={"type": "map", "values": "Tree"},
)
LEAF = {"name": "l", "size": b"abc", "weight": 1.5, "kind": "B", "branches": [], "by_name": {}}


def test_a_record_that_contains_itself_is_recursive() -> None:
    plain = record("Plain", a=record("Inner", b="int"), c="Inner")
    assert not _nesting.is_recursive(parse_stored_schema(json.dumps(plain), {}))
    assert _nesting.is_recursive(parse_stored_schema(json.dumps(TREE), {}))


def test_a_payload_of_every_kind_of_type_has_no_fault() -> None:
    tree = LEAF | {"weight": None, "branches": [LEAF, LEAF], "by_name": {"x": LEAF}}
    output = io.BytesIO()
    fastavro.schemaless_writer(output, fastavro.parse_schema(TREE), tree)
    assert find_fault(TREE, output.getvalue()) == ""


@pytest.mark.parametrize(
    "schema", [record("R", next=["null", "R"]), record("R", next="R")], ids=["union", "direct"]
)
def test_a_payload_that_is_nested_too_deep_is_a_fault(schema: Any) -> None:
    assert "too often within itself" in find_fault(schema, b"\x02" * 100_000)


def test_an_array_with_too_many_empty_items_is_a_fault() -> None:
    schema = record("R", next=["null", "R"], items={"type": "array", "items": "null"})
    assert "too many empty items" in find_fault(schema, b"\x00\xfe\xff\xff\xff\x0f\x00")


@pytest.mark.parametrize("payload", [b"", b"\x02", b"\x04", b"\x80" * 12])
def test_other_faults_are_left_to_fastavro(payload: bytes) -> None:
    assert find_fault(record("R", next=["null", "R"]), payload) == ""
