"""Columns to payloads: the protobuf library reads what was meant."""

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.columns.protobuf.samples import EVERY, TEXT, Every, expected, messages, same

from barnabas.columns.language import SchemaSource
from barnabas.columns.protobuf import decoder, derive, encoder
from barnabas.columns.protobuf.payload_decoder import ProtobufDecoder
from barnabas.columns.protobuf.payload_encoder import ProtobufEncoder
from barnabas.schemas import SchemaError
from barnabas.schemas.protobuf import parse


@given(st.lists(st.none() | messages(), max_size=5), st.integers(0, 2))
@settings(deadline=None, max_examples=50)
def test_the_library_reads_what_is_written(written: list[Message | None], start: int) -> None:
    payloads = [None if one is None else one.SerializeToString() for one in written]
    values = ProtobufDecoder(EVERY, None).decode(pa.array(payloads, pa.binary())).values
    encoded = ProtobufEncoder(EVERY, values.type, b"").encode(values[start:])
    encoded.validate(full=True)
    for payload, message in zip(encoded.to_pylist(), written[start:], strict=True):
        if message is None:
            assert payload is None
        else:
            assert same(expected(Every.FromString(payload)), expected(message))


def test_bytes_are_those_that_the_library_writes() -> None:
    message = Every(f_int32=-1, f_string="x", r_int32=[1, 300], r_double=[0.5], o_int32=0)
    message.inner.name = "i"
    message.at.seconds = 1
    payload = message.SerializeToString(deterministic=True)
    values = ProtobufDecoder(EVERY, None).decode(pa.array([payload], pa.binary())).values
    assert ProtobufEncoder(EVERY, values.type, b"").encode(values).to_pylist() == [payload]


INNER = [one.name for one in EVERY.nested_types].index("Inner")
"""Entries of maps are messages within Every, too."""


@pytest.mark.parametrize(
    ("message", "indexes"),
    [
        ("Other", b"\0"),
        ("Every", b"\x02\x02"),
        ("Every.Inner", bytes([4, 2, 2 * INNER])),
    ],
)
def test_payloads_are_framed_with_id_and_indexes(message: str, indexes: bytes) -> None:
    values = pa.array([{}, None], pa.struct([]))
    encoded = encoder(SchemaSource(TEXT), values.type, message, schema_id=258).encode(values)
    assert encoded.to_pylist() == [b"\0\0\0\x01\x02" + indexes, None]
    framed = decoder(SchemaSource(TEXT), SchemaSource(TEXT), message, framed=True)
    assert framed.decode(encoded).reasons is None


def test_columns_of_compatible_types_are_converted() -> None:
    rows = [{"f_int64": 5, "f_uint64": 7, "f_double": 1.5, "f_enum": "GREEN", "at": None}]
    wide = pa.struct(
        [
            ("f_int64", pa.int32()),
            ("f_uint64", pa.int64()),
            ("f_double", pa.float32()),
            ("f_enum", pa.string()),
            ("at", pa.timestamp("ms")),
        ]
    )
    message = only(rows, wide)
    assert (message.f_int64, message.f_uint64, message.f_double) == (5, 7, 1.5)  # type: ignore[attr-defined]
    assert message.f_enum == 5  # type: ignore[attr-defined]
    assert not message.HasField("at")


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"f_uint32": -1}, "Field f_uint32: -1 is not within"),
        ({"f_uint32": 2**32}, "Field f_uint32: 4294967296 is not within"),
        ({"f_uint64": Decimal(-1)}, "Field f_uint64: the number is not within"),
        ({"f_uint64": Decimal(2**64)}, "Field f_uint64: the number is not within"),
        ({"f_enum": "PINK"}, "Field f_enum: 'PINK' is not one of NONE, RED, GREEN, BELOW"),
        ({"f_enum": "99999999999"}, "Field f_enum: "),
        ({"r_string": ["a", None]}, "Field r_string: elements of it cannot be null"),
        ({"m_text": [("a", None)]}, r"Field m_text\[\] is required, but null"),
        ({"m_inner": [(1, None)]}, r"Field m_inner\[\] is required, but null"),
        ({"at": -(2**62)}, "Field at: the time is outside the years 1 to 9999"),
    ],
)
def test_values_that_do_not_fit_are_errors_naming_the_field(
    row: dict[str, Any], message: str
) -> None:
    (name,) = row
    column = ProtobufDecoder(EVERY, None).arrow_type.field(name)
    with pytest.raises(ValueError, match=message):
        only([row], pa.struct([column]))


