"""Payloads to columns: what the protobuf library wrote, and what nobody should have written."""

from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from google.protobuf.message import DecodeError, Message
from google.protobuf.message_factory import GetMessageClass
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.columns.protobuf.samples import (
    EVERY,
    SCHEMA,
    TEXT,
    Every,
    columns,
    expected,
    messages,
    same,
)

from barnabas.columns import DecodedColumn
from barnabas.columns.language import SchemaSource
from barnabas.columns.protobuf import arrow_type, decoder
from barnabas.columns.protobuf.payload_decoder import ProtobufDecoder
from barnabas.schemas import SchemaError
from barnabas.schemas.protobuf import parse

GOOD = Every(f_int32=7, f_string="good", r_int32=[1, 2]).SerializeToString()


@given(st.lists(st.none() | messages(), max_size=5))
@settings(deadline=None, max_examples=50)
def test_payloads_are_decoded_as_the_library_does(written: list[Message | None]) -> None:
    payloads = [None if one is None else one.SerializeToString() for one in written]
    decoded = decode(payloads)
    assert decoded.reasons is None
    for found, message in zip(decoded.values.to_pylist(), written, strict=True):
        if message is None:
            assert found is None
        else:
            assert same(columns(found), expected(message))


@given(st.lists(messages(), min_size=2, max_size=3))
@settings(deadline=None, max_examples=100)
def test_a_message_in_parts_is_merged_as_the_library_does(parts: list[Message]) -> None:
    payload = b"".join(one.SerializeToString() for one in parts)
    decoded = decode([payload, GOOD])
    assert decoded.reasons is None
    assert same(columns(decoded.values[0].as_py()), expected(Every.FromString(payload)))
    assert decoded.values[1]["f_int32"].as_py() == 7


@given(messages(), st.data())
@settings(deadline=None, max_examples=80)
def test_a_damaged_payload_does_not_affect_its_neighbours(
    message: Message, data: st.DataObject
) -> None:
    payload = bytearray(message.SerializeToString())
    for _ in range(data.draw(st.integers(1, 3))):
        if payload:
            payload[data.draw(st.integers(0, len(payload) - 1))] = data.draw(st.integers(0, 255))
    cut = bytes(payload[: data.draw(st.integers(0, len(payload)))])
    decoded = decode([GOOD, cut, GOOD])
    good = columns(decode([GOOD]).values[0].as_py())
    assert [columns(decoded.values[row].as_py()) for row in (0, 2)] == [good, good]
    try:
        read = Every.FromString(cut)
    except DecodeError:
        assert decoded.values[1].as_py() is None
        assert decoded.reasons is not None
        assert decoded.reasons[1].as_py().startswith("The payload is not a sample.Every: ")
    else:
        if decoded.reasons is None:  # else a time that no column can hold
            assert same(columns(decoded.values[1].as_py()), expected(read))


@given(st.lists(st.none() | st.binary(max_size=40), max_size=6))
@settings(deadline=None, max_examples=80)
def test_any_bytes_give_values_or_reasons(payloads: list[bytes | None]) -> None:
    decoded = decode(payloads)
    for row, payload in enumerate(payloads):
        reason = None if decoded.reasons is None else decoded.reasons[row].as_py()
        has_value = decoded.values[row].as_py() is not None
        assert has_value == (payload is not None and reason is None)


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        (b"\x72\x05abc", "it is truncated in field Every"),
        (b"\x72\x02\xff\xfe", "text is not UTF-8 in field f_string"),
        (b"\x72\x03\xed\xa0\x80", "text is not UTF-8 in field f_string"),
        (b"\x18" + b"\xff" * 11, "it has a number of more than ten bytes in field Every"),
        (b"\x07", "it has an invalid tag"),
        (b"\x98\x80\x80\x80\x80\x00\x01", "it has an invalid tag"),
        (b"\x0e\x00", "it has an invalid tag"),
        (
            b"\x9a\x03\x07\x08\x80\x80\x80\x80\x80\x70",
            "a time is outside the years 1 to 9999",
        ),
        (b"\xdb\x07" * 200, "it is nested too deeply"),
        (b"\xdb\x07", "it is truncated"),
        (b"\xdb\x07\xe4\x07", "it has an invalid tag"),
    ],
)
def test_reasons_say_what_is_wrong_and_where(payload: bytes, reason: str) -> None:
    decoded = decode([GOOD, payload, None, GOOD])
    assert decoded.reasons is not None
    assert decoded.reasons.is_null().to_pylist() == [True, False, True, True]
    assert reason in decoded.reasons[1].as_py()
    assert decoded.values.is_null().to_pylist() == [False, True, True, False]


