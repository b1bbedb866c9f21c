from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.log.log_test_directory import NOW_MS, SMALL, LogTestDirectory, append, batch, fill, valid

from barnabas.log.errors import IndexMismatch
from barnabas.wire.records.batch import stamp_append_time
from barnabas.wire.records.build import build_batch
from barnabas.wire.records.compression import Codec
from barnabas.wire.records.record import Record

times = st.lists(st.lists(st.integers(0, 60), min_size=1, max_size=4), min_size=1, max_size=60)


@given(times, st.integers(-1, 61), st.integers(0, 20), st.booleans())
@settings(max_examples=60, deadline=None)
def test_lookups_by_time_equal_a_linear_scan(
    new_log_dir: Callable[[], LogTestDirectory],
    times: list[list[int]],
    target: int,
    start: int,
    reopened: bool,
) -> None:
    log_dir = new_log_dir()
    log = log_dir.create()
    for timestamps in times:
        records = [Record(0, timestamp, None, b"v" * 30, []) for timestamp in timestamps]
        log.append_as_leader(valid(build_batch(records, codec=Codec.LZ4)), 0, NOW_MS)
    log.advance_log_start_offset(min(start, log.log_end_offset))
    if reopened:
        log = log_dir.stop_and_reopen()
    flat = [
        (timestamp, offset)
        for offset, timestamp in enumerate(t for timestamps in times for t in timestamps)
        if offset >= log.log_start_offset
    ]
    expected = next(((t, offset, 0) for t, offset in flat if t >= target), None)
    assert log.search_timestamps().offset_for_timestamp(target) == expected
    assert log.offset_for_timestamp(target) == expected


@given(times, st.integers(0, 60))
@settings(max_examples=60, deadline=None)
def test_the_largest_timestamp_is_found(
    new_log_dir: Callable[[], LogTestDirectory], times: list[list[int]], start: int
) -> None:
    log = new_log_dir().create()
    for timestamps in times:
        records = [Record(0, timestamp, None, b"v" * 30, []) for timestamp in timestamps]
        log.append_as_leader(valid(build_batch(records)), 0, NOW_MS)
    log.advance_log_start_offset(min(start, log.log_end_offset))
    flat = [timestamp for timestamps in times for timestamp in timestamps]
    kept = flat[log.log_start_offset :]
    expected = (max(kept), log.log_start_offset + kept.index(max(kept)), 0) if kept else None
    assert log.search_timestamps().offset_of_max_timestamp() == expected
    assert log.offset_of_max_timestamp() == expected


def test_an_empty_log_has_no_times(log_dir: LogTestDirectory) -> None:
    log = log_dir.create()
    assert log.offset_for_timestamp(0) is None
    assert log.offset_of_max_timestamp() is None


def test_records_without_time_are_not_found_by_time(log_dir: LogTestDirectory) -> None:
    log = log_dir.create()
    append(log, b"x", timestamp=-1)
    assert log.offset_for_timestamp(0) is None
    assert log.offset_of_max_timestamp() is None


def test_lookups_use_the_append_time_of_log_append_time_batches(log_dir: LogTestDirectory) -> None:
    log = log_dir.create()
    content = bytearray(batch([b"a", b"b"], timestamp=5).buffer)
    stamp_append_time(content, 0, NOW_MS)
    log.append_as_leader(valid(content), 3, NOW_MS)
    assert log.offset_for_timestamp(NOW_MS) == (NOW_MS, 0, 3)
    assert log.offset_for_timestamp(6) == (NOW_MS, 0, 3)


def test_the_largest_timestamp_is_known_after_clean_and_unclean_shutdowns(
    log_dir: LogTestDirectory,
) -> None:
    log = log_dir.create()
    append(log, b"late", timestamp=NOW_MS + 1000)
    fill(log, 100)
    expected = (NOW_MS + 1000, 0, 0)
    assert log.offset_of_max_timestamp() == expected
    assert log_dir.stop_and_reopen(SMALL).offset_of_max_timestamp() == expected
    assert log_dir.kill_and_reopen(SMALL).offset_of_max_timestamp() == expected


def test_a_search_changes_no_file_and_no_segment(log_dir: LogTestDirectory) -> None:
    fill(log_dir.create(), 100)
    log = log_dir.stop_and_reopen()
    before = {path: path.read_bytes() for path in log_dir.folder().iterdir()}
    assert log.search_timestamps().offset_for_timestamp(0) == (NOW_MS, 0, 0)
    assert before == {path: path.read_bytes() for path in log_dir.folder().iterdir()}
    assert all(segment.handle is None for segment in log.segments.ordered[:-1])


def test_the_next_search_knows_the_largest_timestamps(log_dir: LogTestDirectory) -> None:
    fill(log_dir.create(), 100)
    log = log_dir.stop_and_reopen()
    search = log.search_timestamps()
    assert search.offset_for_timestamp(NOW_MS + 1) is None
    search.finish()
    for path in log_dir.folder().glob("*.timeindex"):
        path.unlink()
    assert log.search_timestamps().offset_for_timestamp(NOW_MS + 1) is None


def test_a_search_leaves_damaged_indexes_to_the_log(log_dir: LogTestDirectory) -> None:
    fill(log_dir.create(), 100)
    log = log_dir.stop_and_reopen()
    index = min(log_dir.folder().glob("*.index"))
    index.write_bytes(index.read_bytes()[:-1])
    with pytest.raises(IndexMismatch):
        log.search_timestamps().offset_for_timestamp(0)
    assert log.offset_for_timestamp(0) == (NOW_MS, 0, 0)
    assert log.search_timestamps().offset_for_timestamp(0) == (NOW_MS, 0, 0)


def test_a_search_creates_no_file_of_a_deleted_segment(log_dir: LogTestDirectory) -> None:
    log = log_dir.create()
    fill(log, 100)
    search = log.search_timestamps()
    log.truncate_fully_and_start_at(1000)
    with pytest.raises(FileNotFoundError):
        search.offset_for_timestamp(0)
    assert not (log_dir.folder() / f"{0:020d}.log").exists()
