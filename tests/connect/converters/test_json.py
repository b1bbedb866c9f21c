"""JSON with and without schemas."""

import json
import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.connect.converters.conversions import (
    configured,
    dumps,
    errors,
    payloads,
    rows,
    values,
)
from tests.connect.converters.random_data import SCHEMAS, TEXT, value_of

from barnabas.connect.converters.json import JsonConverter
from barnabas.connect.data.schema import (
    DECIMAL,
    SCALE,
    ConnectSchema,
    SchemaField,
    Type,
    struct_schema,
)
from barnabas.connect.errors import DataError, InvalidConfigError

INT32 = {"type": "int32", "optional": False}
NAMED = {
    "type": "struct",
    "fields": [{**INT32, "field": "id"}, {"type": "string", "optional": True, "field": "name"}],
    "optional": False,
}
NOT_AN_ENVELOPE = (
    'JsonConverter with schemas.enable requires "schema" and "payload" fields and may not contain '
    "additional fields. If you are trying to deserialize plain JSON data, set schemas.enable=false "
    "in your converter configuration."
)


@pytest.fixture
def converter() -> JsonConverter:
    return configured(JsonConverter)


@pytest.fixture
def schemaless() -> JsonConverter:
    return configured(JsonConverter, {"schemas.enable": "false"})


def envelope(schema: Any, payload: Any) -> bytes:
    return dumps({"schema": schema, "payload": payload})


# With schemas


@given(data=st.data(), schema=SCHEMAS, decimal_format=st.sampled_from(["BASE64", "NUMERIC"]))
def test_rows_with_a_schema_are_read_as_they_were_written(
    data: Any, schema: ConnectSchema, decimal_format: str
) -> None:
    converter = configured(JsonConverter, {"decimal.format": decimal_format})
    column = pa.array(data.draw(st.lists(value_of(schema), max_size=5)), schema.arrow_type())
    first = data.draw(st.integers(0, 2))
    column = column[first:]
    written = converter.from_connect("topic", schema, column)
    assert not written.errors
    for payload in written.payloads.to_pylist():
        document = json.loads(payload)
        assert dumps(document["schema"]) in payload
    read = converter.to_connect("topic", written.payloads)
    assert not read.errors
    if len(column):
        assert rows(read) == [(schema, value) for value in column.to_pylist()]


def test_rows_of_several_schemas_keep_their_order(converter: JsonConverter) -> None:
    read = converter.to_connect(
        "topic",
        payloads(
            None,
            envelope(NAMED, {"id": 1}),
            envelope(INT32, 2),
            None,
            envelope(NAMED, {"id": 3, "name": "c"}),
            envelope(NAMED, {"id": 4}),
            b'{"payload":5,"schema":{"type":"int32","optional":false}}',
            envelope(None, {"x": 1}),
            envelope(INT32, "x"),
            envelope(INT32, 9),
        ),
    )
    assert values(read) == [
        None,
        {"id": 1, "name": None},
        2,
        None,
        {"id": 3, "name": "c"},
        {"id": 4, "name": None},
        5,
        {"x": 1},
        None,
        9,
    ]
    assert [run.start for run in read.runs] == [0, 2, 4, 6, 7, 8]
    assert errors(read) == {8: "Invalid value for INT32 field: found STRING"}


def test_texts_of_one_schema_need_not_be_equal(converter: JsonConverter) -> None:
    other = json.dumps({"schema": NAMED, "payload": {"name": "b", "id": 2}}, indent=1).encode()
    read = converter.to_connect("topic", payloads(envelope(NAMED, {"id": 1}), other))
    assert values(read) == [{"id": 1, "name": None}, {"id": 2, "name": "b"}]


@pytest.mark.parametrize(
    "document",
    [b"{}", b"[]", b"1", b'{"schema":null}', b'{"schema":null,"payload":1,"x":2}', b'{"a":1}', b""],
)
def test_documents_without_schema_and_payload_are_errors(
    converter: JsonConverter, document: bytes
) -> None:
    good = envelope(INT32, 1)
    read = converter.to_connect("topic", payloads(good, document, good))
    assert errors(read) == {1: NOT_AN_ENVELOPE}
    assert values(read) == [1, None, 1]


