"""JSON documents become columns and come back; one that is bad hurts no other."""

import datetime as dt
import json
from typing import Any

import jsonschema
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from barnabas.columns import DecodedColumn, json_text
from barnabas.columns.language import SchemaSource
from barnabas.schemas import SchemaError
from barnabas.schemas.framing import id_prefix

few = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])

ORDER = {
    "type": "object",
    "properties": {
        "id": {"type": "integer"},
        "name": {"oneOf": [{"type": "null"}, {"type": "string"}]},
        "amount": {"type": ["null", "number"]},
        "paid": {"type": "boolean"},
        "lines": {
            "type": "array",
            "items": {"type": "object", "properties": {"sku": {"$ref": "#/definitions/sku"}}},
        },
    },
    "required": ["id"],
    "definitions": {"sku": {"type": "string"}},
}
LOOSE = {
    "type": "object",
    "properties": {
        "any": {},
        "tags": {"type": "object", "additionalProperties": {"type": "integer"}},
        "either": {"type": ["string", "integer"]},
    },
}

orders = st.fixed_dictionaries(
    {
        "id": st.integers(-(2**63), 2**63 - 1),
        "name": st.none() | st.text(st.characters(exclude_categories=["Cs"])),
        "amount": st.none() | st.floats(allow_nan=False, allow_infinity=False),
        "paid": st.none() | st.booleans(),
        "lines": st.none() | st.lists(st.fixed_dictionaries({"sku": st.none() | st.text()})),
    }
)


def decode(schema: Any, payloads: list[bytes | None], *, framed: bool = False) -> DecodedColumn:
    source = SchemaSource(json.dumps(schema))
    decoded = json_text.decoder(source, source, None, framed=framed).decode(
        pa.array(payloads, pa.binary())
    )
    decoded.values.validate(full=True)
    assert decoded.values.type == json_text.arrow_type(source, None)
    return decoded


def encode(schema: Any, values: pa.Array, schema_id: int | None = None) -> list[bytes | None]:
    source = SchemaSource(json.dumps(schema))
    encoded = json_text.encoder(source, values.type, None, schema_id=schema_id).encode(values)
    encoded.validate(full=True)
    payloads: list[bytes | None] = encoded.to_pylist()
    return payloads


def bad_rows(decoded: DecodedColumn) -> list[int]:
    if decoded.reasons is None:
        return []
    return [row for row, reason in enumerate(decoded.reasons.to_pylist()) if reason is not None]


@few
@given(st.lists(st.none() | orders, max_size=6), st.sampled_from([None, 2]))
def test_documents_are_decoded_to_their_values(documents: list[Any], indent: int | None) -> None:
    payloads = [
        None if document is None else id_prefix(3) + json.dumps(document, indent=indent).encode()
        for document in documents
    ]
    decoded = decode(ORDER, payloads, framed=True)
    assert decoded.reasons is None
    assert decoded.values.to_pylist() == documents


@few
@given(st.lists(st.none() | orders, max_size=6))
def test_encoded_documents_have_the_same_values_and_are_valid(documents: list[Any]) -> None:
    kind = json_text.arrow_type(SchemaSource(json.dumps(ORDER)), None)
    payloads = encode(ORDER, pa.array([None, *documents], kind)[1:])
    for document, payload in zip(documents, payloads, strict=True):
        assert (document is None) == (payload is None)
        if payload is not None:
            jsonschema.validate(json.loads(payload), ORDER)
    assert decode(ORDER, payloads).values.to_pylist() == documents


BAD = [
    b"",
    b"{",
    b"{}{}",
    b'{"id": "x"}',
    b'{"id": 1.5}',
    b'{"id": 99999999999999999999}',
    b'{"name": "\xff"}',
    b"[1]",
    b"12",
    b'{"id": 1}}',
    b'{"name": "a',
    b'{"name": "a\nb"}',
    b'{"id":1\x00}',
    b'{"name": "\\ud800"}',
    b'{"id": NaN}',
    b'{"id": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
]


@pytest.mark.parametrize("bad", BAD)
def test_an_invalid_document_is_null_with_a_reason_and_its_neighbours_are_intact(
    bad: bytes,
) -> None:
    good = b'{"id": 7, "more": [1]}'
    decoded = decode(ORDER, [good] * 30 + [bad] + [good] * 30)
    assert bad_rows(decoded) == [30]
    values = decoded.values.to_pylist()
    assert values.pop(30) is None
    assert {value["id"] for value in values} == {7}


def test_two_documents_in_one_payload_do_not_replace_a_missing_one() -> None:
    decoded = decode(ORDER, [b'{"id":1}{"id":2}', b" ", b'{"id":3}'])
    assert bad_rows(decoded) == [0, 1]
    assert decoded.values.to_pylist()[2]["id"] == 3


@few
@given(st.lists(st.binary(max_size=20) | st.text(max_size=20).map(str.encode), max_size=30))
def test_any_bytes_are_either_values_or_errors(payloads: list[bytes]) -> None:
    decoded = decode(ORDER, list(payloads))
    null = [row for row, is_null in enumerate(decoded.values.is_null().to_pylist()) if is_null]
    assert set(bad_rows(decoded)) <= set(null)
    for row in set(null) - set(bad_rows(decoded)):
        assert json.loads(payloads[row]) is None


