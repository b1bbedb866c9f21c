"""The compiled loops of compaction agree with a naive model, and survive corrupt bytes."""

import random
import struct
from collections.abc import Callable, Sequence
from contextlib import suppress

import pytest
from cramjam import snappy
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.log.cleaner.cleaner_model import (
    HORIZON_MS,
    NOW_MS,
    RETENTION_MS,
    ModelMap,
    SampleBatch,
    model_filter,
    sample_batches,
)
from tests.log.log_test_directory import LogTestDirectory
from tests.uncompiled import compiled_and_plain

from barnabas.log.cleaner import _indexes, _offset_map, _records
from barnabas.log.segments.open_files import OpenFiles
from barnabas.log.segments.segment import LogSegment
from barnabas.wire.records.batch import (
    HEADER_BYTES,
    BatchHeader,
    CorruptBatch,
    check_crcs,
    crc_is_valid,
    iterate_batches,
    read_header,
    write_header,
)
from barnabas.wire.records.build import build_batch
from barnabas.wire.records.compression import Codec, compress
from barnabas.wire.records.read import read_records, record_bytes
from barnabas.wire.records.record import Record

loops = compiled_and_plain(_indexes, _offset_map, _records)

law = settings(max_examples=80, deadline=None)

MAX_BYTES = 1 << 20
EDGE_BYTES = (0x00, 0x01, 0x02, 0x7E, 0x7F, 0x80, 0xFE, 0xFF)


def new_map(slots: int = 1000, load_factor: float = 0.9) -> _offset_map.OffsetMap:
    return _offset_map.OffsetMap(slots * 24, load_factor)


def new_filter(
    offset_map: _offset_map.OffsetMap,
    *,
    now_ms: int = NOW_MS,
    delete_retention_ms: int = RETENTION_MS,
    retained_offsets: Sequence[int] = (),
    end_offset: int = -1,
) -> _records.BatchFilter:
    return _records.BatchFilter(
        offset_map,
        now_ms=now_ms,
        delete_retention_ms=delete_retention_ms,
        retained_offsets=retained_offsets,
        end_offset=end_offset,
    )


def encode(batches: Sequence[SampleBatch]) -> bytes:
    return b"".join(batch.encode() for batch in batches)


def mapped(batches: Sequence[SampleBatch]) -> _offset_map.OffsetMap:
    offset_map = new_map()
    source = encode(batches)
    assert _records.map_batches(offset_map, source, 0, 0) == (len(source), False)
    return offset_map


def filter_all(batch_filter: _records.BatchFilter, source: bytes) -> bytes:
    """Returns what is kept of batches without transactions."""
    out = bytearray(2 * len(source) + 20_000)
    indexes = _indexes.SegmentIndexes(0, 4096)
    position, out_position = batch_filter.filter_batches(source, 0, out, 0, indexes)
    assert position == len(source)
    assert indexes.size_bytes == out_position
    return bytes(out[:out_position])


def filter_one(
    batch_filter: _records.BatchFilter,
    batch: bytes,
    *,
    discard: bool = False,
    stamp_marker: bool = False,
    keep_empty: bool = False,
) -> bytes:
    """Returns what is kept of one batch of any kind, as the cleaner handles it."""
    header = read_header(batch)
    indexes = _indexes.SegmentIndexes(header.base_offset, 4096)
    records = record_bytes(batch, 0, header, MAX_BYTES)
    size = _records.max_filtered_bytes(len(records), header.record_count)
    out = bytearray(2 * max(size, len(batch)))
    filtered = batch_filter.filter_records(
        header,
        records,
        out,
        0,
        discard=discard,
        stamp_marker=stamp_marker,
        keep_empty=keep_empty,
    )
    if filtered is None:
        return b""
    if not filtered.is_changed:
        end = batch_filter.copy_batch(header, batch, out, 0, indexes)
        return bytes(out[:end])
    end = filtered.end
    assert end <= size
    assert filtered.header.length == end - 12
    if filtered.header.codec:
        compressed = compress(filtered.header.codec, out[HEADER_BYTES:end])
        end = HEADER_BYTES + len(compressed)
        out[HEADER_BYTES:end] = compressed
    assert batch_filter.finish_batch(filtered.header, out, 0, end, indexes) == end
    assert indexes.size_bytes == end
    return bytes(out[:end])


