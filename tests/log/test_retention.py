import logging
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.log.log_test_directory import NOW_MS, LogTestDirectory, append, fill, read_all
from tests.log_records import barnabas_log_records

from barnabas.log import Log, LogConfig

HOUR_MS = 3_600_000


def config(**changes: int) -> LogConfig:
    return LogConfig(**{"segment_bytes": 1000, "retention_ms": -1, **changes})


def hourly(log: Log, hours: int) -> None:
    """A segment an hour, the last one an hour before now."""
    for hour in range(hours, 0, -1):
        append(log, b"x", timestamp=NOW_MS - hour * HOUR_MS)
        if hour > 1:
            log.maintenance.roll_at(log.log_end_offset)


def test_segments_older_than_retention_ms_are_deleted(log_dir: LogTestDirectory) -> None:
    log = log_dir.create(config(retention_ms=3 * HOUR_MS))
    hourly(log, 6)
    assert log.maintenance.delete_old_segments(NOW_MS, log.log_end_offset) == 3
    assert log.log_start_offset == 3
    assert [offset for offset, _ in read_all(log)] == [3, 4, 5]


def test_a_segment_is_as_old_as_its_newest_record(log_dir: LogTestDirectory) -> None:
    log = log_dir.create(config(retention_ms=HOUR_MS))
    append(log, b"old", timestamp=NOW_MS - 9 * HOUR_MS)
    append(log, b"new", timestamp=NOW_MS)
    append(log, b"old", timestamp=NOW_MS - 9 * HOUR_MS)
    log.maintenance.roll_at(log.log_end_offset)
    assert log.maintenance.delete_old_segments(NOW_MS, log.log_end_offset) == 0


def test_a_young_segment_protects_those_after_it(log_dir: LogTestDirectory) -> None:
    log = log_dir.create(config(retention_ms=HOUR_MS))
    append(log, b"new", timestamp=NOW_MS)
    log.maintenance.roll_at(log.log_end_offset)
    append(log, b"old", timestamp=NOW_MS - 9 * HOUR_MS)
    log.maintenance.roll_at(log.log_end_offset)
    assert log.maintenance.delete_old_segments(NOW_MS, log.log_end_offset) == 0


def test_a_log_whose_every_record_is_old_is_emptied(log_dir: LogTestDirectory) -> None:
    log = log_dir.create(config(retention_ms=HOUR_MS))
    hourly(log, 4)
    assert log.maintenance.delete_old_segments(NOW_MS + 2 * HOUR_MS, log.log_end_offset) == 4
    assert (log.log_start_offset, log.log_end_offset) == (4, 4)
    assert log.maintenance.delete_old_segments(NOW_MS + 2 * HOUR_MS, log.log_end_offset) == 0
    assert append(log, b"next") == 4
    assert read_all(log_dir.stop_and_reopen()) == [(4, b"next")]


def test_a_log_larger_than_retention_bytes_loses_its_oldest_segments(
    log_dir: LogTestDirectory,
) -> None:
    log = log_dir.create(config(retention_bytes=2500))
    fill(log, 50)
    log.maintenance.delete_old_segments(NOW_MS, log.log_end_offset)
    assert 2500 <= log.size_bytes < 3500
    assert read_all(log)[-1][0] == 49


def test_nothing_above_the_high_watermark_is_deleted(log_dir: LogTestDirectory) -> None:
    log = log_dir.create(config(retention_ms=HOUR_MS, retention_bytes=0))
    hourly(log, 6)
    assert log.maintenance.delete_old_segments(NOW_MS, 3) == 3
    assert log.log_start_offset == 3


def test_a_compacted_log_deletes_nothing_by_time_or_size(log_dir: LogTestDirectory) -> None:
    log = log_dir.create(LogConfig(retention_ms=1, retention_bytes=1, delete=False, compact=True))
    hourly(log, 6)
    assert log.maintenance.delete_old_segments(NOW_MS, log.log_end_offset) == 0
    log.advance_log_start_offset(3)
    assert log.maintenance.delete_old_segments(NOW_MS, log.log_end_offset) == 3


def test_records_without_time_are_as_old_as_the_file(log_dir: LogTestDirectory) -> None:
    log = log_dir.create(config(retention_ms=HOUR_MS))
    append(log, b"x", timestamp=-1)
    log.maintenance.roll_at(log.log_end_offset)
    written_ms = int((log_dir.folder() / "00000000000000000000.log").stat().st_mtime * 1000)
    assert log.maintenance.delete_old_segments(written_ms + HOUR_MS, log.log_end_offset) == 0
    assert log.maintenance.delete_old_segments(written_ms + HOUR_MS + 1, log.log_end_offset) == 1


def test_files_are_renamed_first_and_removed_later(log_dir: LogTestDirectory) -> None:
    log = log_dir.create(config(retention_ms=HOUR_MS, delete_delay_ms=60_000))
    hourly(log, 2)
    log.maintenance.delete_old_segments(NOW_MS, log.log_end_offset)
    assert "00000000000000000000.log.deleted" in log_dir.files_named("*.deleted")
    assert log_dir.files_named("*.log") == ["00000000000000000001.log"]
    assert log_dir.delete_due(NOW_MS) == 0
    assert log_dir.delete_due(NOW_MS + 59_999) == 0
    assert log_dir.delete_due(NOW_MS + 60_000) > 0
    assert log_dir.files_named("*.deleted") == []