@pytest.mark.parametrize(
    ("schema", "payload", "message"),
    [
        (NAMED, {"name": "x"}, "Invalid null value for required INT32 field in field 'id'"),
        (NAMED, {"id": None}, "Invalid null value for required INT32 field in field 'id'"),
        (NAMED, None, "Invalid null value for required STRUCT field"),
        (NAMED, [], "Structs should be encoded as JSON objects, but found ARRAY"),
        (
            NAMED,
            {"id": 1, "name": 2},
            "Invalid value for STRING field: found NUMBER in field 'name'",
        ),
        (INT32, 2**31, "A number does not fit INT32"),
        ({"type": "int8"}, -129, "A number does not fit INT8"),
        ({"type": "bytes"}, "a", "Invalid bytes for BYTES field"),
        ({"type": "bytes"}, "a===", "Invalid bytes for BYTES field"),
        ({"type": "boolean"}, 1, "Invalid value for BOOLEAN field: found NUMBER"),
        (
            {"type": "map", "keys": {"type": "string"}, "values": INT32},
            [],
            "Maps with string fields should be encoded as JSON objects, but found ARRAY",
        ),
        (
            {"type": "map", "keys": INT32, "values": INT32},
            {},
            "Maps with non-string fields should be encoded as JSON arrays of tuples, but found "
            "OBJECT",
        ),
        (
            {"type": "map", "keys": INT32, "values": INT32},
            [[1]],
            "Found invalid map entry instead of array tuple",
        ),
        (
            {"type": "int32", "name": "org.apache.kafka.connect.data.Date"},
            1.5,
            "Invalid type for Date, underlying representation should be integer but was NUMBER",
        ),
        ({"type": "nothing"}, 1, "Unknown schema type: nothing"),
        (
            {"type": "bytes", "name": DECIMAL},
            "AA==",
            f"The scale of a schema of name {DECIMAL} is not a number",
        ),
    ],
)
def test_values_that_do_not_fit_their_schema_are_errors_of_their_row(
    converter: JsonConverter, schema: Any, payload: Any, message: str
) -> None:
    good = envelope({"type": "string", "optional": False}, "good")
    read = converter.to_connect("topic", payloads(good, envelope(schema, payload), good))
    assert errors(read) == {1: message}
    assert [value for value in values(read) if value is not None] == ["good", "good"]
    assert all(isinstance(each.error, DataError) for each in read.errors)


def test_a_row_that_fails_leaves_nothing_in_lists_and_maps(converter: JsonConverter) -> None:
    schema = {
        "type": "struct",
        "fields": [
            {"type": "array", "items": {"type": "string"}, "field": "l"},
            {"type": "map", "keys": INT32, "values": {"type": "string"}, "field": "m"},
            {**INT32, "field": "end"},
        ],
    }
    good = {"l": ["a", "b"], "m": [[1, "x"]], "end": 1}
    bad = {"l": ["c", "d"], "m": [[2, "y"], [3, "z"]], "end": "no"}
    read = converter.to_connect(
        "topic", payloads(*(envelope(schema, each) for each in (good, bad, good, bad)))
    )
    expected = {"l": ["a", "b"], "m": [(1, "x")], "end": 1}
    assert values(read) == [expected, None, expected, None]


def test_nulls_are_replaced_by_defaults_if_that_is_set() -> None:
    schema = {
        "type": "struct",
        "fields": [
            {"type": "int32", "optional": False, "default": 7, "field": "a"},
            {"type": "string", "optional": True, "default": "d", "field": "b"},
            {"type": "array", "items": INT32, "optional": True, "default": [1, 2], "field": "c"},
        ],
        "optional": False,
    }
    document = payloads(envelope(schema, {"b": None}))
    read = configured(JsonConverter).to_connect("topic", document)
    assert values(read) == [{"a": 7, "b": "d", "c": [1, 2]}]
    kept = configured(JsonConverter, {"replace.null.with.default": "false"})
    assert errors(kept.to_connect("topic", document)) == {
        0: "Invalid null value for required INT32 field in field 'a'"
    }
    assert values(kept.to_connect("topic", payloads(envelope(schema, {"a": 1})))) == [
        {"a": 1, "b": None, "c": None}
    ]


