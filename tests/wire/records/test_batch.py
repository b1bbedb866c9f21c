"""The header of a batch: reading, writing, and changing it in place."""

import pytest
from tests.wire.records.samples import FROM_KAFKA, NOW_MS, some_records

from barnabas.wire.errors import ErrorCode
from barnabas.wire.records.batch import (
    HEADER_BYTES,
    MAX_SEQUENCE,
    BatchHeader,
    CorruptBatch,
    TimestampType,
    assign_offset,
    crc_is_valid,
    iterate_batches,
    read_header,
    stamp_append_time,
    write_header,
)
from barnabas.wire.records.build import build_batch
from barnabas.wire.records.compression import Codec
from barnabas.wire.records.read import read_records

# One record: key "k", value "v", a header "h": null, at 1.7e12 ms, of producer 7, epoch 1,
# sequence 2, transactional, at offset 42 of leader epoch 3.
GOLDEN = bytes.fromhex(
    "000000000000002a"  # base offset 42
    "0000003d"  # length 61
    "00000003"  # leader epoch 3
    "02"  # magic
    "d30a07c5"  # crc
    "0010"  # attributes: transactional
    "00000000"  # last offset delta
    "0000018bcfe56800"  # base timestamp
    "0000018bcfe56800"  # max timestamp
    "0000000000000007"  # producer id
    "0001"  # producer epoch
    "00000002"  # base sequence
    "00000001"  # record count
    "16"  # length 11
    "00"  # attributes
    "00"  # timestamp delta
    "00"  # offset delta
    "026b"  # key
    "0276"  # value
    "02"  # one header
    "0268"  # its key
    "01"  # its null value
)
GOLDEN_HEADER = BatchHeader(
    base_offset=42,
    length=61,
    leader_epoch=3,
    magic=2,
    crc=0xD30A07C5,
    attributes=0x10,
    last_offset_delta=0,
    base_timestamp=NOW_MS,
    max_timestamp=NOW_MS,
    producer_id=7,
    producer_epoch=1,
    base_sequence=2,
    record_count=1,
)


def test_a_header_is_read_field_by_field_from_its_bytes() -> None:
    header = read_header(GOLDEN)
    assert header == GOLDEN_HEADER
    assert header.size_bytes == len(GOLDEN)
    assert crc_is_valid(GOLDEN, 0, header)


def test_a_batch_has_the_expected_bytes() -> None:
    record = some_records(1)[0]._replace(key=b"k", value=b"v", headers=[("h", None)])
    batch = build_batch(
        [record],
        base_offset=42,
        leader_epoch=3,
        producer_id=7,
        producer_epoch=1,
        base_sequence=2,
        transactional=True,
    )
    assert batch.hex() == GOLDEN.hex()


def test_a_header_is_read_before_its_records() -> None:
    assert read_header(b"before" + GOLDEN[:HEADER_BYTES], 6) == GOLDEN_HEADER


def test_the_offsets_and_sequences_of_a_batch_follow_from_its_header() -> None:
    header = GOLDEN_HEADER._replace(last_offset_delta=9)
    assert (header.last_offset, header.next_offset, header.last_sequence) == (51, 52, 11)


def test_after_the_last_sequence_comes_zero() -> None:
    header = GOLDEN_HEADER._replace(base_sequence=MAX_SEQUENCE - 1, last_offset_delta=1)
    assert header.last_sequence == MAX_SEQUENCE
    assert header._replace(last_offset_delta=2).last_sequence == 0
    assert header._replace(last_offset_delta=12).last_sequence == 10


def test_a_batch_without_sequence_has_no_last_sequence() -> None:
    header = GOLDEN_HEADER._replace(base_sequence=-1, last_offset_delta=5)
    assert header.last_sequence == -1