def test_an_integer_with_a_fraction_of_zero_is_an_integer() -> None:
    assert decode(ORDER, [b'{"id": 3.0}']).values.to_pylist()[0]["id"] == 3


def test_a_property_of_any_type_is_the_text_of_its_json() -> None:
    payload = b'{"any": {"x": [1, "\xc3\xa4"]}, "tags": {"a": 1}, "either": 5}'
    decoded = decode(LOOSE, [payload, b'{"either": "s"}', b'{"tags": {"a": "b"}}'])
    assert decoded.values.to_pylist() == [
        {"any": '{"x":[1,"ä"]}', "tags": [("a", 1)], "either": "5"},
        {"any": None, "tags": None, "either": '"s"'},
        None,
    ]
    assert decoded.reasons is not None
    assert "'tags.a' is \"b\", not integer" in decoded.reasons.to_pylist()[2]
    assert [json.loads(each or b"null") for each in encode(LOOSE, decoded.values[:1])] == [
        json.loads(payload)
    ]


@pytest.mark.parametrize("bad", [b'"\\ud800"', b"[NaN]", b'{"\\udc00": 1}', b"1e999", b"[" * 9999])
def test_the_text_of_any_type_is_valid_unicode(bad: bytes) -> None:
    decoded = decode(LOOSE, [b'{"any": 1}', b'{"any": ' + bad + b"}"])
    assert bad_rows(decoded) == [1]
    assert decoded.values.to_pylist()[0]["any"] == "1"


def test_a_recursive_schema_is_text_at_the_second_level() -> None:
    tree = {
        "type": "object",
        "properties": {"next": {"$ref": "#"}, "x": {"type": "integer"}},
    }
    (value,) = decode(tree, [b'{"x":1,"next":{"x":2,"next":{"x":3}}}']).values.to_pylist()
    assert value == {"next": {"next": '{"x":3}', "x": 2}, "x": 1}


def test_times_bytes_and_special_numbers_are_encoded() -> None:
    moment = dt.datetime(2026, 1, 2, 3, 4, 5, 6, dt.UTC)
    kind = pa.struct(
        [
            ("t", pa.timestamp("us", tz="UTC")),
            ("d", pa.date32()),
            ("b", pa.binary()),
            ("f", pa.float64()),
            ("m", pa.decimal128(5, 2)),
            ("i", pa.int32()),
        ]
    )
    row = {"t": moment, "d": moment.date(), "b": b"\0\xff", "f": float("nan"), "m": 1, "i": -1}
    schema = json.loads(json_text.derive(kind, "things"))
    (payload,) = encode(schema, pa.array([row], kind), 9)
    assert payload == id_prefix(9) + (
        b'{"t":"2026-01-02T03:04:05.000006Z","d":"2026-01-02","b":"AP8=","m":1.00,"i":-1}'
    )


@pytest.mark.parametrize(
    ("schema", "values", "says"),
    [
        (ORDER, pa.array([{"id": "x"}]), "'id' has type string, and the schema requires integer"),
        (ORDER, pa.array([{"lines": 1}]), "'lines' has type int64, and the schema requires array"),
        (
            {**ORDER, "additionalProperties": False},
            pa.array([{"id": 1, "more": 2}]),
            "'more' is not in the schema",
        ),
    ],
)
def test_columns_that_do_not_fit_the_schema_are_rejected(
    schema: Any, values: pa.Array, says: str
) -> None:
    with pytest.raises(SchemaError, match=says):
        encode(schema, values)


def test_text_that_is_not_json_is_rejected_for_a_property_of_any_type() -> None:
    with pytest.raises(ValueError, match=r"Row 1 .* field 'any' .* must be JSON"):
        encode(LOOSE, pa.array([{"any": "1"}, {"any": "x"}]))
    with pytest.raises(ValueError, match=r"Row 0 .* NaN is not a number of JSON"):
        encode(LOOSE, pa.array([{"any": "[NaN]"}]))


def test_references_to_other_texts_are_followed() -> None:
    source = SchemaSource(
        json.dumps({"type": "object", "properties": {"a": {"$ref": "inner.json#/$defs/n"}}}),
        {"inner.json": json.dumps({"$defs": {"n": {"type": "number"}}})},
    )
    assert json_text.arrow_type(source, None) == pa.struct([("a", pa.float64())])
    with pytest.raises(SchemaError, match="not defined"):
        json_text.arrow_type(SchemaSource('{"$ref": "#/nowhere"}'), None)


def test_definitions_that_refer_to_each_other_twice_are_rejected() -> None:
    twice = {
        str(level): {"properties": {side: {"$ref": f"#/$defs/{level + 1}"} for side in "ab"}}
        for level in range(30)
    }
    defs = {**twice, "30": {"type": "integer"}}
    with pytest.raises(SchemaError, match="more than 5000 types"):
        json_text.arrow_type(SchemaSource(json.dumps({"$ref": "#/$defs/0", "$defs": defs})), None)
