"""Records with schemas: what cannot be decoded is a note, and what is printed is JSON."""

import json
from decimal import Decimal
from typing import Any

import pytest

from barnabas import Message
from barnabas.cli.operations.errors import CommandError
from barnabas.cli.operations.schema_records import (
    RecordDecoder,
    RecordEncoder,
    as_json_text,
    create_codec,
)
from barnabas.schema_registry import Schema, SchemaRegistryError
from barnabas.schemas.framing import id_prefix

DECIMAL = Schema('{"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}')
DOUBLE = Schema('"double"', "AVRO")
ANY = Schema(
    'syntax = "proto3"; import "google/protobuf/any.proto";'
    "message Outer { google.protobuf.Any item = 1; } message Inner { string name = 1; }",
    "PROTOBUF",
)
TIMESTAMP = Schema(
    'syntax = "proto3"; import "google/protobuf/timestamp.proto";'
    "message At { google.protobuf.Timestamp at = 1; }",
    "PROTOBUF",
)
REQUIRED = Schema('syntax = "proto2"; message Strict { required int32 id = 1; }', "PROTOBUF")
ANYTHING = Schema("{}", "JSON")
INNER = "type.googleapis.com/Inner"


class _Registry:
    """A registry's client that knows one schema."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema

    def get_schema(self, _schema_id: int) -> Schema:
        return self._schema

    def get_version(self, subject: str, *_: Any) -> Any:
        raise SchemaRegistryError(404, 40401, f"Subject '{subject}' not found.")


def decode(schema: Schema, *payloads: bytes) -> tuple[list[Any], list[str]]:
    """Returns the decoded values, and the notes."""
    notes: list[str] = []
    decoder = RecordDecoder(_Registry(schema), notes.append)  # type: ignore[arg-type]
    values = [
        decoder.decode(Message("t", 0, offset, None, id_prefix(7) + payload)).value
        for offset, payload in enumerate(payloads)
    ]
    return values, notes


def encode(schema: Schema, value: Any) -> bytes:
    return create_codec(schema, _Registry(schema)).encode(value)  # type: ignore[arg-type]


def test_an_any_is_read_and_written_with_the_messages_of_the_schema() -> None:
    value = {"item": {"@type": INNER, "name": "Ada"}}
    assert decode(ANY, encode(ANY, value)) == ([value], [])


@pytest.mark.parametrize(
    ("schema", "payload", "reason"),
    [
        (ANYTHING, b"[" * 100_000, "it is nested too deep"),
        (ANYTHING, b"[" * 900 + b"]" * 900, "it is nested too deep"),
        (ANYTHING, b"[", "Expecting value: line 1 column 2 (char 1)"),
        (
            TIMESTAMP,
            b"\0\x0a\x0a\x08\xff\xff\xff\xff\xff\xff\xff\xff\x7f",
            "Timestamp is not valid",
        ),
        (ANY, b"\0\x0a\x05\x0a\x03a/b", "Can not find message descriptor by type_url: a/b"),
        (
            Schema('{"type": "int", "logicalType": "date"}'),
            b"\xfe\xff\xff\xff\x0f",
            "greater than maximum",
        ),
    ],
)
def test_a_record_that_cannot_be_decoded_is_noted_and_shown_as_text(
    schema: Schema, payload: bytes, reason: str
) -> None:
    [value], [note] = decode(schema, payload)
    assert value == id_prefix(7) + payload
    assert note.startswith("t-0, offset 0: the value does not match schema 7: ")
    assert reason in note


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        (
            Schema('{"type": "record", "name": "A", "fields": [{}]}'),
            "Record field is missing 'name'",
        ),
        (Schema('"Absent"'), "it refers to Absent, which is not defined"),
        (Schema('{"type": 5}', "JSON"), "5 is not valid under any of the given schemas"),
        (Schema('syntax = "proto3"; message A { Absent a = 1; }', "PROTOBUF"), "Absent"),
        (Schema('syntax = "proto3"; message', "PROTOBUF"), "line 1"),
    ],
)
def test_a_schema_that_cannot_be_used_is_noted_once(schema: Schema, reason: str) -> None:
    values, [note] = decode(schema, b"a", b"b")
    assert values == [id_prefix(7) + b"a", id_prefix(7) + b"b"]
    assert note.startswith("schema 7 cannot be used, so its records are shown as text: ")
    assert reason in note
    assert "\n" not in note
    with pytest.raises(CommandError, match="schema 7 cannot be used: "):
        RecordEncoder(_Registry(schema), 7, schema)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("schema", "value", "reason"),
    [
        (ANY, {"item": {"@type": "type.googleapis.com/Absent"}}, "Can not find message descriptor"),
        (ANY, [], r"\[\] is not a JSON object"),
        (REQUIRED, {}, "missing required fields: id"),
        (ANYTHING, [float("nan")], "Out of range float values"),
        (Schema('"int"'), [], r"the value: \[\] is not of type int"),
    ],
)
def test_a_value_that_cannot_be_encoded_is_an_error_with_a_reason(
    schema: Schema, value: Any, reason: str
) -> None:
    with pytest.raises(ValueError, match=reason):
        encode(schema, value)


def test_a_line_that_is_nested_too_deep_is_not_json() -> None:
    encoder = RecordEncoder(_Registry(ANYTHING), 7, ANYTHING)  # type: ignore[arg-type]
    with pytest.raises(CommandError, match="not JSON: it is nested too deep"):
        encoder.encode(b"[" * 100_000)


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity"])
def test_numbers_that_json_does_not_have_are_strings(number: str) -> None:
    payload = encode(DOUBLE, float(number))
    [value], _ = decode(DOUBLE, payload)
    assert json.loads(as_json_text(value)) == number
    assert encode(DOUBLE, number) == payload
    with pytest.raises(ValueError, match="'none' is not of type double"):
        encode(DOUBLE, "none")


@pytest.mark.parametrize("number", ["99.99", "-1.5", "1e1", "0", "0e999999999", "-0.00"])
def test_a_decimal_within_the_precision_and_scale_is_written(number: str) -> None:
    [value], notes = decode(DECIMAL, encode(DECIMAL, number))
    assert (Decimal(value), notes) == (Decimal(number), [])


@pytest.mark.parametrize(
    "number", ["NaN", "Infinity", "1e2", "100", "1.234", "1e3000000", "1e999999999", "1e-999999999"]
)
def test_a_decimal_beyond_the_precision_or_scale_is_rejected(number: str) -> None:
    with pytest.raises(ValueError, match=f"'{number}' is not of type decimal\\(4, 2\\)"):
        encode(DECIMAL, number)
