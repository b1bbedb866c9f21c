"""Dumping files as kafka-dump-log does."""

import json
from pathlib import Path

import pytest

from barnabas.cli.operations.dump import DumpOptions, decoders, dump_files
from barnabas.metadata.frames import encode_record
from barnabas.wire.messages.metadata_records import TopicRecord
from barnabas.wire.messages.transaction_records import TransactionLogKey, TransactionLogValue
from barnabas.wire.records.build import Record, build_batch

SEGMENT = "00000000000000000005.log"


@pytest.fixture
def segment(tmp_path: Path) -> Path:
    records = [
        Record(5, 1_000, b"k", b"v", [("h", b"x")]),
        Record(6, 1_001, None, None, []),
    ]
    path = tmp_path / SEGMENT
    path.write_bytes(build_batch(records, base_offset=5))
    return path


def lines(path: Path, what: DumpOptions) -> list[str]:
    return list(dump_files([path], what))


def test_a_batch_is_one_line(segment: Path) -> None:
    dumping, start, batch = lines(segment, DumpOptions())
    assert dumping == f"Dumping {segment}"
    assert start == "Log starting offset: 5"
    assert batch.startswith("baseOffset: 5 lastOffset: 6 count: 2 baseSequence: -1 ")
    assert batch.endswith(" isvalid: true")


def test_records_are_printed_with_keys_and_values(segment: Path) -> None:
    *_, first, second = lines(
        segment,
        DumpOptions(decode=decoders.key_value_decoder(decoders.decode_text, decoders.decode_text)),
    )
    assert first == (
        "| offset: 5 CreateTime: 1000 keySize: 1 valueSize: 1 sequence: -1"
        " headerKeys: [h] key: k payload: v"
    )
    assert second.endswith("keySize: -1 valueSize: -1 sequence: -1 headerKeys: []")


def test_a_flipped_bit_makes_the_batch_invalid(segment: Path) -> None:
    content = bytearray(segment.read_bytes())
    content[-1] ^= 1
    segment.write_bytes(content)
    assert lines(segment, DumpOptions())[-1].endswith(" isvalid: false")


def test_trailing_bytes_are_reported(segment: Path) -> None:
    segment.write_bytes(segment.read_bytes() + b"\0" * 7)
    assert lines(segment, DumpOptions())[-1] == f"Found 7 invalid bytes at the end of {SEGMENT}"


def test_a_malformed_batch_is_reported(segment: Path) -> None:
    segment.write_bytes(segment.read_bytes() + b"\0" * 100)
    assert "malformed batch" in lines(segment, DumpOptions())[-1]


def test_metadata_records_are_json(tmp_path: Path) -> None:
    topic = encode_record(TopicRecord(name="orders", topic_id=bytes(16)), 0)
    path = tmp_path / SEGMENT
    path.write_bytes(build_batch([Record(5, 1_000, None, topic, [])], base_offset=5))
    record = json.loads(
        lines(path, DumpOptions(decode=decoders.decode_cluster_metadata))[-1].partition("load: ")[2]
    )
    assert record["type"] == "TOPIC_RECORD"
    assert record["data"] == {"name": "orders", "topicId": "AAAAAAAAAAAAAAAAAAAAAA"}


def test_transactions_are_json_and_tombstones_are_deletions(tmp_path: Path) -> None:
    key = b"\0\0" + TransactionLogKey(transactional_id="tx").write(0)
    value = b"\0\1" + TransactionLogValue(producer_id=7, transaction_partitions=None).write(1)
    records = [Record(5, 1, key, value, []), Record(6, 1, key, None, [])]
    path = tmp_path / SEGMENT
    path.write_bytes(build_batch(records, base_offset=5))
    *_, first, second = lines(path, DumpOptions(decode=decoders.decode_transaction_state))
    record = json.loads(first.partition("payload: ")[2])
    assert record["version"] == "1"
    assert record["data"]["producerId"] == 7
    assert second.endswith("payload: <DELETE>")