def headers_of(batches: bytes) -> list[BatchHeader]:
    return [header for _, header in iterate_batches(batches)]


def record(offset: int, key: bytes | None, value: bytes | None = b"v", at: int = 100) -> Record:
    return Record(offset, at, key, value, [])


# The offset map


@law
@given(sample_batches(), st.integers(0, 60))
def test_the_map_has_the_last_offset_of_each_key(
    batches: list[SampleBatch], first_offset: int
) -> None:
    offset_map, model_map = new_map(), ModelMap()
    source = encode(batches)
    assert _records.map_batches(offset_map, source, 0, first_offset) == (len(source), False)
    assert not model_map.put(batches, first_offset)
    assert len(offset_map) == len(model_map.offsets)
    assert offset_map.latest_offset == model_map.latest_offset
    for key, offset in model_map.offsets.items():
        assert offset_map.latest(key) == offset
    assert offset_map.latest(b"unknown") == -1


@law
@given(sample_batches(), st.integers(2, 8), st.integers(0, 30))
def test_a_full_map_ends_at_the_next_keyed_record(
    batches: list[SampleBatch], limit: int, first_offset: int
) -> None:
    offset_map, model_map = new_map(limit, 1.0), ModelMap(limit)
    assert offset_map.limit == limit
    source = encode(batches)
    position, is_full = _records.map_batches(offset_map, source, 0, first_offset)
    assert is_full is model_map.put(batches, first_offset)
    assert {key: offset_map.latest(key) for key in model_map.offsets} == model_map.offsets
    assert len(offset_map) == len(model_map.offsets) <= limit
    assert offset_map.latest_offset == model_map.latest_offset
    assert offset_map.utilization == len(offset_map) / limit
    if is_full:
        assert offset_map.latest_offset < read_header(source, position).last_offset


@law
@given(sample_batches(transactions=True), st.integers(0, 30))
def test_records_of_a_batch_of_any_kind_are_mapped_like_the_model(
    batches: list[SampleBatch], first_offset: int
) -> None:
    offset_map, model_map = new_map(), ModelMap()
    for batch in batches:
        source = batch.encode()
        header = read_header(source)
        assert _records.map_records(
            offset_map,
            record_bytes(source, 0, header, MAX_BYTES),
            header.record_count,
            header.base_offset,
            first_offset,
        )
        if batch.last_offset >= first_offset:
            offset_map.latest_offset = batch.last_offset
    model_map.put(batches, first_offset)
    assert {key: offset_map.latest(key) for key in model_map.offsets} == model_map.offsets
    assert offset_map.latest_offset == model_map.latest_offset


def test_records_that_fill_the_map_are_mapped_in_part() -> None:
    offset_map = new_map(2, 1.0)
    batch = SampleBatch(5, 8, [record(5 + index, b"%d" % index) for index in range(4)]).encode()
    assert not _records.map_records(offset_map, batch[HEADER_BYTES:], 4, 5, 0)
    assert offset_map.latest_offset == 6
    assert len(offset_map) == 2


def test_a_known_key_does_not_fit_into_a_full_map_either() -> None:
    offset_map = new_map(2, 1.0)
    batch = SampleBatch(0, 2, [record(0, b"a"), record(1, b"b"), record(2, b"a")]).encode()
    assert _records.map_batches(offset_map, batch, 0, 0) == (0, True)
    assert offset_map.latest(b"a") == 0
    assert offset_map.latest_offset == 1