def test_a_null_that_a_field_requires_is_an_error_when_it_is_written(
    converter: JsonConverter,
) -> None:
    schema = struct_schema(
        {
            "a": struct_schema({"b": ConnectSchema(Type.INT32)}),
            "l": ConnectSchema(Type.ARRAY, value_schema=ConnectSchema(Type.INT32)),
        }
    )
    column = pa.array(
        [
            {"a": {"b": 1}, "l": [1]},
            {"a": {"b": None}, "l": [1]},
            {"a": {"b": 1}, "l": [None]},
            None,
        ],
        schema.arrow_type(),
    )
    written = converter.from_connect("topic", schema, column)
    message = "Conversion error: null value for field that is required and has no default value"
    assert [(each.row, str(each.error)) for each in written.errors] == [
        (1, f"{message} in field 'a.b'"),
        (2, f"{message} in field 'l'"),
    ]
    assert [payload is None for payload in written.payloads.to_pylist()] == [
        False,
        True,
        True,
        True,
    ]


def test_a_null_of_an_optional_schema_has_an_envelope(converter: JsonConverter) -> None:
    schema = ConnectSchema(Type.INT32, is_optional=True)
    written = converter.from_connect("topic", schema, pa.array([None, 1], pa.int32()))
    assert written.payloads.to_pylist() == [
        b'{"schema":{"type":"int32","optional":true},"payload":null}',
        b'{"schema":{"type":"int32","optional":true},"payload":1}',
    ]
    assert values(converter.to_connect("topic", written.payloads)) == [None, 1]


def test_the_schema_of_a_sink_may_be_in_its_settings() -> None:
    converter = configured(JsonConverter, {"schema.content": json.dumps(NAMED)})
    read = converter.to_connect("topic", payloads({"id": 1, "name": "a", "other": [{}]}, None, {}))
    assert values(read) == [{"id": 1, "name": "a"}, None, None]
    assert errors(read) == {2: "Invalid null value for required INT32 field in field 'id'"}


def test_a_schema_in_the_settings_must_be_valid() -> None:
    with pytest.raises(DataError, match="Unknown schema type"):
        configured(JsonConverter, {"schema.content": '{"type":"x"}'})
    with pytest.raises(InvalidConfigError, match=r"decimal\.format"):
        configured(JsonConverter, {"decimal.format": "x"})


def test_decimals_are_numbers_or_base64(converter: JsonConverter) -> None:
    schema = {"type": "bytes", "name": DECIMAL, "version": 1, "parameters": {SCALE: "2"}}
    documents = [envelope(schema, value) for value in ("AMg=", 12.5, -3, "/w==", "A" * 44, 0.125)]
    documents.append(envelope(schema, 0).replace(b"0}", b"99999999999999999999999999999999999999}"))
    read = converter.to_connect("topic", payloads(*documents))
    expected = ["2.00", "12.50", "-3.00", "-0.01"]
    assert values(read)[:4] == [Decimal(text) for text in expected]
    assert set(errors(read)) == {5, 6}
    assert values(read)[4] == Decimal("0.00")


# Without schemas


def same_kind(documents: Any) -> bool:
    """Whether no array mixes kinds of values, which columns cannot have."""
    if isinstance(documents, dict):
        return all(map(same_kind, documents.values()))
    if not isinstance(documents, list):
        return True
    try:
        pa.array(documents)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return False
    kinds = {type(each) for each in documents if each is not None}
    return len(kinds) <= 1 and all(map(same_kind, documents))


JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)


def without_nulls(document: Any) -> Any:
    if isinstance(document, dict):
        return {key: without_nulls(each) for key, each in document.items() if each is not None}
    return [without_nulls(each) for each in document] if isinstance(document, list) else document


@given(st.lists(JSON_VALUES.filter(same_kind), min_size=1, max_size=6))
def test_documents_without_schemas_are_read_in_runs_of_one_type(documents: list[Any]) -> None:
    converter = configured(JsonConverter, {"schemas.enable": "false"})
    read = converter.to_connect("topic", payloads(*[dumps(each) for each in documents]))
    assert not read.errors
    assert len(rows(read)) == len(documents)
    written: list[bytes | None] = []
    for run in read.runs:
        written += converter.from_connect("topic", None, run.values).payloads.to_pylist()
    for document, payload in zip(documents, written, strict=True):
        found = None if payload is None else json.loads(payload)
        assert found == without_nulls(document)


