"""Schema ids before the payload and in record headers."""

import contextlib
import io
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as some

from barnabas.schema_registry import (
    dual_schema_id_deserializer,
    header_schema_id_serializer,
    prefix_schema_id_deserializer,
    prefix_schema_id_serializer,
)
from barnabas.schema_registry.serdes.framing import Frame, SchemaId, frame_from_header, read_frame
from barnabas.serialization import MessageField, SerializationContext, SerializationError

GUID = "00112233-4455-6677-8899-aabbccddeeff"


def test_an_id_prefix_is_a_zero_byte_and_four_bytes_of_id() -> None:
    written = prefix_schema_id_serializer(b"payload", None, SchemaId("AVRO", 0x01020304))
    assert written == b"\x00\x01\x02\x03\x04payload"


@pytest.mark.parametrize(
    ("indexes", "written"),
    [
        ([0], b"\x00"),
        ([1], b"\x02\x02"),
        ([0, 0], b"\x04\x00\x00"),
        ([2, 64], b"\x04\x04\x80\x01"),
    ],
)
def test_message_indexes_are_zigzag_varints_after_their_count(
    indexes: list[int], written: bytes
) -> None:
    assert SchemaId("PROTOBUF", 1, None, indexes).id_to_bytes() == b"\0\0\0\0\x01" + written


@given(
    number=some.integers(0, 2**32 - 1),
    indexes=some.lists(some.integers(0, 10_000), min_size=1, max_size=5),
    payload=some.binary(),
)
def test_a_written_frame_is_read_back(number: int, indexes: list[int], payload: bytes) -> None:
    schema_id = SchemaId("PROTOBUF", number, GUID, indexes)
    frame = Frame(number, tuple(indexes), payload)
    assert read_frame(schema_id.id_to_bytes() + payload, with_indexes=True) == frame
    by_guid = Frame(UUID(GUID), tuple(indexes), payload)
    assert read_frame(schema_id.guid_to_bytes() + payload, with_indexes=True) == by_guid


@given(some.binary(max_size=30))
def test_any_bytes_are_read_or_rejected(foreign: bytes) -> None:
    with contextlib.suppress(SerializationError):
        read_frame(foreign, with_indexes=True)


def test_the_error_for_unframed_bytes_gives_the_reason() -> None:
    with pytest.raises(SerializationError, match="2 bytes are too few"):
        read_frame(b"\0\0", with_indexes=False)
    with pytest.raises(SerializationError, match="begin with 0x7b, not with the magic byte"):
        read_frame(b'{"id": 1}', with_indexes=False)
    with pytest.raises(SerializationError, match="end within the message indexes"):
        read_frame(b"\0\0\0\0\x01\x04\x02", with_indexes=True)


@pytest.mark.parametrize("field", [MessageField.KEY, MessageField.VALUE])
@pytest.mark.parametrize("kind", [list, dict])
def test_a_guid_in_a_header_leaves_the_payload_unchanged(field: MessageField, kind: type) -> None:
    context = SerializationContext("t", field, kind())
    written = header_schema_id_serializer(b"payload", context, SchemaId("AVRO", 1, GUID))
    assert written == b"payload"
    assert dict(context.headers) == {f"__{field}_schema_id": b"\x01" + UUID(GUID).bytes}
    result = SchemaId("AVRO")
    assert dual_schema_id_deserializer(written, context, result).read() == b"payload"
    assert result.guid == UUID(GUID)


def test_without_a_header_the_id_is_before_the_payload() -> None:
    context = SerializationContext("t", MessageField.VALUE, [("other", b"x")])
    for deserialize in (dual_schema_id_deserializer, prefix_schema_id_deserializer):
        result = SchemaId("AVRO")
        remaining = deserialize(b"\0\0\0\0\x09payload", context, result)
        assert isinstance(remaining, io.BytesIO)
        assert (result.id, remaining.read()) == (9, b"payload")


def test_the_first_header_with_a_value_is_used() -> None:
    headers = [
        ("__value_schema_id", None),
        ("__value_schema_id", SchemaId("AVRO", 1, GUID).guid_to_bytes()),
        ("__value_schema_id", SchemaId("AVRO", 7).id_to_bytes()),
    ]
    context = SerializationContext("t", MessageField.VALUE, headers)
    result = SchemaId("AVRO")
    assert dual_schema_id_deserializer(b"payload", context, result).read() == b"payload"
    assert (result.guid, result.id) == (UUID(GUID), None)
    assert frame_from_header(b"payload", context, with_indexes=False) == Frame(
        UUID(GUID), None, b"payload"
    )


def test_a_guid_header_needs_a_list_of_headers() -> None:
    with pytest.raises(SerializationError, match="produce with headers="):
        header_schema_id_serializer(
            b"", SerializationContext("t", MessageField.KEY), SchemaId("AVRO", 1, GUID)
        )
    with pytest.raises(SerializationError, match="gave no guid for schema 1"):
        SchemaId("AVRO", 1).guid_to_bytes()