def test_many_keys_that_share_slots_keep_their_offsets() -> None:
    offset_map = new_map(500, 0.998)
    records = [record(index, b"key-%d" % index) for index in range(499)]
    batch = SampleBatch(0, 498, records).encode()
    assert _records.map_batches(offset_map, batch, 0, 0) == (len(batch), False)
    assert [offset_map.latest(each.key or b"") for each in records] == list(range(499))
    assert offset_map.latest(b"key-499") == -1


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        (0, "a3817f04ba25a8e66df67214c7550293"),
        (1, "da87c1d86b99af44347659119b22fc45"),
        (7, "a1f1ebbed8dbc153c0b84aa61ff08239"),
        (8, "3b62a9ba6258f5610f83e264f31497b4"),
        (15, "5493e99933b0a8117e08ec0f97cfc3d9"),
        (63, "5150d1772f50834a503e069a973fbd7c"),
    ],
)
def test_keys_are_hashed_with_siphash(size: int, expected: str) -> None:
    offset_map = new_map()
    offset_map.set_secret(bytes(range(16)))
    assert offset_map.hash_key(bytes(range(size))).hex() == expected


@pytest.mark.parametrize(
    ("memory_bytes", "load_factor"), [(0, 0.9), (24, 0.9), (48, 0.5), (480, 0), (480, 1.1), (-1, 1)]
)
def test_a_map_for_less_than_two_keys_is_an_error(memory_bytes: int, load_factor: float) -> None:
    with pytest.raises(ValueError, match=r"map|factor"):
        _offset_map.OffsetMap(memory_bytes, load_factor)


def test_the_limit_is_the_share_of_slots_that_the_load_factor_allows() -> None:
    assert _offset_map.OffsetMap(24 * 1000 + 23, 0.9).limit == 900


# Verdicts of records, and rebuilt batches


@law
@given(sample_batches(), st.data())
def test_batches_without_transactions_are_filtered_like_the_model(
    batches: list[SampleBatch], data: st.DataObject
) -> None:
    mapped_count = data.draw(st.integers(0, len(batches)))
    retained = data.draw(st.sets(st.sampled_from([b.last_offset for b in batches] or [0])))
    end_offset = data.draw(st.integers(0, 60))
    model_map = ModelMap()
    model_map.put(batches[:mapped_count])
    offset_map = mapped(batches[:mapped_count])
    batch_filter = new_filter(offset_map, retained_offsets=sorted(retained), end_offset=end_offset)
    kept = [
        model_filter(
            batch,
            model_map,
            is_retained=batch.last_offset + 1 == end_offset
            or (batch.producer_id >= 0 and batch.last_offset in retained),
        )
        for batch in batches
    ]
    expected = [batch for batch in kept if batch is not None]
    source = encode(batches)
    out = filter_all(batch_filter, source)
    assert out == encode(expected)
    check_crcs(out)
    assert batch_filter.bytes_read == len(source)
    assert batch_filter.bytes_kept == len(out)
    assert batch_filter.messages_read == sum(len(batch.records) for batch in batches)
    assert batch_filter.messages_kept == sum(len(batch.records) for batch in expected)
    assert batch_filter.invalid_records == sum(
        record.key is None and record.offset <= model_map.latest_offset
        for batch in batches
        for record in batch.records
    )
    horizons = [batch.horizon_ms for batch in expected if (batch.horizon_ms or 0) >= NOW_MS]
    assert batch_filter.earliest_horizon_ms == min(horizons, default=-1)


@law
@given(sample_batches(transactions=True), st.booleans(), st.booleans())
def test_batches_of_any_kind_are_filtered_like_the_model(
    batches: list[SampleBatch], stamp_marker: bool, keep_empty: bool
) -> None:
    model_map, offset_map = ModelMap(), new_map()
    model_map.put(batches)
    for batch in batches:
        source = batch.encode()
        records = record_bytes(source, 0, read_header(source), MAX_BYTES)
        _records.map_records(offset_map, records, len(batch.records), batch.base_offset, 0)
        offset_map.latest_offset = batch.last_offset
    batch_filter = new_filter(offset_map)
    for batch in batches:
        expected = model_filter(
            batch,
            model_map,
            stamp_marker=stamp_marker and batch.control,
            is_retained=keep_empty,
        )
        filtered = filter_one(
            batch_filter,
            batch.encode(),
            stamp_marker=stamp_marker and batch.control,
            keep_empty=keep_empty,
        )
        assert filtered == (b"" if expected is None else expected.encode())


