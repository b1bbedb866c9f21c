"""Which part of a log may be cleaned, and which logs are dirty enough."""

import os
from dataclasses import replace

import pytest
from tests.log.cleaner.cleaner_harness import COMPACTED, CleanerHarness

from barnabas.log import LogConfig
from barnabas.log.cleaner.cleanable import (
    MAX_QUIET_MS,
    CleanableRange,
    find_cleanable_range,
    is_idle,
    next_look_ms,
)

A, B, C = b"a", b"b", b"c"
HOUR_MS = 60 * 60 * 1000


def cleanable(
    harness: CleanerHarness, first_dirty_offset: int = 0, *, stable: int | None = None
) -> CleanableRange:
    log = harness.log
    stable = log.log_end_offset if stable is None else stable
    return find_cleanable_range(
        log, first_dirty_offset, last_stable_offset=stable, now_ms=harness.now_ms
    )


def write_segments(harness: CleanerHarness, count: int, *, hours_apart: int = 0) -> None:
    """Writes segments of two records each; the active one is empty then."""
    for _ in range(count):
        harness.write((A, b"1"))
        harness.write((B, b"2"))
        harness.roll()
        harness.now_ms += hours_apart * HOUR_MS


def test_an_empty_log_has_nothing_to_clean(harness: CleanerHarness) -> None:
    found = cleanable(harness)
    assert (found.end_offset, found.clean_bytes, found.cleanable_bytes) == (0, 0, 0)
    assert (found.dirty_ratio, found.must_clean) == (0.0, False)


def test_the_active_segment_is_not_cleaned(harness: CleanerHarness) -> None:
    write_segments(harness, 2)
    harness.write((A, b"3"))
    found = cleanable(harness)
    assert found.end_offset == 4
    assert found.cleanable_bytes == sum(s.size_bytes for s in harness.log.segments.ordered[:2])


@pytest.mark.parametrize(("stable", "end_offset"), [(6, 6), (5, 4), (4, 4), (3, 2), (1, 0), (0, 0)])
def test_only_whole_segments_below_the_last_stable_offset_are_cleaned(
    harness: CleanerHarness, stable: int, end_offset: int
) -> None:
    write_segments(harness, 3)
    assert cleanable(harness, stable=stable).end_offset == end_offset