@pytest.mark.parametrize(
    ("struct", "message"),
    [
        (pa.struct([("f_strin", pa.string())]), "no field 'f_strin'; it has f_double, "),
        (pa.struct([("f_int32", pa.list_(pa.int32()))]), "Field sample.Every.f_int32 is a int32"),
        (pa.struct([("r_int32", pa.int32())]), "r_int32 is repeated, and the column is int32"),
        (pa.struct([("m_text", pa.string())]), "m_text is a map"),
        (pa.struct([("inner", pa.string())]), "inner is a message"),
        (pa.struct([("inner", pa.struct([("x", pa.int32())]))]), r"sample\.Every\.inner has no"),
        (pa.int32(), "is a message, and the column is int32"),
    ],
)
def test_columns_that_do_not_fit_are_errors_before_anything_is_written(
    struct: pa.DataType, message: str
) -> None:
    with pytest.raises(SchemaError, match=message):
        ProtobufEncoder(EVERY, struct, b"")


def test_required_fields_are_required() -> None:
    schema = parse("message A { required int32 a = 1; optional int32 b = 2; }", {})
    message = schema.message("A")
    with pytest.raises(SchemaError, match="requires a"):
        ProtobufEncoder(message, pa.struct([("b", pa.int32())]), b"")
    struct = pa.struct([("a", pa.int32())])
    with pytest.raises(ValueError, match="Field a is required, but null"):
        ProtobufEncoder(message, struct, b"").encode(pa.array([{"a": None}], struct))


def test_a_schema_is_derived_from_columns_that_have_none() -> None:
    struct = pa.struct(
        [
            ("id", pa.int64()),
            ("price", pa.decimal128(10, 2)),
            ("day", pa.date32()),
            ("at", pa.timestamp("us", tz="UTC")),
            ("tags", pa.list_(pa.string())),
            ("lines", pa.list_(pa.struct([("sku", pa.string()), ("count", pa.int32())]))),
            ("ratio", pa.map_(pa.string(), pa.float64())),
            ("where", pa.struct([("lat", pa.float32())])),
            ("raw", pa.binary()),
            ("ok", pa.bool_()),
        ]
    )
    text = derive(struct, "web-orders")
    schema = parse(text, {})
    assert schema.name == "WebOrders"
    row = {
        "id": 1,
        "price": Decimal("1.50"),
        "day": date(2024, 2, 29),
        "at": datetime(2024, 1, 1, tzinfo=UTC),
        "tags": ["a"],
        "lines": [{"sku": "s", "count": None}],
        "ratio": [("k", 0.5)],
        "where": {"lat": 1.0},
        "raw": b"\0",
        "ok": None,
    }
    nothing = dict.fromkeys(row)
    values = pa.array([row, nothing], struct)
    payloads = encoder(SchemaSource(text), struct, None, schema_id=None).encode(values)
    read = decoder(SchemaSource(text), SchemaSource(text), None, framed=False).decode(payloads)
    assert read.values.to_pylist() == [
        row | {"price": "1.50", "day": "2024-02-29"},
        nothing | {"tags": [], "lines": [], "ratio": []},
    ]


@pytest.mark.parametrize(
    ("struct", "message"),
    [
        (pa.struct([("a b", pa.int32())]), "cannot be named 'a b'"),
        (pa.struct([("a", pa.list_(pa.list_(pa.int32())))]), "Protobuf has no type for list"),
        (pa.struct([("a", pa.map_(pa.float64(), pa.int32()))]), "cannot be a double"),
        (pa.int32(), "needs a struct"),
    ],
)
def test_types_without_a_protobuf_equivalent_are_rejected(
    struct: pa.DataType, message: str
) -> None:
    with pytest.raises(SchemaError, match=message):
        derive(struct, "x")


def only(rows: list[dict[str, Any]], struct: pa.DataType) -> Message:
    (payload,) = ProtobufEncoder(EVERY, struct, b"").encode(pa.array(rows, struct)).to_pylist()
    return GetMessageClass(EVERY).FromString(payload)