def test_fields_that_rows_lack_are_null_and_are_not_written(schemaless: JsonConverter) -> None:
    read = schemaless.to_connect(
        "topic", payloads({"a": 1}, {"b": {"c": "x"}}, None, {"a": None, "b": {"d": [1.5]}})
    )
    (run,) = read.runs
    assert run.schema is None
    assert run.values.to_pylist() == [
        {"a": 1, "b": None},
        {"a": None, "b": {"c": "x", "d": None}},
        None,
        {"a": None, "b": {"c": None, "d": [1.5]}},
    ]
    written = schemaless.from_connect("topic", None, run.values)
    assert written.payloads.to_pylist() == [
        b'{"a":1}',
        b'{"b":{"c":"x"}}',
        None,
        b'{"b":{"d":[1.5]}}',
    ]


def test_a_row_of_another_type_begins_a_run(schemaless: JsonConverter) -> None:
    read = schemaless.to_connect(
        "topic", payloads({"a": 1}, {"b": 2}, {"a": "x", "c": True}, {"a": "y"}, [1], "s", 1, 2.5)
    )
    assert [(run.start, str(run.values.type)) for run in read.runs] == [
        (0, "struct<a: int64, b: int64>"),
        (2, "struct<a: string, c: bool>"),
        (4, "list<item: int64>"),
        (5, "string"),
        (6, "double"),
    ]
    assert not read.errors


def test_integers_and_fractions_are_doubles_unless_that_would_round(
    schemaless: JsonConverter,
) -> None:
    read = schemaless.to_connect(
        "topic", payloads({"a": 1}, {"a": 1.5}, {"a": 2**53 + 1}, {"a": 3})
    )
    assert [(run.start, str(run.values.type)) for run in read.runs] == [
        (0, "struct<a: double>"),
        (2, "struct<a: int64>"),
    ]
    assert values(read) == [{"a": 1.0}, {"a": 1.5}, {"a": 2**53 + 1}, {"a": 3}]


def test_documents_whose_keys_are_data_are_split_into_runs(schemaless: JsonConverter) -> None:
    count = 6000
    documents = [{f"key{row}": {str(row): row}} for row in range(count)]
    read = schemaless.to_connect("topic", payloads(*documents))
    assert 1 < len(read.runs) < 10
    assert sum(len(run.values) for run in read.runs) == count
    assert read.runs[-1].values[-1].as_py()[f"key{count - 1}"][str(count - 1)] == count - 1


@pytest.mark.parametrize(
    "document",
    [
        b"{",
        b"[1,]",
        b'{"a" 1}',
        b"nul",
        b"nulls",
        b"'a'",
        b'"\x01"',
        b'"\\x"',
        b'"\\u12"',
        b"1.",
        b".5",
        b"1e",
        b"{1:2}",
        b'{"a":1,}',
        b"1 2",
        b"\0",
        b'{"a":1}\0',
    ],
)
def test_text_that_is_not_json_is_an_error_of_its_row(
    schemaless: JsonConverter, document: bytes
) -> None:
    read = schemaless.to_connect("topic", payloads({"a": 1}, document, {"a": 2}))
    assert list(errors(read)) == [1]
    assert errors(read)[1].startswith(
        "Converting byte[] to Kafka Connect data failed due to serialization error: "
    )
    assert values(read) == [{"a": 1}, None, {"a": 2}]


def test_numbers_are_read_exactly(schemaless: JsonConverter) -> None:
    texts = ["0.1", "1e22", "1e23", "1.7976931348623157e308", "5e-324", "123456789012345678901.5"]
    texts += ["9007199254740993.0", "2.2250738585072011e-308", "-0.0", "1E+2", "0007.5"]
    read = schemaless.to_connect("topic", payloads(*[text.encode() for text in texts]))
    assert values(read) == [float(text) for text in texts]
    assert math.copysign(1, values(read)[8]) == -1


def test_integers_beyond_64_bits_are_errors(schemaless: JsonConverter) -> None:
    numbers = [-(2**63), 2**63 - 1, 2**63, -(2**63) - 1, 10**30]
    read = schemaless.to_connect("topic", payloads(*numbers))
    assert values(read) == [-(2**63), 2**63 - 1, None, None, None]
    assert set(errors(read)) == {2, 3, 4}