@pytest.mark.parametrize("first_dirty_offset", [2, 3, 4, 5, 6])
def test_a_segment_that_is_clean_in_part_counts_as_clean_and_as_cleanable(
    harness: CleanerHarness, first_dirty_offset: int
) -> None:
    write_segments(harness, 3)
    size_bytes = harness.log.segments.ordered[0].size_bytes
    found = cleanable(harness, first_dirty_offset)
    assert found.clean_bytes == -(-first_dirty_offset // 2) * size_bytes
    assert found.cleanable_bytes == (3 - first_dirty_offset // 2) * size_bytes


def test_bytes_that_may_not_be_cleaned_are_not_part_of_the_ratio(harness: CleanerHarness) -> None:
    write_segments(harness, 4)
    assert cleanable(harness, 2, stable=4).dirty_ratio == 0.5
    assert cleanable(harness, 2, stable=6).dirty_ratio == 2 / 3


def test_min_compaction_lag_protects_a_segment_and_all_after_it(harness: CleanerHarness) -> None:
    harness.log.config = replace(COMPACTED, min_compaction_lag_ms=2 * HOUR_MS)
    start_ms = harness.now_ms
    write_segments(harness, 2)
    harness.now_ms += HOUR_MS
    write_segments(harness, 1)
    harness.now_ms = start_ms  # older records than those before them
    write_segments(harness, 1)
    harness.now_ms = start_ms + 2 * HOUR_MS - 1
    assert cleanable(harness).end_offset == 0
    harness.now_ms += 1
    assert cleanable(harness).end_offset == 4
    harness.now_ms += HOUR_MS
    assert cleanable(harness).end_offset == 8


def test_min_compaction_lag_tests_only_dirty_segments(harness: CleanerHarness) -> None:
    write_segments(harness, 2)
    harness.log.config = replace(COMPACTED, min_compaction_lag_ms=HOUR_MS)
    assert cleanable(harness, 2).end_offset == 2
    assert cleanable(harness, 4).end_offset == 4


def test_without_timestamps_the_lag_is_that_of_the_file(harness: CleanerHarness) -> None:
    now_ms, harness.now_ms = harness.now_ms, -1
    write_segments(harness, 1)
    harness.log.config = replace(COMPACTED, min_compaction_lag_ms=HOUR_MS)
    harness.now_ms = now_ms
    path = harness.log.segments.ordered[0].path()
    for lag_ms, end_offset in ((HOUR_MS - 1000, 0), (HOUR_MS + 1000, 2)):
        os.utime(path, (0, (now_ms - lag_ms) / 1000))
        assert cleanable(harness).end_offset == end_offset


def test_a_log_must_be_cleaned_once_max_compaction_lag_has_passed(harness: CleanerHarness) -> None:
    write_segments(harness, 2, hours_apart=1)
    harness.log.config = replace(COMPACTED, max_compaction_lag_ms=3 * HOUR_MS)
    harness.now_ms += HOUR_MS
    assert not cleanable(harness).must_clean
    harness.now_ms += 7
    assert cleanable(harness).must_clean
    assert cleanable(harness).overdue_ms == 7
    assert not cleanable(harness, 2).must_clean  # the first segment is clean
    assert not cleanable(harness, 4).must_clean
    harness.now_ms += HOUR_MS
    assert cleanable(harness, 2).overdue_ms == 7


def test_records_that_may_not_be_cleaned_are_overdue_but_need_not_be_cleaned(
    harness: CleanerHarness,
) -> None:
    write_segments(harness, 1)
    harness.log.config = replace(COMPACTED, max_compaction_lag_ms=HOUR_MS)
    harness.now_ms += 2 * HOUR_MS
    found = cleanable(harness, stable=0)
    assert found.overdue_ms == HOUR_MS
    assert not found.must_clean


def test_max_compaction_lag_ignores_batches_without_a_timestamp(harness: CleanerHarness) -> None:
    harness.log.config = replace(COMPACTED, max_compaction_lag_ms=1)
    now_ms, harness.now_ms = harness.now_ms, -1
    write_segments(harness, 1)
    harness.now_ms = now_ms
    assert cleanable(harness).overdue_ms == 0


def test_a_log_that_begins_within_its_active_segment_has_nothing_to_clean(
    harness: CleanerHarness,
) -> None:
    write_segments(harness, 1)
    harness.write((C, b"1"), (C, b"2"), (C, b"3"))
    harness.log.advance_log_start_offset(4)
    found = cleanable(harness, 4)
    assert found.end_offset == 2
    assert found.cleanable_bytes == 0


def test_holes_between_segments_do_not_count(harness: CleanerHarness) -> None:
    """A segment of which nothing is left still has an offset, but no bytes."""
    write_segments(harness, 1)
    harness.write((A, b"3"))
    harness.write((B, b"4"))
    harness.roll_and_clean()
    assert harness.first_dirty_offset() == 4
    assert cleanable(harness, 4).cleanable_bytes == 0
    assert cleanable(harness, 4).dirty_ratio == 0.0


def test_an_active_segment_is_idle_after_max_compaction_lag_or_segment_ms(
    harness: CleanerHarness,
) -> None:
    log = harness.log
    log.config = replace(COMPACTED, segment_ms=2 * HOUR_MS)
    assert not is_idle(log, harness.now_ms + 100 * HOUR_MS)  # it is empty
    harness.write((A, b"1"))
    os.utime(log.segments.active.path(), (0, harness.now_ms / 1000))
    assert not is_idle(log, harness.now_ms + 2 * HOUR_MS)
    assert is_idle(log, harness.now_ms + 2 * HOUR_MS + 1)
    log.config = replace(log.config, max_compaction_lag_ms=HOUR_MS)
    assert not is_idle(log, harness.now_ms + HOUR_MS)
    assert is_idle(log, harness.now_ms + HOUR_MS + 1)


@pytest.mark.parametrize(
    ("config", "quiet_ms"),
    [
        (COMPACTED, MAX_QUIET_MS),
        (replace(COMPACTED, min_compaction_lag_ms=1_000), 1_000),
        (replace(COMPACTED, min_compaction_lag_ms=HOUR_MS), MAX_QUIET_MS),
        (replace(COMPACTED, max_compaction_lag_ms=2_000), 2_000),
        (replace(COMPACTED, min_compaction_lag_ms=3_000, max_compaction_lag_ms=2_000), 2_000),
    ],
)
def test_a_log_that_does_not_change_is_looked_at_when_a_lag_passes(
    harness: CleanerHarness, config: LogConfig, quiet_ms: int
) -> None:
    write_segments(harness, 1)
    harness.log.config = config
    assert next_look_ms(harness.log, 0, harness.now_ms) == harness.now_ms + quiet_ms