@law
@given(sample_batches())
def test_a_second_filter_changes_nothing(batches: list[SampleBatch]) -> None:
    offset_map = mapped(batches)
    last_offset = batches[-1].last_offset if batches else 0
    once = filter_all(new_filter(offset_map, end_offset=last_offset + 1), encode(batches))
    twice = filter_all(new_filter(offset_map, end_offset=last_offset + 1), once)
    assert twice == once
    later = filter_all(new_filter(offset_map, now_ms=HORIZON_MS), once)
    assert [
        record for position, _ in iterate_batches(later) for record in read_records(later, position)
    ] == [
        record
        for position, _ in iterate_batches(once)
        for record in read_records(once, position)
        if record.value is not None
    ]


def test_the_last_record_of_a_key_is_kept_where_it_was() -> None:
    batches = [
        SampleBatch(10, 12, [record(10, b"a", at=50), record(11, b"b", at=40), record(12, b"a")]),
        SampleBatch(13, 13, [record(13, b"b")]),
    ]
    out = filter_all(new_filter(mapped(batches)), encode(batches))
    first, second = headers_of(out)
    assert (first.base_offset, first.last_offset, first.record_count) == (10, 12, 1)
    assert (first.base_timestamp, first.max_timestamp) == (100, 100)
    assert (first.leader_epoch, first.producer_epoch, first.base_sequence) == (7, 3, 11)
    assert read_records(out) == [record(12, b"a")]
    assert out[first.size_bytes :] == batches[1].encode()
    assert second.last_offset == 13


def test_a_tombstone_gets_a_horizon_once_and_leaves_after_it() -> None:
    batches = [SampleBatch(0, 1, [record(0, b"a"), record(1, b"b", None)])]
    offset_map = mapped(batches)
    stamped = filter_all(new_filter(offset_map), encode(batches))
    (header,) = headers_of(stamped)
    assert header.delete_horizon_ms == HORIZON_MS
    assert read_records(stamped) == batches[0].records
    assert filter_all(new_filter(offset_map, now_ms=HORIZON_MS - 1), stamped) == stamped
    left = filter_all(new_filter(offset_map, now_ms=HORIZON_MS), stamped)
    assert read_records(left) == [record(0, b"a")]
    assert headers_of(left)[0].delete_horizon_ms == HORIZON_MS


def test_a_tombstone_after_dropped_and_written_records_stamps_the_whole_batch() -> None:
    records = [record(index, b"%d" % (index % 40), at=index) for index in range(60)]
    records[59] = record(59, b"last", None, at=3)
    batches = [SampleBatch(0, 59, records)]
    out = filter_all(new_filter(mapped(batches)), encode(batches))
    (header,) = headers_of(out)
    assert header.delete_horizon_ms == HORIZON_MS
    assert read_records(out) == [r for r in records[:-1] if r.offset >= 19] + [records[59]]


def test_an_unbounded_delete_retention_keeps_tombstones_without_a_horizon() -> None:
    batches = [SampleBatch(0, 0, [record(0, b"a", None)])]
    source = encode(batches)
    batch_filter = new_filter(mapped(batches), delete_retention_ms=(1 << 63) - 1)
    assert filter_all(batch_filter, source) == source


def test_tombstones_of_a_batch_are_found() -> None:
    values = (b"", b"1", None)
    for count, found in ((0, False), (2, False), (3, True)):
        records = [Record(0, NOW_MS, b"k", value, []) for value in values[:count]]
        batch = bytes(build_batch(records)) if records else bytes(HEADER_BYTES)
        assert _records.has_tombstones(batch[HEADER_BYTES:], count) == found