def test_strings_keep_all_characters(schemaless: JsonConverter) -> None:
    documents = [b'"\\ud83d\\ude00"', b'"\\ud83d x"', b'"\\u0000\\/\\b\\f\\n\\r\\t\\"\\\\"']
    read = schemaless.to_connect("topic", payloads(*documents, "\u00e9", b'\xef\xbb\xbf"bom"'))
    assert values(read) == ["\U0001f600", "\ufffd x", '\0/\b\f\n\r\t"\\', "\u00e9", "bom"]


def test_text_that_is_not_utf8_is_an_error(schemaless: JsonConverter) -> None:
    read = schemaless.to_connect("topic", payloads(b'"\xff"', "a"))
    assert values(read) == [None, "a"]
    assert list(errors(read)) == [0]


def test_deep_nesting_is_an_error(schemaless: JsonConverter, converter: JsonConverter) -> None:
    deep = b"[" * 100_000 + b"]" * 100_000
    assert list(errors(schemaless.to_connect("topic", payloads(deep, 1)))) == [0]
    document = b'{"schema":' + deep + b',"payload":1}'
    assert list(errors(converter.to_connect("topic", payloads(document)))) == [0]


def test_the_last_of_several_values_of_a_key_is_valid(
    schemaless: JsonConverter, converter: JsonConverter
) -> None:
    document = b'{"a":[1,2],"b":1,"a":"x"}'
    assert values(schemaless.to_connect("topic", payloads(document))) == [{"a": "x", "b": 1}]
    typed = b'{"id":1,"name":"x","id":2}'
    enclosed = b'{"schema":' + dumps(NAMED) + b',"payload":' + typed + b"}"
    assert values(converter.to_connect("topic", payloads(enclosed))) == [{"id": 2, "name": "x"}]


def test_arrays_of_several_types_are_errors(schemaless: JsonConverter) -> None:
    read = schemaless.to_connect("topic", payloads([1], [1, "x"], [2]))
    assert set(errors(read)) == {1}
    assert "elements of different types" in errors(read)[1]
    assert values(read) == [[1], None, [2]]


@given(
    st.lists(st.binary(max_size=30) | st.text('{}[]":,0e.-\\untrlfas ', max_size=30), max_size=6)
)
def test_any_bytes_are_read_or_rejected(documents: list[Any]) -> None:
    encoded = [each if isinstance(each, bytes) else each.encode() for each in documents]
    for enable in ("true", "false"):
        converter = configured(JsonConverter, {"schemas.enable": enable})
        read = converter.to_connect("topic", payloads(*encoded))
        assert len(rows(read)) == len(encoded)
        failed = {each.row for each in read.errors}
        assert all(values(read)[row] is None for row in failed)


@given(st.data(), st.lists(st.integers(0, 80), min_size=1, max_size=3))
def test_damaged_envelopes_are_read_or_rejected(data: Any, positions: list[int]) -> None:
    document = bytearray(envelope(NAMED, {"id": 1, "name": "\u00e9"}))
    for position in positions:
        document[position % len(document)] = data.draw(st.sampled_from(b'{}[]":,0x\\\xff '))
    good = envelope(NAMED, {"id": 2, "name": "good"})
    read = configured(JsonConverter).to_connect("topic", payloads(good, bytes(document), good))
    assert [values(read)[row] for row in (0, 2)] == [{"id": 2, "name": "good"}] * 2


def test_times_are_written_as_numbers_without_a_schema(schemaless: JsonConverter) -> None:
    column = pa.array(
        [{"d": 1, "t": 2, "s": 3}],
        pa.struct([("d", pa.int32()), ("t", pa.int32()), ("s", pa.int64())]),
    )
    times = column.cast(
        pa.struct([("d", pa.date32()), ("t", pa.time32("ms")), ("s", pa.timestamp("ms", "UTC"))])
    )
    written = schemaless.from_connect("topic", None, times)
    assert written.payloads.to_pylist() == [b'{"d":1,"t":2,"s":3}']


def test_field_names_are_quoted() -> None:
    schema = ConnectSchema(
        Type.STRUCT, fields=(SchemaField('a"\n\U0001f600', ConnectSchema(Type.INT8)),)
    )
    converter = configured(JsonConverter, {"schemas.enable": "false"})
    written = converter.from_connect(
        "topic", schema, pa.array([{'a"\n\U0001f600': 1}], schema.arrow_type())
    )
    assert written.payloads.to_pylist() == [b'{"a\\"\\n\\uD83D\\uDE00":1}']
