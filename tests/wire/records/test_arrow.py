"""Batches to Arrow columns, and back."""

import pyarrow as pa
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

from barnabas.wire.records.arrow import from_arrow, schema, to_arrow
from barnabas.wire.records.batch import CorruptBatch, crc_is_valid, read_header, write_header
from barnabas.wire.records.build import Record, build_batch
from barnabas.wire.records.compression import Codec, CompressionError
from barnabas.wire.records.control import build_marker
from barnabas.wire.records.read import read_records


def as_records(rows: pa.RecordBatch) -> list[Record]:
    rows.validate(full=True)
    assert rows.schema == schema()
    millis = rows.column("timestamp").cast(pa.int64())
    return [
        Record(
            row["offset"],
            timestamp,
            row["key"],
            row["value"],
            [(header["key"], header["value"]) for header in row["headers"]],
        )
        for row, timestamp in zip(
            rows.drop_columns("timestamp").to_pylist(), millis.to_pylist(), strict=True
        )
    ]


def numbered(batches: list[bytearray]) -> list[Record]:
    """Returns all records with consecutive offsets."""
    everything = [record for batch in batches for record in read_records(batch)]
    return [record._replace(offset=index) for index, record in enumerate(everything)]


@law
@given(records(base_offset=7), codecs)
def test_the_columns_have_the_records(given_records: list[Record], codec: Codec) -> None:
    batch = build_batch(given_records, base_offset=7, codec=codec)
    assert as_records(to_arrow(batch)) == given_records


@law
@given(records(), codecs, st.integers(100, 2000))
def test_columns_become_batches_and_columns_again(
    given_records: list[Record], codec: Codec, max_batch_bytes: int
) -> None:
    rows = to_arrow(build_batch(given_records))
    batches = from_arrow(rows, codec=codec, max_batch_bytes=max_batch_bytes)
    assert numbered(batches) == given_records
    for batch in batches:
        header = read_header(batch)
        assert crc_is_valid(batch, 0, header)
        assert header.codec is codec
        assert header.record_count == header.last_offset_delta + 1
        assert header.record_count == 1 or codec or len(batch) <= max_batch_bytes
        stamps = [record.timestamp for record in read_records(batch)]
        assert (header.base_timestamp, header.max_timestamp) == (stamps[0], max(stamps))


@law
@given(records(), st.integers(0, 12), st.integers(0, 12))
def test_a_slice_of_columns_is_only_its_rows(
    given_records: list[Record], start: int, length: int
) -> None:
    rows = to_arrow(build_batch(given_records)).slice(start, length)
    expected = [
        record._replace(offset=index)
        for index, record in enumerate(given_records[start : start + length])
    ]
    assert numbered(from_arrow(rows)) == expected


@pytest.mark.parametrize("codec", Codec)
def test_a_batch_from_arrow_is_the_batch_from_records(codec: Codec) -> None:
    given_records = some_records(200)
    fields = {"producer_id": 3, "producer_epoch": 1, "base_sequence": 8, "transactional": True}
    rows = to_arrow(build_batch(given_records))
    assert from_arrow(rows, codec=codec, **fields) == [
        build_batch(given_records, codec=codec, **fields)
    ]


def test_many_batches_in_many_buffers_become_one() -> None:
    kafka = [bytes.fromhex(batch) for batch in FROM_KAFKA.values()]
    partial = kafka[0][:-1]
    rows = to_arrow([b"".join(kafka[:2]) + partial, memoryview(b"".join(kafka[2:]))])
    assert as_records(rows) == IN_FROM_KAFKA * 5


def test_control_batches_are_left_out() -> None:
    marker = build_marker(
        producer_id=1, producer_epoch=0, committed=True, coordinator_epoch=0, timestamp=NOW_MS
    )
    assert as_records(to_arrow(marker + build_batch(some_records(2)) + marker)) == some_records(2)
    assert to_arrow(marker).num_rows == 0


def test_no_batches_are_no_rows() -> None:
    for nothing in (b"", []):
        assert as_records(to_arrow(nothing)) == []
    assert from_arrow(to_arrow(b"")) == []


def test_append_time_is_the_time_of_every_row() -> None:
    rows = to_arrow(build_batch(some_records(3), append_time=NOW_MS + 9))
    assert rows.column("timestamp").cast(pa.int64()).to_pylist() == [NOW_MS + 9] * 3