def test_the_append_time_of_a_batch_stays() -> None:
    records = [record(0, b"a"), record(1, b"b"), record(2, b"a")]
    batches = [SampleBatch(0, 2, records, append_time=NOW_MS)]
    out = filter_all(new_filter(mapped(batches)), encode(batches))
    assert [each.timestamp for each in read_records(out)] == [NOW_MS, NOW_MS]
    (header,) = headers_of(out)
    assert (header.base_timestamp, header.max_timestamp) == (NOW_MS, NOW_MS)


def test_an_emptied_batch_is_a_header_of_its_producer() -> None:
    batches = [
        SampleBatch(0, 4, [record(4, b"a", at=60)], producer_id=9, horizon_ms=NOW_MS + 5),
        SampleBatch(5, 5, [record(5, b"a")]),
    ]
    batch_filter = new_filter(mapped(batches), retained_offsets=[4])
    out = filter_all(batch_filter, encode(batches))
    header = headers_of(out)[0]
    assert (header.size_bytes, header.record_count) == (HEADER_BYTES, 0)
    assert (header.base_offset, header.last_offset) == (0, 4)
    assert (header.base_timestamp, header.max_timestamp) == (-1, 60)
    assert (header.attributes, header.producer_id, header.base_sequence) == (0, 9, 11)


def test_retained_offsets_are_of_producers_only() -> None:
    batches = [SampleBatch(0, 0, [record(0, b"a")]), SampleBatch(1, 1, [record(1, b"a")])]
    batch_filter = new_filter(mapped(batches), retained_offsets=[0])
    assert len(headers_of(filter_all(batch_filter, encode(batches)))) == 1


def test_a_discarded_batch_is_dropped_unread_or_kept_empty() -> None:
    batch = SampleBatch(
        5, 6, [record(5, b"a"), record(6, b"b")], transactional=True, codec=Codec.GZIP
    )
    batch_filter = new_filter(new_map())
    assert filter_one(batch_filter, batch.encode(), discard=True) == b""
    assert (batch_filter.messages_read, batch_filter.bytes_read) == (0, len(batch.encode()))
    kept = filter_one(batch_filter, batch.encode(), discard=True, keep_empty=True)
    (header,) = headers_of(kept)
    assert (header.size_bytes, header.record_count, header.max_timestamp) == (61, 0, 100)
    assert (header.codec, header.is_transactional) == (Codec.NONE, True)
    assert batch_filter.messages_read == 2


def test_a_marker_is_stamped_once() -> None:
    marker = SampleBatch(5, 5, [record(5, b"\0\0\0\1")], transactional=True, control=True)
    batch_filter = new_filter(new_map())
    stamped = filter_one(batch_filter, marker.encode(), stamp_marker=True)
    (header,) = headers_of(stamped)
    assert header.delete_horizon_ms == HORIZON_MS
    assert read_records(stamped) == marker.records
    later = new_filter(new_map(), now_ms=NOW_MS + 1)
    assert filter_one(later, stamped, stamp_marker=True) == stamped


# Buffers and indexes


def test_the_filter_ends_before_a_batch_that_may_not_fit() -> None:
    batches = [SampleBatch(0, 0, [record(0, b"a")]), SampleBatch(1, 1, [record(1, b"b")])]
    source = encode(batches)
    size = len(batches[0].encode())
    most = _records.max_filtered_bytes(size - HEADER_BYTES, 1)
    for room, written in [(most - 1, 0), (most, size), (size + most - 1, size)]:
        out, indexes = bytearray(room), _indexes.SegmentIndexes(0, 4096)
        batch_filter = new_filter(new_map())
        ends = batch_filter.filter_batches(source, 0, out, 0, indexes)
        assert ends == (written, written)
        assert indexes.size_bytes == batch_filter.bytes_kept == written


