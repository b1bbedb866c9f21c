import struct

import pytest
from tests.log.log_test_directory import (
    NOW_MS,
    LogTestDirectory,
    append,
    batch,
    batch_at,
    fill,
    read_all,
)

from barnabas.log import LogConfig

HOUR_MS = 3_600_000


def test_a_full_segment_is_followed_by_a_new_one(log_dir: LogTestDirectory) -> None:
    log = log_dir.create(LogConfig(segment_bytes=1000))
    fill(log, 20)
    names = log_dir.files_named("*.log")
    assert names[0] == "00000000000000000000.log"
    assert len(names) > 2
    assert all(path.stat().st_size <= 1000 for path in log_dir.folder().glob("*.log"))
    assert len(read_all(log)) == 20


def test_an_old_segment_is_rolled_by_the_time_of_its_records(log_dir: LogTestDirectory) -> None:
    log = log_dir.create(LogConfig(segment_ms=HOUR_MS))
    append(log, b"first", timestamp=NOW_MS)
    append(log, b"within the hour", timestamp=NOW_MS + HOUR_MS)
    assert len(log_dir.files_named("*.log")) == 1
    append(log, b"after it", timestamp=NOW_MS + HOUR_MS + 1)
    assert log_dir.files_named("*.log")[1:] == ["00000000000000000002.log"]


def test_records_without_time_age_by_the_clock(log_dir: LogTestDirectory) -> None:
    log = log_dir.create(LogConfig(segment_ms=HOUR_MS))
    for now_ms in (NOW_MS, NOW_MS, NOW_MS + HOUR_MS, NOW_MS + HOUR_MS + 1):
        log.append_as_leader(batch(timestamp=-1), 0, now_ms)
    assert log_dir.files_named("*.log")[1:] == ["00000000000000000003.log"]


def test_jitter_rolls_partitions_at_different_times(log_dir: LogTestDirectory) -> None:
    config = LogConfig(segment_ms=HOUR_MS, segment_jitter_ms=HOUR_MS)
    rolled = 0
    for partition in range(20):
        log = log_dir.create(config, partition=partition)
        append(log, b"first", timestamp=NOW_MS)
        append(log, b"half an hour later", timestamp=NOW_MS + HOUR_MS // 2)
        rolled += len(list(log_dir.folder(partition=partition).glob("*.log"))) - 1
    assert 0 < rolled < 20


def test_a_full_offset_index_rolls_the_segment(log_dir: LogTestDirectory) -> None:
    log = log_dir.create(LogConfig(index_interval_bytes=0, segment_index_bytes=64))
    fill(log, 40)
    log_dir.stop()
    assert len(log_dir.files_named("*.log")) > 1
    assert all(path.stat().st_size <= 64 for path in log_dir.folder().glob("*.index"))


def test_a_full_time_index_rolls_the_segment_before_its_last_entry(
    log_dir: LogTestDirectory,
) -> None:
    log = log_dir.create(LogConfig(index_interval_bytes=0, segment_index_bytes=60))
    for number in range(40):
        append(log, b"x", timestamp=NOW_MS + number)
    log_dir.stop()
    sizes = [path.stat().st_size for path in sorted(log_dir.folder().glob("*.timeindex"))]
    assert len(sizes) > 5
    assert max(sizes) <= 60


def test_offsets_too_far_from_the_base_begin_a_new_segment(log_dir: LogTestDirectory) -> None:
    log = log_dir.create()
    log.append_as_follower(batch_at(0), NOW_MS)
    log.append_as_follower(batch_at(0x7FFFFFFF), NOW_MS)
    assert len(log_dir.files_named("*.log")) == 1
    log.append_as_follower(batch_at(0x80000000), NOW_MS)
    assert log_dir.files_named("*.log")[1:] == ["00000000002147483648.log"]
    assert [offset for offset, _ in read_all(log)] == [0, 0x7FFFFFFF, 0x80000000]


def test_an_empty_segment_that_is_too_far_away_is_replaced(log_dir: LogTestDirectory) -> None:
    log = log_dir.create()
    log.append_as_follower(batch_at(1 << 40), NOW_MS)
    assert log_dir.files_named("*.log") == [f"{(1 << 40) - 0x7FFFFFFF:020}.log"]
    assert log.log_end_offset == (1 << 40) + 1


def test_rolling_completes_the_time_index_and_writes_a_snapshot(log_dir: LogTestDirectory) -> None:
    log = log_dir.create()
    append(log, b"late", timestamp=NOW_MS + 9)
    append(log, b"early", timestamp=NOW_MS)
    log.maintenance.roll_at(log.log_end_offset)
    entry = (log_dir.folder() / "00000000000000000000.timeindex").read_bytes()
    assert struct.unpack(">qi", entry) == (NOW_MS + 9, 0)
    assert log_dir.files_named("*.snapshot") == ["00000000000000000002.snapshot"]
    assert log.flusher.is_due(NOW_MS)


def test_rolling_an_empty_segment_does_nothing(log_dir: LogTestDirectory) -> None:
    log = log_dir.create()
    log.maintenance.roll_at(log.log_end_offset)
    append(log, b"x")
    log.maintenance.roll_at(log.log_end_offset)
    log.maintenance.roll_at(log.log_end_offset)
    assert log_dir.files_named("*.log") == [
        "00000000000000000000.log",
        "00000000000000000001.log",
    ]


def test_a_preallocated_segment_is_trimmed_when_it_is_sealed(log_dir: LogTestDirectory) -> None:
    config = LogConfig(segment_bytes=100_000, preallocate=True)
    log = log_dir.create(config)
    fill(log, 3)
    log.maintenance.roll_at(log.log_end_offset)
    first, second = sorted(log_dir.folder().glob("*.log"))
    assert first.stat().st_size < 1000
    assert second.stat().st_size == 100_000
    fill(log, 2)
    log = log_dir.stop_and_reopen(config)
    assert second.stat().st_size < 1000
    assert len(read_all(log)) == 5


@pytest.mark.parametrize("preallocate", [False, True])
def test_a_reopened_log_continues_in_its_last_segment(
    log_dir: LogTestDirectory, preallocate: bool
) -> None:
    config = LogConfig(segment_bytes=100_000, preallocate=preallocate)
    fill(log_dir.create(config), 3)
    log = log_dir.stop_and_reopen(config)
    fill(log, 3)
    assert len(read_all(log)) == 6
    assert len(log_dir.files_named("*.log")) == 1
