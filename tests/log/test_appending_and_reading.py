from collections.abc import Callable
from itertools import accumulate, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.log.log_test_directory import (
    NOW_MS,
    SMALL,
    LogTestDirectory,
    append,
    batch,
    batch_at,
    fill,
    read_all,
    records_in,
    valid,
)

from barnabas.log import LogConfig
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.records.batch import read_header, stamp_append_time

Batches = list[list[bytes]]

batches = st.lists(
    st.lists(st.binary(max_size=300), min_size=1, max_size=5), min_size=1, max_size=30
)


def test_batches_get_consecutive_offsets(log_dir: LogTestDirectory) -> None:
    log = log_dir.create()
    first = log.append_as_leader(batch([b"a", b"b", b"c"]), 0, NOW_MS)
    second = log.append_as_leader(batch([b"d"]), 0, NOW_MS)
    assert (first.first_offset, first.last_offset) == (0, 2)
    assert (second.first_offset, second.last_offset) == (3, 3)
    assert log.log_end_offset == 4
    assert read_all(log) == [(0, b"a"), (1, b"b"), (2, b"c"), (3, b"d")]


def test_the_leader_writes_its_epoch_into_the_batch(log_dir: LogTestDirectory) -> None:
    log = log_dir.create()
    log.append_as_leader(batch(), 7, NOW_MS)
    piece = log.read(0, 1000, upto=1)
    assert piece is not None
    assert read_header(piece.read()).leader_epoch == 7
    assert log.latest_epoch == 7


def test_append_returns_the_append_time_but_not_the_create_time(log_dir: LogTestDirectory) -> None:
    log = log_dir.create()
    assert log.append_as_leader(batch(), 0, NOW_MS).append_time_ms == -1
    stamped = batch().buffer
    stamp_append_time(stamped, 0, NOW_MS + 5)
    appended = log.append_as_leader(valid(bytearray(stamped)), 0, NOW_MS + 5)
    assert appended.append_time_ms == NOW_MS + 5


@given(batches, st.integers(1, 3000))
@settings(max_examples=60, deadline=None)
def test_appended_records_are_read_back(
    new_log_dir: Callable[[], LogTestDirectory], appended: Batches, max_bytes: int
) -> None:
    log = new_log_dir().create()
    for values in appended:
        append(log, *values)
    assert read_all(log, max_bytes) == list(enumerate(v for values in appended for v in values))


@given(batches, st.data())
@settings(max_examples=60, deadline=None)
def test_a_read_returns_whole_batches_within_its_bounds(
    new_log_dir: Callable[[], LogTestDirectory], appended: Batches, data: st.DataObject
) -> None:
    log = new_log_dir().create()
    sizes = []
    for values in appended:
        valid_batch = batch(values)
        sizes.append(len(valid_batch.buffer))
        log.append_as_leader(valid_batch, 0, NOW_MS)
    starts = [0, *accumulate(len(values) for values in appended)]
    for _ in range(10):
        upto = data.draw(st.integers(0, log.log_end_offset))
        offset = data.draw(st.integers(0, upto))
        max_bytes = data.draw(st.integers(0, 6000))
        at_least_one = data.draw(st.booleans())
        piece = log.read(offset, max_bytes, upto=upto, at_least_one=at_least_one)
        first = next(i for i, (_, end) in enumerate(pairwise([*starts, 1 << 60])) if offset < end)
        readable = [i for i in range(first, len(appended)) if starts[i + 1] <= upto]
        if piece is None:
            assert not readable or (not at_least_one and sizes[readable[0]] > max_bytes)
            continue
        records = records_in(piece)
        assert records[0].offset == starts[first] <= offset
        assert records[-1].offset + 1 == piece.next_offset <= upto
        assert piece.size_bytes <= max(max_bytes, sizes[first] if at_least_one else 0)


@given(batches, st.integers(1, 3000), st.integers(100, 2000))
@settings(max_examples=40, deadline=None)
def test_a_read_returns_everything_of_its_segment_that_fits(
    new_log_dir: Callable[[], LogTestDirectory], appended: Batches, max_bytes: int, interval: int
) -> None:
    log = new_log_dir().create(LogConfig(index_interval_bytes=interval))
    sizes = []
    for values in appended:
        valid_batch = batch(values)
        sizes.append(len(valid_batch.buffer))
        log.append_as_leader(valid_batch, 0, NOW_MS)
    piece = log.read(0, max_bytes, upto=log.log_end_offset)
    assert piece is not None
    fitting = [total for total in accumulate(sizes) if total <= max_bytes]
    assert piece.size_bytes == (fitting[-1] if fitting else sizes[0])