def test_the_filter_ends_before_a_batch_that_the_segment_cannot_hold() -> None:
    source = SampleBatch(1 << 31, 1 << 31, [record(1 << 31, b"a")]).encode()
    out = bytearray(1000)
    batch_filter = new_filter(new_map())
    full = _indexes.SegmentIndexes(0, 4096)
    assert batch_filter.filter_batches(source, 0, out, 0, full) == (0, 0)
    assert not full.has_space(len(source), 1 << 31)
    with pytest.raises(ValueError, match="cannot hold"):
        full.on_batch(len(source), 1 << 31, 0)
    next_one = _indexes.SegmentIndexes(1, 4096)
    assert batch_filter.filter_batches(source, 0, out, 0, next_one) == (len(source),) * 2


@pytest.mark.parametrize("codec", list(Codec)[1:])
def test_the_filter_ends_before_a_compressed_batch_that_may_not_fit(codec: Codec) -> None:
    records = [record(index, b"%d" % index, b"v" * 100) for index in range(20)]
    batches = [
        SampleBatch(0, 19, records, codec=codec),
        SampleBatch(20, 20, [record(20, b"0")], codec=codec),
    ]
    source = encode(batches)
    records_bytes = len(record_bytes(source, 0, read_header(source), MAX_BYTES))
    most = _records.max_filtered_bytes(records_bytes, 20)
    for room, size in [(most - 1, 0), (most, len(batches[0].encode()))]:
        out, indexes = bytearray(room), _indexes.SegmentIndexes(0, 4096)
        batch_filter = new_filter(new_map())
        assert batch_filter.filter_batches(source, 0, out, 0, indexes)[0] == size
        assert batch_filter.bytes_read == indexes.size_bytes == size


def test_a_batch_that_becomes_larger_by_compression_does_not_fit() -> None:
    noise = random.Random(7).randbytes(500_000)
    batches = [
        SampleBatch(0, 1, [record(0, b"a"), record(1, b"b", noise)], codec=Codec.SNAPPY),
        SampleBatch(2, 2, [record(2, b"a")]),
    ]
    batch = bytearray(batches[0].encode())
    header = read_header(batch)
    records = record_bytes(batch, 0, header, MAX_BYTES)
    batch[HEADER_BYTES:] = snappy.compress_raw(records)  # Kafka's blocks are smaller
    write_header(batch, 0, header._replace(length=len(batch) - 12))
    size = max(_records.max_filtered_bytes(len(records), 2), len(batch))
    batch_filter = new_filter(mapped(batches))
    for room, position in [(size, 0), (2 * size, len(batch))]:
        out, indexes = bytearray(room), _indexes.SegmentIndexes(0, 4096)
        ends = batch_filter.filter_batches(batch, 0, out, 0, indexes)
        assert ends == (position, indexes.size_bytes)
        assert batch_filter.bytes_read == position
    assert read_records(out) == batches[0].records[1:]


@pytest.mark.parametrize("kind", ["transactional", "control", "old", "unknown codec", "partial"])
def test_both_passes_end_before_a_batch_that_their_caller_handles(kind: str) -> None:
    plain = SampleBatch(0, 0, [record(0, b"a")]).encode()
    other = SampleBatch(
        1,
        1,
        [record(1, b"a")],
        transactional=kind == "transactional",
        control=kind == "control",
    ).encode()
    if kind == "old":
        other = other[:16] + b"\x01" + other[17:]
    if kind == "unknown codec":
        other = other[:22] + b"\x05" + other[23:]
    if kind == "partial":
        other = other[:-1]
    offset_map = new_map()
    source = plain + other
    assert _records.map_batches(offset_map, source, 0, 0) == (len(plain), False)
    assert _records.map_batches(offset_map, source, len(plain), 0) == (len(plain), False)
    assert (len(offset_map), offset_map.latest(b"a")) == (1, 0)
    out, indexes = bytearray(1000), _indexes.SegmentIndexes(0, 4096)
    ends = new_filter(offset_map).filter_batches(source, 0, out, 0, indexes)
    assert ends == (len(plain), len(plain))