def test_unknown_fields_and_fields_of_another_type_are_skipped() -> None:
    group = b"\xdb\x07\x08\x01\x12\x02ab\xdc\x07"
    as_text = b"\x1a\x02ab"  # f_int32 is a number
    decoded = decode([b"\xc8\x3e\x05" + group + as_text + GOOD])
    assert decoded.reasons is None
    assert decoded.values[0]["f_int32"].as_py() == 7


def test_missing_fields_are_zero_or_null() -> None:
    (row,) = decode([b""]).values.to_pylist()
    assert row["f_int32"] == 0
    assert row["f_uint64"] == Decimal(0)
    assert row["f_string"] == ""
    assert row["f_bytes"] == b""
    assert row["f_enum"] == "NONE"
    assert row["r_int32"] == []
    assert row["m_text"] == []
    for name in ("o_int32", "o_enum", "inner", "at", "w_string", "c_int32", "c_inner"):
        assert row[name] is None


def test_columns_have_types_that_spark_supports() -> None:
    found = arrow_type(SchemaSource(TEXT), "Every")
    assert found.field("f_uint64").type == pa.decimal128(20, 0)
    assert found.field("f_fixed32").type == pa.int64()
    assert found.field("f_float").type == pa.float32()
    assert found.field("f_enum").type == pa.string()
    assert found.field("at").type == pa.timestamp("us", tz="UTC")
    assert found.field("w_bytes").type == pa.binary()
    assert found.field("r_wrapped").type == pa.list_(pa.int64())
    assert found.field("m_inner").type.item_type == found.field("inner").type
    assert arrow_type(SchemaSource(TEXT), None) == pa.struct([("only", pa.string())])


def test_a_slice_of_payloads_is_read_from_its_offset() -> None:
    payloads = pa.array([None, GOOD, None, b"\xff", GOOD], pa.binary())[1:4]
    decoded = ProtobufDecoder(EVERY, None).decode(payloads)
    assert decoded.values.is_null().to_pylist() == [False, True, True]
    assert decoded.reasons is not None
    assert decoded.reasons.is_null().to_pylist() == [True, True, False]


def test_a_decoder_has_no_state_of_earlier_batches() -> None:
    reader = ProtobufDecoder(EVERY, None)
    first = reader.decode(pa.array([GOOD] * 3, pa.binary())).values
    second = reader.decode(pa.array([b""], pa.binary())).values
    assert (len(first), len(second)) == (3, 1)
    assert first[2]["f_string"].as_py() == "good"


def test_a_message_within_itself_stays_bytes() -> None:
    schema = parse('syntax = "proto3"; message Node { int32 n = 1; repeated Node sub = 2; }', {})
    node = GetMessageClass(schema.message("Node"))
    written = node(n=1, sub=[node(n=2, sub=[node(n=3)])])
    values = ProtobufDecoder(schema.message("Node"), None).decode(
        pa.array([written.SerializeToString()], pa.binary())
    )
    (row,) = values.values.to_pylist()
    assert row["n"] == 1
    assert node.FromString(row["sub"][0]) == written.sub[0]


def test_a_message_with_too_many_columns_is_rejected() -> None:
    text = "".join(f"message M{i} {{ M{i + 1} a = 1; M{i + 1} b = 2; }}" for i in range(30))
    with pytest.raises(SchemaError, match="more than 5000 columns"):
        arrow_type(SchemaSource(f'syntax = "proto3"; {text} message M30 {{}}'), None)


def test_proto2_groups_closed_enums_and_presence() -> None:
    schema = parse(
        """
        syntax = "proto2";
        message Old {
          required int32 id = 1;
          optional group Part = 2 { optional string name = 1; }
          optional Color color = 3;
          repeated Color colors = 4;
          map<string, Size> by_name = 5;
          enum Size { SMALL = 0; }
          enum Color { RED = 1; BLUE = 2; }
        }
        """,
        {},
    )
    old = GetMessageClass(schema.message("Old"))
    payload = old(id=4, part={"name": "x"}, color=2, colors=[1, 2]).SerializeToString()
    unknown = payload + b"\x18\x09" + b"\x20\x09" + b"\x2a\x05\x0a\x01k\x10\x09"
    decoded = ProtobufDecoder(schema.message("Old"), None).decode(
        pa.array([payload, b"", unknown], pa.binary())
    )
    assert decoded.reasons is None
    full, empty, closed = map(columns, decoded.values.to_pylist())
    assert full["id"] == 4
    assert full["part"] == {"name": "x"}
    assert (full["color"], full["colors"]) == ("BLUE", ["RED", "BLUE"])
    assert empty["id"] is None
    assert (closed["color"], closed["colors"], closed["by_name"]) == ("BLUE", ["RED", "BLUE"], [])


