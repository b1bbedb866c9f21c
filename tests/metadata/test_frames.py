"""Frames: ours, and those that Kafka wrote."""

import pytest
from hypothesis import given
from tests.metadata.conftest import histories

from barnabas.metadata.frames import decode_record, encode_record, record_version
from barnabas.wire.errors import ProtocolViolation
from barnabas.wire.messages import metadata_records as wire
from barnabas.wire.schema import Message


@given(histories)
def test_a_record_is_decoded_as_it_was_encoded(history: list[Message]) -> None:
    for record in history:
        newest = type(record).VERSIONS.max
        assert decode_record(encode_record(record, newest)) == record


def test_records_of_kafka_are_encoded_to_the_same_bytes(
    kafka_log: list[bytes], kafka_snapshot: list[bytes]
) -> None:
    for frame in (*kafka_log, *kafka_snapshot):
        record = decode_record(frame)
        assert encode_record(record, frame[2]) == frame


def test_record_versions_are_those_of_kafka(
    kafka_log: list[bytes], kafka_snapshot: list[bytes]
) -> None:
    for frame in (*kafka_log, *kafka_snapshot):
        assert record_version(decode_record(frame), metadata_level=30) == frame[2]


@pytest.mark.parametrize(
    ("level", "version"), [(7, 0), (16, 0), (17, 1), (22, 1), (23, 2), (30, 2)]
)
def test_the_metadata_level_decides_how_partitions_are_written(level: int, version: int) -> None:
    assert record_version(wire.PartitionRecord(), level) == version
    assert record_version(wire.PartitionChangeRecord(), level) == version


@pytest.mark.parametrize(
    "frame",
    [
        b"",
        b"\x01",
        b"\x01\x02",
        b"\x00\x02\x00",
        b"\x02\x02\x00",
        b"\x01\x7f\x00",
        b"\xff\xff\xff\xff\xff\xff",
        b"\x01\x02\x00\x05ab",
    ],
)
def test_invalid_frames_raise_protocol_violation(frame: bytes) -> None:
    with pytest.raises(ProtocolViolation):
        decode_record(frame)