def test_the_snapshot_of_a_segment_is_deleted_with_it(log_dir: LogTestDirectory) -> None:
    log = log_dir.create(config(retention_ms=HOUR_MS))
    hourly(log, 4)
    log.maintenance.delete_old_segments(NOW_MS, log.log_end_offset)
    assert log_dir.files_named("*.snapshot") == ["00000000000000000003.snapshot"]


@pytest.mark.parametrize("stop", ["stop", "kill"])
def test_deleted_segments_stay_deleted_after_a_restart(
    log_dir: LogTestDirectory, stop: str
) -> None:
    log = log_dir.create(config(retention_ms=HOUR_MS))
    hourly(log, 6)
    log.maintenance.delete_old_segments(NOW_MS, log.log_end_offset)
    start = log.log_start_offset
    getattr(log_dir, stop)()
    log_dir.restart()
    log = log_dir.open()
    assert log.log_start_offset == start
    assert log_dir.files_named("*.deleted") == []


def test_readers_keep_their_slices_while_segments_are_deleted(
    log_dir: LogTestDirectory, tmp_path: Path
) -> None:
    log = log_dir.create(config(retention_bytes=1000))
    for _ in range(20):
        fill(log, 10)
        log.maintenance.delete_old_segments(NOW_MS, log.log_end_offset)
        assert read_all(log)[-1][0] == log.log_end_offset - 1


def set_written_ms(log: Log, written_ms: int) -> None:
    """Sets when all segments were last written."""
    for segment in log.segments.ordered:
        os.utime(segment.path(), (written_ms / 1000, written_ms / 1000))


def deletion_line(log: Log, caplog: pytest.LogCaptureFixture, level: int = logging.INFO) -> str:
    """Applies retention; returns the only line of it."""
    with caplog.at_level(logging.INFO, "barnabas.log"):
        log.maintenance.delete_old_segments(NOW_MS, log.log_end_offset)
    (record,) = barnabas_log_records(caplog)
    assert record.levelno == level
    return record.getMessage()


def test_the_line_of_expired_segments_names_them_and_retention_ms(
    log_dir: LogTestDirectory, caplog: pytest.LogCaptureFixture
) -> None:
    log = log_dir.create(config(retention_ms=3 * HOUR_MS))
    hourly(log, 6)
    set_written_ms(log, NOW_MS - 4 * HOUR_MS)
    newest = datetime.fromtimestamp(NOW_MS / 1000 - 4 * 3600, UTC).isoformat(" ", "seconds")
    assert deletion_line(log, caplog) == (
        f"{log.name}: deleting 3 segments with base offsets from 0 to 2 due to log retention time "
        f"10800000ms breach based on the largest record timestamp in the segment ({newest}). "
        "The log starts at offset 3."
    )


def test_the_line_of_records_that_were_old_when_written_says_so(
    log_dir: LogTestDirectory, caplog: pytest.LogCaptureFixture
) -> None:
    log = log_dir.create(config(retention_ms=HOUR_MS))
    append(log, b"x", timestamp=NOW_MS - 2 * HOUR_MS)
    set_written_ms(log, NOW_MS)
    line = deletion_line(log, caplog, logging.WARNING)
    assert "deleting the segment with base offset 0 due to log retention time 3600000ms" in line
    assert "Its records were older than that when they were written" in line
    assert "set message.timestamp.type=LogAppendTime. The log starts at offset 1." in line


def test_the_line_of_segments_without_timestamps_names_the_time_of_the_write(
    log_dir: LogTestDirectory, caplog: pytest.LogCaptureFixture
) -> None:
    log = log_dir.create(config(retention_ms=HOUR_MS))
    append(log, b"x", timestamp=-1)
    set_written_ms(log, NOW_MS - 2 * HOUR_MS)
    assert "breach based on the last modified time of the segment." in deletion_line(log, caplog)


def test_the_line_of_a_log_that_is_too_large_names_its_new_size(
    log_dir: LogTestDirectory, caplog: pytest.LogCaptureFixture
) -> None:
    log = log_dir.create(config(retention_bytes=2500))
    fill(log, 50)
    line = deletion_line(log, caplog)
    assert (
        "due to log retention size 2500 breach. "
        f"Log size after deletion will be {log.size_bytes}. The log starts at" in line
    )


def test_the_line_of_segments_before_the_log_start_offset_names_it(
    log_dir: LogTestDirectory, caplog: pytest.LogCaptureFixture
) -> None:
    log = log_dir.create(config(retention_ms=3 * HOUR_MS))
    hourly(log, 6)
    log.advance_log_start_offset(5)
    assert deletion_line(log, caplog) == (
        f"{log.name}: deleting 5 segments with base offsets from 0 to 4 due to log start offset 5 "
        "breach. The log starts at offset 5."
    )