def test_a_duplicate_map_key_has_its_last_value() -> None:
    one = Every(m_text={"k": 1, "j": 3}).SerializeToString()
    two = Every(m_text={"k": 2}).SerializeToString()
    (row,) = decode([one + two]).values.to_pylist()
    assert sorted(row["m_text"]) == [("j", 3), ("k", 2)]


def test_the_last_field_of_a_oneof_is_set() -> None:
    one = Every(c_int32=1).SerializeToString()
    two = Every(c_string="x").SerializeToString()
    first, last = decode([one + two, two + one]).values.to_pylist()
    assert (first["c_int32"], first["c_string"]) == (None, "x")
    assert (last["c_int32"], last["c_string"]) == (1, None)


def test_keys_with_similar_hashes_are_kept() -> None:
    """Those whose hashes begin at one place: more of them than are looked at."""
    keys = [number << 40 for number in range(1, 200)]
    message = Every(m_enum=dict.fromkeys(keys, 1))
    decoded = decode([message.SerializeToString()])
    assert decoded.reasons is None
    assert same(columns(decoded.values[0].as_py()), expected(message))


def test_payloads_of_an_old_schema_are_read_with_the_readers_schema() -> None:
    written = 'syntax = "proto3"; package p; message A { int32 a = 1; string gone = 2; }'
    wanted = 'syntax = "proto3"; package p; message A { int64 b = 1; optional bool new = 3; }'
    payload = GetMessageClass(parse(written, {}).message("A"))(a=-5, gone="x").SerializeToString()
    decoded = decoder(SchemaSource(written), SchemaSource(wanted), None, framed=True).decode(
        pa.array([b"\0\0\0\0\x01\0" + payload], pa.binary())
    )
    assert decoded.reasons is None
    assert decoded.values.to_pylist() == [{"b": -5, "new": None}]


def test_message_indexes_select_the_message_in_the_writers_file() -> None:
    wanted = 'syntax = "proto3"; package p; message A { int32 a = 1; } message B {}'
    written = 'syntax = "proto3"; package p; message B {} message A { int32 a = 1; }'
    header = b"\0\0\0\0\x01"
    payloads = [header + indexes + b"\x08\x05" for indexes in (b"\x02\x02", b"\0", b"\x02\x04")]
    decoded = decoder(SchemaSource(written), SchemaSource(wanted), "A", framed=True).decode(
        pa.array([*payloads, header, header + b"\x02", header + b"\xff" * 12], pa.binary())
    )
    assert decoded.values[0].as_py() == {"a": 5}
    assert decoded.values.null_count == 5
    assert decoded.reasons is not None
    reasons = decoded.reasons.to_pylist()
    assert reasons[0] is None
    assert reasons[1].startswith("The payload is a p.B, not a p.A")
    assert reasons[2] == "There is no message at [2] in the schema."
    assert all("truncated" in reason for reason in reasons[3:])


def test_payloads_of_a_file_without_the_message_have_a_reason() -> None:
    written = SchemaSource('syntax = "proto3"; message B {}')
    wanted = SchemaSource('syntax = "proto3"; message A {}')
    decoded = decoder(written, wanted, None, framed=True).decode(
        pa.array([b"\0\0\0\0\x01\0"], pa.binary())
    )
    assert decoded.reasons is not None
    assert "The payload is a B, not a A" in decoded.reasons[0].as_py()


def test_the_indexes_of_the_first_message_have_two_encodings() -> None:
    text = 'syntax = "proto3"; message A { int32 a = 1; }'
    payloads = [b"\0\0\0\0\x01" + indexes + b"\x08\x05" for indexes in (b"\0", b"\x02\0")]
    decoded = decoder(SchemaSource(text), SchemaSource(text), None, framed=True).decode(
        pa.array(payloads, pa.binary())
    )
    assert decoded.reasons is None
    assert decoded.values.to_pylist() == [{"a": 5}, {"a": 5}]


def test_times_are_truncated_to_microseconds() -> None:
    payload = Every(at={"seconds": -1, "nanos": 999_999_999}).SerializeToString()
    assert decode([payload]).values[0]["at"].as_py() == datetime(
        1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC
    )


def decode(payloads: Sequence[bytes | None]) -> DecodedColumn:
    decoded = ProtobufDecoder(SCHEMA.message("Every"), None).decode(pa.array(payloads, pa.binary()))
    decoded.values.validate(full=True)
    return decoded
