"""Malformed bytes raise ProtocolViolation, and claimed lengths allocate no memory."""

import random
import tracemalloc
from contextlib import suppress

import pytest
from tests.wire.declared_messages import MESSAGES
from tests.wire.message_samples import sample

from barnabas.wire.errors import ProtocolViolation
from barnabas.wire.messages.consumer_groups import ConsumerGroupHeartbeatResponse
from barnabas.wire.messages.group_offsets import OffsetFetchRequest
from barnabas.wire.messages.metadata import MetadataRequest
from barnabas.wire.messages.metadata_records import BeginTransactionRecord
from barnabas.wire.messages.produce import ProduceRequest
from barnabas.wire.messages.sasl import SaslHandshakeRequest
from barnabas.wire.schema import Message

EDGE_BYTES = (0x00, 0x01, 0x7F, 0x80, 0xFE, 0xFF)


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: message.__name__)
def test_a_truncated_message_is_a_violation(message: type[Message]) -> None:
    for version in message.VERSIONS:
        encoded = sample(message, version).write(version)
        for length in range(len(encoded)):
            with pytest.raises(ProtocolViolation):
                message.read(encoded[:length], version)


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: message.__name__)
def test_damaged_bytes_are_read_or_are_a_violation(message: type[Message]) -> None:
    source = random.Random(message.__name__)
    for version in message.VERSIONS:
        encoded = sample(message, version).write(version)
        for _ in range(60 if encoded else 0):
            damaged = bytearray(encoded)
            for _ in range(source.choice((1, 1, 2, 5))):
                damaged[source.randrange(len(damaged))] = source.choice(
                    (*EDGE_BYTES, source.randrange(256))
                )
            with suppress(ProtocolViolation):
                message.read_exactly(damaged, version)


def test_trailing_bytes_are_a_violation() -> None:
    encoded = SaslHandshakeRequest(mechanism="PLAIN").write(1)
    with pytest.raises(ProtocolViolation, match="3 bytes follow"):
        SaslHandshakeRequest.read_exactly(encoded + b"abc", 1)


@pytest.mark.parametrize(
    ("version", "claim"),
    [(0, b"\x7f\xff\xff\xff"), (9, b"\xff\xff\xff\xff\x07"), (9, b"\x80\x80\x80\x08")],
)
def test_a_claimed_count_allocates_no_memory(version: int, claim: bytes) -> None:
    MetadataRequest.reader(version)
    frame = claim + bytes(100_000)
    peaks_bytes = []
    for _ in range(5):  # other threads may allocate memory, but not every time
        tracemalloc.start()
        with pytest.raises(ProtocolViolation, match=r"topics claims a length"):
            MetadataRequest.read(frame, version)
        peaks_bytes.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert min(peaks_bytes) < 20_000


def test_a_count_of_more_elements_than_could_fit_is_a_violation() -> None:
    """Each topic needs at least 18 bytes: an id, the length of a name, and no tags."""
    with pytest.raises(ProtocolViolation, match=r"topics claims a length of 6 "):
        MetadataRequest.read(bytes([6 + 1]) + bytes(100), 10)


@pytest.mark.parametrize("length", [b"\x80\x00", b"\xff\xfe", b"\xff\xff"])
def test_a_negative_length_where_null_is_not_allowed_is_a_violation(length: bytes) -> None:
    with pytest.raises(ProtocolViolation, match=r"mechanism is null"):
        SaslHandshakeRequest.read(length, 0)


def test_a_null_array_where_null_is_not_allowed_is_a_violation() -> None:
    with pytest.raises(ProtocolViolation, match=r"topics is null"):
        OffsetFetchRequest.read(b"\x00\x01g" + b"\xff\xff\xff\xff", 1)
    assert OffsetFetchRequest.read(b"\x00\x01g" + b"\xff\xff\xff\xff", 2)[0].topics is None


@pytest.mark.parametrize(
    "varint",
    [b"\xff\xff\xff\xff\x08", b"\xff\xff\xff\xff\xff\x01", b"\x80\x80\x80\x80\x80\x80\x00"],
)
def test_a_varint_of_more_than_31_bits_is_a_violation(varint: bytes) -> None:
    with pytest.raises(ProtocolViolation, match="31 bits"):
        MetadataRequest.read(varint + bytes(10), 9)


def test_text_that_is_not_utf8_is_a_violation() -> None:
    with pytest.raises(ProtocolViolation, match="UTF-8"):
        SaslHandshakeRequest.read(b"\x00\x02\xc3\x28", 0)


def test_text_above_the_maximum_length_is_a_violation() -> None:
    frame = b"\x02" + b"\x81\x80\x02" + b"a" * 32_768 + bytes(10)
    with pytest.raises(ProtocolViolation, match="32768 bytes of text"):
        MetadataRequest.read(frame, 9)


def test_a_tagged_field_beyond_the_frame_is_a_violation() -> None:
    encoded = ConsumerGroupHeartbeatResponse().write(0)
    with pytest.raises(ProtocolViolation, match="tagged field 9 claims 50 bytes"):
        ConsumerGroupHeartbeatResponse.read(encoded[:-1] + b"\x01\x09\x32abc", 0)


def test_a_tagged_field_must_fill_the_size_it_claims() -> None:
    encoded = BeginTransactionRecord(name="abc").write(0)
    assert encoded == b"\x01\x00\x04\x04abc"
    with pytest.raises(ProtocolViolation, match="does not fill the 5 bytes"):
        BeginTransactionRecord.read(b"\x01\x00\x05\x04abcd", 0)


def test_a_huge_number_of_tags_is_a_violation() -> None:
    with pytest.raises(ProtocolViolation):
        ConsumerGroupHeartbeatResponse.read(
            ConsumerGroupHeartbeatResponse().write(0)[:-1] + b"\xff\xff\xff\xff\x07", 0
        )


def test_an_empty_frame_is_a_violation() -> None:
    with pytest.raises(ProtocolViolation, match="ProduceRequest version 9"):
        ProduceRequest.read(b"", 9)
