"""Records into a batch and back, for every codec and kind of batch."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.wire.records.samples import (
    FROM_KAFKA,
    IN_FROM_KAFKA,
    NOW_MS,
    codecs,
    law,
    records,
    some_records,
)

from barnabas.wire.records.batch import CorruptBatch, crc_is_valid, read_header, write_header
from barnabas.wire.records.build import Record, build_batch
from barnabas.wire.records.compression import Codec, CompressionError
from barnabas.wire.records.read import read_records


@law
@given(records(), codecs)
def test_records_are_read_as_written(given_records: list[Record], codec: Codec) -> None:
    batch = build_batch(given_records, codec=codec)
    header = read_header(batch)
    assert read_records(batch) == given_records
    assert crc_is_valid(batch, 0, header)
    assert header.size_bytes == len(batch)
    assert header.codec is codec
    assert header.record_count == len(given_records) == header.last_offset_delta + 1
    assert header.base_timestamp == given_records[0].timestamp
    assert header.max_timestamp == max(record.timestamp for record in given_records)


@law
@given(records(base_offset=2**40), codecs, st.lists(st.integers(1, 1000), min_size=12))
def test_records_keep_the_gaps_that_compaction_leaves(
    given_records: list[Record], codec: Codec, gaps: list[int]
) -> None:
    offset = 2**40
    kept = []
    for record, gap in zip(given_records, gaps, strict=False):
        kept.append(record._replace(offset=offset))
        offset += gap
    batch = build_batch(kept, base_offset=None, codec=codec)
    assert read_records(batch) == kept
    assert read_header(batch).last_offset == kept[-1].offset


@law
@given(records(), codecs, st.integers(0, 2**62))
def test_with_append_time_all_records_have_that_timestamp(
    given_records: list[Record], codec: Codec, append_time: int
) -> None:
    batch = build_batch(given_records, codec=codec, append_time=append_time)
    assert read_header(batch).max_timestamp == append_time
    assert read_records(batch) == [
        record._replace(timestamp=append_time) for record in given_records
    ]


@law
@given(records(), st.integers(0, NOW_MS * 3))
def test_a_delete_horizon_replaces_the_base_timestamp(
    given_records: list[Record], horizon_ms: int
) -> None:
    batch = build_batch(given_records, delete_horizon_ms=horizon_ms)
    assert read_header(batch).delete_horizon_ms == horizon_ms
    assert read_records(batch) == given_records


def test_records_have_offsets_from_the_base_offset() -> None:
    batch = build_batch([record._replace(offset=0) for record in some_records(4)], base_offset=70)
    assert [record.offset for record in read_records(batch)] == [70, 71, 72, 73]


@pytest.mark.parametrize("codec", Codec)
def test_batches_that_kafka_wrote_are_read(codec: Codec) -> None:
    batch = bytes.fromhex(FROM_KAFKA[codec])
    header = read_header(batch)
    assert crc_is_valid(batch, 0, header)
    assert header.codec is codec
    assert read_records(batch) == IN_FROM_KAFKA


def test_an_uncompressed_batch_has_the_bytes_of_kafka() -> None:
    batch = build_batch(IN_FROM_KAFKA, base_offset=5010, leader_epoch=0)
    assert batch.hex() == FROM_KAFKA[Codec.NONE]


def test_an_lz4_frame_has_the_options_of_kafka() -> None:
    batch = build_batch(IN_FROM_KAFKA, base_offset=5010, leader_epoch=0, codec=Codec.LZ4)
    assert batch[61:68].hex() == FROM_KAFKA[Codec.LZ4][122:136]  # magic and descriptor


def test_a_record_can_be_large() -> None:
    large = [Record(0, NOW_MS, None, bytes(10_000_000), [])]
    assert read_records(build_batch(large)) == large


def test_a_header_name_that_is_not_text_is_replaced_as_java_does() -> None:
    batch = build_batch([Record(0, NOW_MS, None, None, [("ab", b"x")])])
    position = batch.index(b"ab")
    batch[position] = 0xFF
    assert read_records(batch)[0].headers == [("\N{REPLACEMENT CHARACTER}b", b"x")]


@pytest.mark.parametrize(
    "record",
    [
        Record(0, NOW_MS, "text", None, []),  # type: ignore[arg-type]
        Record(0, NOW_MS, None, 5, []),  # type: ignore[arg-type]
        Record(0, NOW_MS, None, None, [("name", "text")]),  # type: ignore[list-item]
    ],
)
def test_only_bytes_are_written(record: Record) -> None:
    with pytest.raises(TypeError):
        build_batch([record])


def test_offsets_must_not_decrease() -> None:
    backwards = [record._replace(offset=9 - record.offset) for record in some_records(2)]
    with pytest.raises(ValueError, match="Offset 8"):
        build_batch(backwards, base_offset=None)


def test_an_empty_batch_raises_an_error() -> None:
    with pytest.raises(ValueError, match="at least one"):
        build_batch([])


def test_decompressing_beyond_the_limit_raises_an_error() -> None:
    batch = build_batch([Record(0, NOW_MS, None, bytes(1000), [])], codec=Codec.ZSTD)
    assert len(read_records(batch, max_decompressed_bytes=1100)) == 1
    with pytest.raises(CompressionError):
        read_records(batch, max_decompressed_bytes=999)


@pytest.mark.parametrize("count", [0, 2, 4, 2**31 - 1, -1])
def test_a_count_that_is_not_that_of_the_records_is_corrupt(count: int) -> None:
    batch = build_batch(some_records(3))
    write_header(batch, 0, read_header(batch)._replace(record_count=count))
    with pytest.raises(CorruptBatch):
        read_records(batch)


def test_a_truncated_batch_is_corrupt() -> None:
    batch = build_batch(some_records(3))
    with pytest.raises(CorruptBatch):
        read_records(batch[:-1])
