"""Control records: transaction markers and records of the quorum."""

import pytest

from barnabas.wire.records.batch import CorruptBatch, read_header
from barnabas.wire.records.build import Record
from barnabas.wire.records.control import (
    ControlType,
    EndTransactionMarker,
    build_control_batch,
    build_marker,
    control_key,
    read_control_type,
    read_marker,
)
from barnabas.wire.records.read import read_records


@pytest.mark.parametrize("committed", [True, False])
def test_a_transaction_marker_is_read_as_written(committed: bool) -> None:
    batch = build_marker(
        producer_id=7,
        producer_epoch=2,
        committed=committed,
        coordinator_epoch=5,
        timestamp=1000,
        base_offset=30,
        leader_epoch=1,
    )
    header = read_header(batch)
    (record,) = read_records(batch)
    assert header.is_control
    assert header.is_transactional
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (7, 2, -1)
    assert (record.offset, record.timestamp) == (30, 1000)
    assert read_marker(record) == EndTransactionMarker(committed, 5)


def test_a_commit_marker_has_the_bytes_that_kafka_writes() -> None:
    batch = build_marker(
        producer_id=7, producer_epoch=2, committed=True, coordinator_epoch=5, timestamp=1000
    )
    (record,) = read_records(batch)
    assert record.key == bytes.fromhex("00000001")
    assert record.value == bytes.fromhex("000000000005")


def test_records_of_the_quorum_are_not_transactional() -> None:
    batch = build_control_batch(ControlType.LEADER_CHANGE, b"body", timestamp=5, leader_epoch=4)
    header = read_header(batch)
    (record,) = read_records(batch)
    assert header.is_control
    assert not header.is_transactional
    assert header.leader_epoch == 4
    assert read_control_type(record.key) is ControlType.LEADER_CHANGE
    assert record.value == b"body"
    assert read_marker(record) is None


def test_a_control_record_of_a_newer_type_is_unknown() -> None:
    assert read_control_type(bytes.fromhex("00000063")) is ControlType.UNKNOWN
    assert read_control_type(bytes.fromhex("0000ffff")) is ControlType.UNKNOWN


def test_a_later_version_of_a_key_may_be_longer() -> None:
    assert read_control_type(bytes.fromhex("00010001aabb")) is ControlType.COMMIT


@pytest.mark.parametrize("key", [None, b"", b"\x00\x00\x00", b"\xff\xff\x00\x01"])
def test_a_malformed_control_key_is_corrupt(key: bytes | None) -> None:
    with pytest.raises(CorruptBatch):
        read_control_type(key)


@pytest.mark.parametrize("value", [None, b"", b"\x00\x00\x00", bytes.fromhex("ffff00000005")])
def test_a_marker_without_its_epoch_is_corrupt(value: bytes | None) -> None:
    with pytest.raises(CorruptBatch):
        read_marker(Record(0, 0, control_key(ControlType.COMMIT), value, []))