@law
@given(
    st.lists(st.tuples(st.integers(61, 900), st.integers(1, 9), st.integers(-1, 40)), max_size=40),
    st.integers(0, 2000),
)
def test_index_entries_are_those_of_a_log_segment(
    new_log_dir: Callable[[], LogTestDirectory],
    batches: list[tuple[int, int, int]],
    interval_bytes: int,
) -> None:
    folder = str(new_log_dir().path)
    segment = LogSegment.new(folder, 1000, OpenFiles(4), interval_bytes)
    indexes = _indexes.SegmentIndexes(1000, interval_bytes)
    taken = [b"", b""]
    for number, (size_bytes, step, timestamp) in enumerate(batches):
        last_offset = segment.next_offset + step - 1
        segment.on_batch_written(size_bytes, last_offset, timestamp)
        indexes.on_batch(size_bytes, last_offset, timestamp)
        if number % 7 == 0:
            taken[0] += indexes.take_offset_index()
            taken[1] += indexes.take_time_index(final=False)
    segment.time_index.append(*segment.max_timestamp_and_offset())
    taken[0] += indexes.take_offset_index()
    taken[1] += indexes.take_time_index(final=True)
    offsets, times = segment.offset_index, segment.time_index
    assert list(struct.iter_unpack(">II", taken[0])) == [*map(offsets.entry, range(offsets.count))]
    assert list(struct.iter_unpack(">qI", taken[1])) == [*map(times.entry, range(times.count))]
    for name in ("size_bytes", "next_offset", "max_timestamp", "offset_of_max_timestamp"):
        assert getattr(indexes, name) == getattr(segment, name)


# Corrupt bytes


def survive(batch: bytes) -> None:
    """Maps and filters a batch in every way; all errors must be CorruptBatch."""
    offset_map = new_map()
    out = bytearray(3 * len(batch) + 1000)
    with suppress(CorruptBatch):
        _records.map_batches(offset_map, batch, 0, 0)
    offset_map.latest_offset = 1 << 40
    batch_filter = new_filter(offset_map)
    indexes = _indexes.SegmentIndexes(0, 0)
    with suppress(CorruptBatch):
        _, end = batch_filter.filter_batches(batch, 0, out, 0, indexes)
        check_crcs(out[:end])
        for position, _ in iterate_batches(out[:end]):
            read_records(out, position)
    with suppress(CorruptBatch):
        header = read_header(batch)
        records = batch[HEADER_BYTES:]
        count, base_offset = header.record_count, header.base_offset
        with suppress(CorruptBatch):
            _records.map_records(offset_map, records, count, base_offset, 0)
        with suppress(CorruptBatch):
            _records.has_tombstones(records, count)
        batch_filter.filter_records(header, records, out, 0, stamp_marker=True)


def reseal(batch: bytearray) -> bytearray:
    with suppress(CorruptBatch):
        header = read_header(batch)
        if header.size_bytes == len(batch):
            write_header(batch, 0, header)
    return batch


@law
@given(sample_batches(), st.lists(st.tuples(st.integers(0), st.integers(0, 255)), max_size=4))
def test_changed_batches_with_a_valid_checksum_raise_only_corrupt_batch(
    batches: list[SampleBatch], changes: list[tuple[int, int]]
) -> None:
    for sample in batches:
        batch = bytearray(sample.encode())
        for position, byte in changes:
            batch[position % len(batch)] = byte
        survive(reseal(batch))


@pytest.mark.parametrize("horizon_ms", [None, NOW_MS + 1])
@pytest.mark.parametrize("codec", Codec)
def test_edge_values_in_every_byte_raise_only_corrupt_batch(
    codec: Codec, horizon_ms: int | None
) -> None:
    records = [Record(3, 5, b"k", b"v", [("h", b"x")]), Record(4, 5, b"k", None, [])]
    batch = SampleBatch(3, 4, records, horizon_ms=horizon_ms, codec=codec).encode()
    for position in range(len(batch)):
        for byte in EDGE_BYTES:
            changed = bytearray(batch)
            changed[position] = byte
            survive(changed)
            survive(reseal(changed))