def test_offsets_keep_their_gaps() -> None:
    gaps = [record._replace(offset=record.offset * 3) for record in some_records(4)]
    rows = to_arrow(build_batch(gaps, base_offset=None))
    assert rows.column("offset").to_pylist() == [0, 3, 6, 9]


def test_sequences_continue_over_batches_and_wrap_around() -> None:
    batches = from_arrow(
        to_arrow(build_batch(some_records(4))),
        max_batch_bytes=1,
        producer_id=1,
        producer_epoch=0,
        base_sequence=2**31 - 2,
    )
    assert [read_header(batch).base_sequence for batch in batches] == [2**31 - 2, 2**31 - 1, 0, 1]


def test_a_column_of_values_is_enough() -> None:
    rows = pa.record_batch({"value": pa.array([b"a", None])})
    assert numbered(from_arrow(rows, default_timestamp=NOW_MS)) == [
        Record(0, NOW_MS, None, b"a", []),
        Record(1, NOW_MS, None, None, []),
    ]


def test_text_other_units_and_missing_times_and_headers_are_accepted() -> None:
    rows = pa.record_batch(
        {
            "key": pa.array(["a", "b", None], pa.string()),
            "value": pa.array([b"1", b"2", b"3"], pa.large_binary()),
            "timestamp": pa.array([5_999, None, 7_000], pa.timestamp("us")),
            "headers": pa.array(
                [[{"key": "h", "value": None}], None, []],
                pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())])),
            ),
        }
    )
    assert numbered(from_arrow(rows)) == [
        Record(0, 5, b"a", b"1", [("h", None)]),
        Record(1, -1, b"b", b"2", []),
        Record(2, 7, None, b"3", []),
    ]


def test_rows_without_a_value_column_raise_an_error_that_names_it() -> None:
    with pytest.raises(ValueError, match="'value'"):
        from_arrow(pa.record_batch({"key": pa.array([b"a"])}))


@pytest.mark.parametrize("header", [None, {"key": None, "value": b"x"}])
def test_a_header_without_a_key_raises_an_error(header: dict[str, bytes | None] | None) -> None:
    headers = pa.array([[header]], schema().field("headers").type)
    with pytest.raises(ValueError, match="A header has no key"):
        from_arrow(pa.record_batch({"value": [b"v"], "headers": headers}))


def test_a_column_with_offsets_out_of_its_data_raises_an_error() -> None:
    offsets = pa.array([0, 9, 4], pa.int32()).buffers()[1]
    broken = pa.Array.from_buffers(pa.binary(), 2, [None, offsets, pa.py_buffer(b"abcd")])
    with pytest.raises(ValueError, match="row 0"):
        from_arrow(pa.record_batch({"value": broken}))


def test_a_header_name_that_is_not_text_is_replaced() -> None:
    batch = build_batch([Record(0, NOW_MS, None, None, [("ab", b"x")])])
    batch[batch.index(b"ab")] = 0xFF
    (row,) = as_records(to_arrow(batch))
    assert row.headers == [("\N{REPLACEMENT CHARACTER}b", b"x")]


def test_the_size_limit_is_for_all_batches_together() -> None:
    batch = build_batch([Record(0, NOW_MS, None, bytes(1000), [])], codec=Codec.LZ4)
    assert to_arrow(batch, max_decompressed_bytes=1100).num_rows == 1
    with pytest.raises(CompressionError):
        to_arrow([batch, batch], max_decompressed_bytes=1100)
    with pytest.raises(ValueError, match="fewer"):
        to_arrow(build_batch(some_records(9)), max_decompressed_bytes=10)


@pytest.mark.parametrize("count", [2, 4, 2**31 - 1, -1])
def test_a_count_that_is_not_that_of_the_records_is_corrupt(count: int) -> None:
    batch = build_batch(some_records(3))
    write_header(batch, 0, read_header(batch)._replace(record_count=count))
    with pytest.raises(CorruptBatch):
        to_arrow(batch)


@law
@given(records(), st.lists(st.tuples(st.integers(0), st.integers(0, 255)), max_size=4))
def test_a_changed_batch_is_corrupt_or_well_formed_columns(
    given_records: list[Record], changes: list[tuple[int, int]]
) -> None:
    batch = build_batch(given_records)
    for position, byte in changes:
        batch[61 + position % (len(batch) - 61)] = byte
    try:
        rows = to_arrow(batch)
    except CorruptBatch:
        return
    rows.validate(full=True)