def test_a_reader_that_continues_needs_no_scan(
    log_dir: LogTestDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = log_dir.create(LogConfig())
    fill(log, 50)
    piece = log.read(0, 1000, upto=log.log_end_offset)
    assert piece is not None
    monkeypatch.setattr("barnabas.log.segments._search.find_batch", None)
    following = log.read(piece.next_offset, 1000, upto=log.log_end_offset)
    assert following is not None
    assert following.position == piece.size_bytes


def test_a_read_at_the_log_end_offset_returns_nothing(log_dir: LogTestDirectory) -> None:
    log = log_dir.create()
    assert log.read(0, 1000, upto=0) is None
    fill(log, 3)
    assert log.read(3, 1000, upto=3) is None
    assert log.read(2, 1000, upto=2) is None


@pytest.mark.parametrize(("offset", "upto"), [(-1, 5), (1, 5), (6, 5), (11, 10)])
def test_a_read_outside_the_log_is_rejected(
    log_dir: LogTestDirectory, offset: int, upto: int
) -> None:
    log = log_dir.create()
    fill(log, 10)
    log.advance_log_start_offset(2)
    with pytest.raises(KafkaError) as refused:
        log.read(offset, 1000, upto=upto)
    assert refused.value.code is ErrorCode.OFFSET_OUT_OF_RANGE
    assert "orders-0" in refused.value.message


def test_a_slice_outlives_its_segment(log_dir: LogTestDirectory) -> None:
    log = log_dir.create()
    fill(log, 100)
    piece = log.read(0, 1000, upto=log.log_end_offset)
    assert piece is not None
    expected = piece.read()
    log.advance_log_start_offset(90)
    assert log.maintenance.delete_old_segments(NOW_MS, log.log_end_offset) > 0
    log_dir.delete_due(NOW_MS)
    log_dir.delete_due(NOW_MS + SMALL.delete_delay_ms)
    assert log_dir.files_named("*.deleted") == []
    assert piece.read() == expected


def test_a_batch_larger_than_a_segment_is_rejected(log_dir: LogTestDirectory) -> None:
    log = log_dir.create()
    with pytest.raises(KafkaError) as refused:
        append(log, b"x" * 5000)
    assert refused.value.code is ErrorCode.RECORD_LIST_TOO_LARGE
    assert log.log_end_offset == 0


def test_a_follower_keeps_offsets_and_epochs(log_dir: LogTestDirectory) -> None:
    log = log_dir.create()
    log.append_as_follower(
        batch_at(0, [b"a", b"b"], leader_epoch=3) + batch_at(2, [b"c"], 5), NOW_MS
    )
    assert read_all(log) == [(0, b"a"), (1, b"b"), (2, b"c")]
    assert log.epoch_end_offset(3) == (3, 2)
    assert log.epoch_end_offset(5) == (5, 3)


def test_a_follower_accepts_gaps_and_ignores_an_incomplete_batch(log_dir: LogTestDirectory) -> None:
    log = log_dir.create()
    log.append_as_follower(batch_at(0) + batch_at(10) + batch_at(11)[:-1], NOW_MS)
    assert log.log_end_offset == 11
    assert [offset for offset, _ in read_all(log)] == [0, 10]
    piece = log.read(5, 1000, upto=11)
    assert [record.offset for record in records_in(piece)] == [10]


def test_a_follower_rejects_batches_it_has_already(log_dir: LogTestDirectory) -> None:
    log = log_dir.create()
    log.append_as_follower(batch_at(0) + batch_at(1), NOW_MS)
    with pytest.raises(KafkaError) as refused:
        log.append_as_follower(batch_at(1), NOW_MS)
    assert refused.value.code is ErrorCode.OFFSET_OUT_OF_RANGE
    assert log.log_end_offset == 2


def test_a_follower_rejects_damaged_batches_and_appends_none(log_dir: LogTestDirectory) -> None:
    log = log_dir.create()
    damaged = bytearray(batch_at(0) + batch_at(1))
    damaged[-1] ^= 1
    with pytest.raises(KafkaError) as refused:
        log.append_as_follower(damaged, NOW_MS)
    assert refused.value.code is ErrorCode.CORRUPT_MESSAGE
    assert log.log_end_offset == 0


def test_a_fetch_larger_than_a_segment_is_spread_over_several(log_dir: LogTestDirectory) -> None:
    log = log_dir.create()
    log.append_as_follower(b"".join(batch_at(i, [b"x" * 500]) for i in range(40)), NOW_MS)
    assert [offset for offset, _ in read_all(log)] == list(range(40))
    assert len(log_dir.files_named("*.log")) > 4
    assert all(path.stat().st_size <= 4096 for path in log_dir.folder().glob("*.log"))
