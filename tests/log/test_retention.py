from pathlib import Path

import pytest
from tests.log.workshop import NOW_MS, Workshop, append, fill, read_all

from barnabas.log import Log, LogConfig

HOUR_MS = 3_600_000


def config(**changes: int) -> LogConfig:
    return LogConfig(**{"segment_bytes": 1000, "retention_ms": -1, **changes})


def hourly(log: Log, hours: int) -> None:
    """A segment an hour, the last one an hour before now."""
    for hour in range(hours, 0, -1):
        append(log, b"x", timestamp=NOW_MS - hour * HOUR_MS)
        if hour > 1:
            log.maintenance.roll()


def test_segments_older_than_retention_ms_are_deleted(workshop: Workshop) -> None:
    log = workshop.create(config(retention_ms=3 * HOUR_MS))
    hourly(log, 6)
    assert log.maintenance.delete_old_segments(NOW_MS, log.log_end_offset) == 3
    assert log.log_start_offset == 3
    assert [offset for offset, _ in read_all(log)] == [3, 4, 5]


def test_a_segment_is_as_old_as_its_newest_record(workshop: Workshop) -> None:
    log = workshop.create(config(retention_ms=HOUR_MS))
    append(log, b"old", timestamp=NOW_MS - 9 * HOUR_MS)
    append(log, b"new", timestamp=NOW_MS)
    append(log, b"old", timestamp=NOW_MS - 9 * HOUR_MS)
    log.maintenance.roll()
    assert log.maintenance.delete_old_segments(NOW_MS, log.log_end_offset) == 0


def test_a_young_segment_protects_those_after_it(workshop: Workshop) -> None:
    log = workshop.create(config(retention_ms=HOUR_MS))
    append(log, b"new", timestamp=NOW_MS)
    log.maintenance.roll()
    append(log, b"old", timestamp=NOW_MS - 9 * HOUR_MS)
    log.maintenance.roll()
    assert log.maintenance.delete_old_segments(NOW_MS, log.log_end_offset) == 0


def test_a_log_whose_every_record_is_old_is_emptied(workshop: Workshop) -> None:
    log = workshop.create(config(retention_ms=HOUR_MS))
    hourly(log, 4)
    assert log.maintenance.delete_old_segments(NOW_MS + 2 * HOUR_MS, log.log_end_offset) == 4
    assert (log.log_start_offset, log.log_end_offset) == (4, 4)
    assert log.maintenance.delete_old_segments(NOW_MS + 2 * HOUR_MS, log.log_end_offset) == 0
    assert append(log, b"next") == 4
    assert read_all(workshop.stop_and_reopen()) == [(4, b"next")]


def test_a_log_larger_than_retention_bytes_loses_its_oldest_segments(workshop: Workshop) -> None:
    log = workshop.create(config(retention_bytes=2500))
    fill(log, 50)
    log.maintenance.delete_old_segments(NOW_MS, log.log_end_offset)
    assert 2500 <= log.size_bytes < 3500
    assert read_all(log)[-1][0] == 49


def test_nothing_above_the_high_watermark_is_deleted(workshop: Workshop) -> None:
    log = workshop.create(config(retention_ms=HOUR_MS, retention_bytes=0))
    hourly(log, 6)
    assert log.maintenance.delete_old_segments(NOW_MS, 3) == 3
    assert log.log_start_offset == 3


def test_a_compacted_log_deletes_nothing_by_time_or_size(workshop: Workshop) -> None:
    log = workshop.create(LogConfig(retention_ms=1, retention_bytes=1, delete=False, compact=True))
    hourly(log, 6)
    assert log.maintenance.delete_old_segments(NOW_MS, log.log_end_offset) == 0
    log.advance_log_start_offset(3)
    assert log.maintenance.delete_old_segments(NOW_MS, log.log_end_offset) == 3


def test_records_without_time_are_as_old_as_the_file(workshop: Workshop) -> None:
    log = workshop.create(config(retention_ms=HOUR_MS))
    append(log, b"x", timestamp=-1)
    log.maintenance.roll()
    written_ms = int((workshop.folder() / "00000000000000000000.log").stat().st_mtime * 1000)
    assert log.maintenance.delete_old_segments(written_ms + HOUR_MS, log.log_end_offset) == 0
    assert log.maintenance.delete_old_segments(written_ms + HOUR_MS + 1, log.log_end_offset) == 1


def test_files_are_renamed_first_and_removed_later(workshop: Workshop) -> None:
    log = workshop.create(config(retention_ms=HOUR_MS, delete_delay_ms=60_000))
    hourly(log, 2)
    log.maintenance.delete_old_segments(NOW_MS, log.log_end_offset)
    assert "00000000000000000000.log.deleted" in workshop.files_named("*.deleted")
    assert workshop.files_named("*.log") == ["00000000000000000001.log"]
    assert workshop.directory.delete_due(NOW_MS) == 0
    assert workshop.directory.delete_due(NOW_MS + 59_999) == 0
    assert workshop.directory.delete_due(NOW_MS + 60_000) > 0
    assert workshop.files_named("*.deleted") == []


def test_the_snapshot_of_a_segment_is_deleted_with_it(workshop: Workshop) -> None:
    log = workshop.create(config(retention_ms=HOUR_MS))
    hourly(log, 4)
    log.maintenance.delete_old_segments(NOW_MS, log.log_end_offset)
    assert workshop.files_named("*.snapshot") == ["00000000000000000003.snapshot"]


@pytest.mark.parametrize("stop", ["stop", "kill"])
def test_deleted_segments_stay_deleted_after_a_restart(workshop: Workshop, stop: str) -> None:
    log = workshop.create(config(retention_ms=HOUR_MS))
    hourly(log, 6)
    log.maintenance.delete_old_segments(NOW_MS, log.log_end_offset)
    start = log.log_start_offset
    getattr(workshop, stop)()
    workshop.restart()
    log = workshop.open()
    assert log.log_start_offset == start
    assert workshop.files_named("*.deleted") == []


def test_readers_keep_their_slices_while_segments_are_deleted(
    workshop: Workshop, tmp_path: Path
) -> None:
    log = workshop.create(config(retention_bytes=1000))
    for _ in range(20):
        fill(log, 10)
        log.maintenance.delete_old_segments(NOW_MS, log.log_end_offset)
        assert read_all(log)[-1][0] == log.log_end_offset - 1