@pytest.mark.parametrize(
    ("attributes", "codec", "append_time", "transactional", "control", "horizon"),
    [
        (0, Codec.NONE, False, False, False, False),
        (4, Codec.ZSTD, False, False, False, False),
        (0x08, Codec.NONE, True, False, False, False),
        (0x11, Codec.GZIP, False, True, False, False),
        (0x30, Codec.NONE, False, True, True, False),
        (0x43, Codec.LZ4, False, False, False, True),
    ],
)
def test_the_attributes_are_bits(
    attributes: int,
    codec: Codec,
    append_time: bool,
    transactional: bool,
    control: bool,
    horizon: bool,
) -> None:
    header = GOLDEN_HEADER._replace(attributes=attributes)
    assert header.codec is codec
    assert header.timestamp_type is TimestampType(append_time)
    assert header.is_transactional is transactional
    assert header.is_control is control
    assert header.has_delete_horizon is horizon
    assert header.delete_horizon_ms == (NOW_MS if horizon else None)


def test_a_codec_that_does_not_exist_is_corrupt() -> None:
    with pytest.raises(CorruptBatch):
        _ = GOLDEN_HEADER._replace(attributes=5).codec


@pytest.mark.parametrize(
    "broken",
    [
        b"",
        GOLDEN[: HEADER_BYTES - 1],
        GOLDEN[:16] + b"\x01" + GOLDEN[17:],
        GOLDEN[:16] + b"\xff" + GOLDEN[17:],
        GOLDEN[:8] + (48).to_bytes(4) + GOLDEN[12:],
        GOLDEN[:8] + (-1).to_bytes(4, signed=True) + GOLDEN[12:],
        bytes(100),
    ],
)
def test_a_malformed_header_is_corrupt(broken: bytes) -> None:
    with pytest.raises(CorruptBatch) as raised:
        read_header(broken)
    assert raised.value.code is ErrorCode.CORRUPT_MESSAGE


def test_a_change_of_any_covered_byte_fails_the_checksum() -> None:
    for position in range(21, len(GOLDEN)):
        changed = bytearray(GOLDEN)
        changed[position] ^= 1
        assert not crc_is_valid(changed, 0, GOLDEN_HEADER)


def test_a_truncated_batch_has_no_valid_checksum() -> None:
    assert not crc_is_valid(GOLDEN[:-1], 0, GOLDEN_HEADER)


def test_iterating_yields_whole_batches_without_a_partial_tail() -> None:
    first, second = bytes.fromhex(FROM_KAFKA[Codec.NONE]), GOLDEN
    positions = [(0, read_header(first)), (len(first), GOLDEN_HEADER)]
    assert list(iterate_batches(first + second)) == positions
    for tail in (GOLDEN[:5], GOLDEN[:HEADER_BYTES], GOLDEN[:-1]):
        assert list(iterate_batches(first + second + tail)) == positions
    assert list(iterate_batches(first + second, len(first))) == positions[1:]


def test_iterating_into_zeros_is_corrupt() -> None:
    batches = iterate_batches(GOLDEN + bytes(HEADER_BYTES))
    assert next(batches) == (0, GOLDEN_HEADER)
    with pytest.raises(CorruptBatch):
        next(batches)


def test_the_leader_sets_offset_and_epoch_under_the_same_checksum() -> None:
    buffer = bytearray(b"before" + GOLDEN + b"after")
    assign_offset(buffer, 6, 1 << 40, 9)
    header = read_header(buffer, 6)
    assert header == GOLDEN_HEADER._replace(base_offset=1 << 40, leader_epoch=9)
    assert crc_is_valid(buffer, 6, header)
    assert buffer.startswith(b"before")
    assert buffer.endswith(b"after")


def test_append_time_is_stamped_on_every_record_under_a_new_checksum() -> None:
    buffer = bytearray(b"before") + build_batch(some_records(3), codec=Codec.GZIP) + b"after"
    stamp_append_time(memoryview(buffer), 6, NOW_MS + 99)
    header = read_header(buffer, 6)
    assert header.timestamp_type is TimestampType.LOG_APPEND_TIME
    assert header.codec is Codec.GZIP
    assert crc_is_valid(buffer, 6, header)
    assert {record.timestamp for record in read_records(buffer, 6)} == {NOW_MS + 99}


def test_a_header_that_is_written_gets_the_checksum_of_its_batch() -> None:
    buffer = bytearray(GOLDEN)
    write_header(buffer, 0, GOLDEN_HEADER._replace(producer_epoch=2, crc=0))
    header = read_header(buffer)
    assert header.producer_epoch == 2
    assert crc_is_valid(buffer, 0, header)