@law
@given(st.binary(max_size=200), st.integers(0, 20))
def test_random_records_raise_only_corrupt_batch(noise: bytes, count: int) -> None:
    batch = bytearray(SampleBatch(0, 100).encode()) + noise
    header = read_header(batch)._replace(length=len(batch) - 12, record_count=count)
    write_header(batch, 0, header)
    survive(batch)


@law
@given(sample_batches(), st.randoms(use_true_random=False))
def test_any_changed_byte_is_found_by_the_filter(
    batches: list[SampleBatch], chance: random.Random
) -> None:
    for sample in batches:
        batch = bytearray(sample.encode())
        batch[chance.randrange(17, len(batch))] ^= 1 << chance.randrange(8)
        header = read_header(batch)
        assert not crc_is_valid(batch, 0, header)
        indexes = _indexes.SegmentIndexes(0, 0)
        batch_filter = new_filter(new_map())
        if header.attributes & 0x30 or header.attributes & 7 > max(Codec):
            continue
        with pytest.raises(CorruptBatch, match=f"offset {sample.base_offset} "):
            batch_filter.filter_batches(batch, 0, bytearray(10_000), 0, indexes)
        assert (batch_filter.messages_read, indexes.size_bytes) == (0, 0)


def test_batches_before_a_corrupt_one_are_filtered_first() -> None:
    batches = [SampleBatch(0, 0, [record(0, b"a")]), SampleBatch(1, 1, [record(1, b"b")])]
    source = bytearray(encode(batches))
    source[-1] ^= 1
    size = len(batches[0].encode())
    out, indexes = bytearray(1000), _indexes.SegmentIndexes(0, 0)
    batch_filter = new_filter(mapped(batches))
    assert batch_filter.filter_batches(source, 0, out, 0, indexes) == (size, size)
    with pytest.raises(CorruptBatch, match="offset 1 "):
        batch_filter.filter_batches(source, size, out, size, indexes)
    assert (batch_filter.messages_read, indexes.size_bytes) == (1, size)


@pytest.mark.parametrize(
    "change",
    [
        {"record_count": 3},
        {"record_count": 1},
        {"record_count": -1},
        {"record_count": 0x7FFFFFFF},
        {"last_offset_delta": 0},
        {"last_offset_delta": -1},
        {"base_offset": -1},
        {"base_offset": (1 << 63) - 1},
        {"base_timestamp": (1 << 63) - 1},
        {"length": 12},
        {"length": -1},
    ],
)
def test_headers_that_do_not_match_their_records_are_corrupt(change: dict[str, int]) -> None:
    batch = bytearray(SampleBatch(5, 6, [record(5, b"a"), record(6, b"b", at=101)]).encode())
    header = read_header(batch)._replace(**change)
    write_header(batch, 0, header._replace(length=len(batch) - 12))
    batch[8:12] = struct.pack(">i", header.length)
    with pytest.raises(CorruptBatch):
        _records.map_batches(new_map(), batch, 0, 0)
    out, indexes = bytearray(1000), _indexes.SegmentIndexes(0, 0)
    with pytest.raises(CorruptBatch):
        new_filter(new_map()).filter_batches(batch, 0, out, 0, indexes)


@pytest.mark.parametrize("position", [-1, 1000])
def test_positions_outside_a_buffer_are_errors(position: int) -> None:
    batch = SampleBatch(0, 0, [record(0, b"a")]).encode()
    out, indexes = bytearray(500), _indexes.SegmentIndexes(0, 0)
    batch_filter = new_filter(new_map())
    with pytest.raises(ValueError, match="Position"):
        _records.map_batches(new_map(), batch, position, 0)
    with pytest.raises(ValueError, match="Position"):
        batch_filter.filter_batches(batch, position, out, 0, indexes)
    with pytest.raises(ValueError, match="Position"):
        batch_filter.filter_batches(batch, 0, out, position, indexes)
    with pytest.raises(ValueError, match="fit"):
        batch_filter.filter_records(read_header(batch), batch[61:], out, position)
