from collections.abc import Callable

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
)

from barnabas.log import LogConfig


@given(
    st.lists(st.integers(1, 5), min_size=1, max_size=60), st.integers(0, 200), st.integers(0, 20)
)
@settings(max_examples=50, deadline=None)
def test_a_truncated_log_is_a_prefix_and_accepts_appends(
    new_log_dir: Callable[[], LogTestDirectory], counts: list[int], offset: int, more: int
) -> None:
    log_dir = new_log_dir()
    log = log_dir.create(LogConfig(segment_bytes=1000, index_interval_bytes=100))
    boundaries = [0]
    for count in counts:
        append(log, *[b"old" * 20] * count)
        boundaries.append(log.log_end_offset)
    log.truncate_to(offset)
    end = max(boundary for boundary in boundaries if boundary <= offset)
    assert log.log_end_offset == end
    for _ in range(more):
        append(log, b"new")
    expected = [(i, b"old" * 20) for i in range(end)]
    expected += [(end + i, b"new") for i in range(more)]
    assert read_all(log, 200) == expected
    assert read_all(log_dir.kill_and_reopen(log.config)) == expected


def test_the_largest_timestamp_is_truncated_with_its_record(log_dir: LogTestDirectory) -> None:
    log = log_dir.create()
    append(log, b"a", timestamp=NOW_MS)
    append(log, b"b", timestamp=NOW_MS + 5)
    append(log, b"c", timestamp=NOW_MS + 2)
    log.truncate_to(1)
    found = log.offset_of_max_timestamp()
    assert found is not None
    assert (found.timestamp, found.offset) == (NOW_MS, 0)
    assert log.offset_for_timestamp(NOW_MS + 1) is None


def test_epochs_beyond_a_truncation_are_removed(log_dir: LogTestDirectory) -> None:
    log = log_dir.create()
    for epoch in (1, 2, 3):
        log.append_as_leader(batch([b"x"] * 2), epoch, NOW_MS)
    log.truncate_to(4)
    assert log.latest_epoch == 2
    assert log.epoch_end_offset(2) == (2, 4)


def test_the_recovery_point_never_exceeds_the_end(log_dir: LogTestDirectory) -> None:
    log = log_dir.create()
    fill(log, 10)
    log.flusher.flush()
    log.truncate_to(4)
    assert log.recovery_point == 4


def test_a_flush_that_a_truncation_overtook_does_not_move_the_recovery_point(
    log_dir: LogTestDirectory,
) -> None:
    log = log_dir.create()
    fill(log, 10)
    flush = log.flusher.begin()
    log.truncate_to(4)
    fill(log, 10)
    flush.sync()
    log.flusher.finish(flush)
    assert log.recovery_point == 0


def test_a_log_can_restart_at_any_offset(log_dir: LogTestDirectory) -> None:
    log = log_dir.create()
    fill(log, 100)
    log.truncate_fully_and_start_at(5000)
    assert (log.log_start_offset, log.log_end_offset, log.size_bytes) == (5000, 5000, 0)
    assert log.latest_epoch == -1
    log.append_as_follower(batch_at(5000, leader_epoch=4), NOW_MS)
    assert read_all(log) == [(5000, b"value")]
    log = log_dir.stop_and_reopen()
    assert (log.log_start_offset, log.log_end_offset) == (5000, 5001)
    assert log_dir.files_named("*.log") == ["00000000000000005000.log"]


def test_truncating_below_the_first_segment_empties_the_log(log_dir: LogTestDirectory) -> None:
    log = log_dir.create()
    log.truncate_fully_and_start_at(100)
    log.append_as_follower(batch_at(100), NOW_MS)
    log.truncate_to(50)
    assert (log.log_start_offset, log.log_end_offset) == (50, 50)


def test_records_can_be_deleted_from_the_start(log_dir: LogTestDirectory) -> None:
    log = log_dir.create()
    fill(log, 100)
    log.advance_log_start_offset(42)
    assert read_all(log)[0][0] == 42
    log = log_dir.stop_and_reopen()
    assert log.log_start_offset == 42
    assert log.maintenance.delete_old_segments(NOW_MS, 100) > 0
    assert int(log_dir.files_named("*.log")[0][:20]) <= 42
    assert log.log_start_offset == 42
    assert read_all(log)[0][0] == 42


def test_the_epoch_at_the_start_begins_there(log_dir: LogTestDirectory) -> None:
    log = log_dir.create()
    for epoch in (1, 2, 3):
        log.append_as_leader(batch([b"x"] * 2), epoch, NOW_MS)
    log.advance_log_start_offset(3)
    assert log.leader_epochs.entries == ((2, 3), (3, 4))


def test_the_index_of_a_truncated_segment_is_correct_after_new_appends(
    log_dir: LogTestDirectory,
) -> None:
    log = log_dir.create(SMALL)
    fill(log, 60)
    log.truncate_to(7)
    fill(log, 60, b"y" * 90)
    assert [offset for offset, _ in read_all(log, 250)] == list(range(67))
    for offset in range(67):
        piece = log.read(offset, 1, upto=67)
        assert piece is not None
        assert piece.next_offset == offset + 1
