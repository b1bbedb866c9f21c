"""A cut or missing segment below the recovery point is found when the log is opened."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from crc32c import crc32c
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.log.log_test_directory import (
    SMALL,
    LogTestDirectory,
    append,
    batch_at,
    fill,
    read_all,
)

from barnabas.log import CorruptLog, LogConfig
from barnabas.wire.errors import ErrorCode

WITHIN_HEADER = 40
"""After the last offset of a batch, and before the number of its records."""
COMPACTED = LogConfig(segment_bytes=4096, index_interval_bytes=256, compact=True)
STOPS = pytest.mark.parametrize("stop", [LogTestDirectory.stop, LogTestDirectory.kill])


def build(log_dir: LogTestDirectory, config: LogConfig = SMALL) -> list[Path]:
    """Writes a log of several flushed segments; returns the closed ones."""
    log = log_dir.create(config)
    fill(log, 120)
    log.flusher.flush()
    log_dir.directory.checkpoint()
    return sorted(log_dir.folder().glob("*.log"))[:-1]


def delete_segment(log: Path) -> None:
    for path in log.parent.glob(f"{log.stem}.*"):
        path.unlink()


def contents(log_dir: LogTestDirectory) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in log_dir.folder().glob("*.log")}


@given(st.data())
@settings(max_examples=40, deadline=None)
def test_a_cut_segment_is_rejected_and_not_changed(
    new_log_dir: Callable[[], LogTestDirectory], data: st.DataObject
) -> None:
    log_dir = new_log_dir()
    cut = data.draw(st.sampled_from(build(log_dir)))
    data.draw(st.sampled_from((log_dir.stop, log_dir.kill)))()
    os.truncate(cut, data.draw(st.integers(0, cut.stat().st_size - 1)))
    before = contents(log_dir)
    log_dir.restart()
    with pytest.raises(CorruptLog) as refused:
        log_dir.open()
    assert refused.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert cut.name in refused.value.message
    assert "move the partition's folder away" in refused.value.message
    assert contents(log_dir) == before
    log_dir.kill()


@STOPS
def test_a_missing_segment_is_rejected(
    log_dir: LogTestDirectory, stop: Callable[[LogTestDirectory], None]
) -> None:
    closed = build(log_dir)
    stop(log_dir)
    delete_segment(closed[2])
    first, last = int(closed[2].stem), int(closed[3].stem) - 1
    log_dir.restart()
    with pytest.raises(CorruptLog, match=f"from offset {first} to {last} are missing") as refused:
        log_dir.open()
    assert closed[1].name in refused.value.message


def test_a_damaged_log_is_reported_when_others_are_recovered(
    log_dir: LogTestDirectory, caplog: pytest.LogCaptureFixture
) -> None:
    closed = build(log_dir)
    fill(log_dir.create(partition=1), 3)
    log_dir.kill()
    delete_segment(closed[1])
    log_dir.restart()
    log_dir.directory.recover_all(lambda topic: SMALL)
    assert "orders-0 cannot be served" in caplog.text
    assert log_dir.directory.unrecovered_partitions() == [("orders", 0)]
    assert len(read_all(log_dir.open(partition=1))) == 3


@STOPS
def test_a_compacted_log_may_have_gaps_between_segments(
    log_dir: LogTestDirectory, stop: Callable[[LogTestDirectory], None]
) -> None:
    closed = build(log_dir, COMPACTED)
    stop(log_dir)
    delete_segment(closed[1])
    log_dir.restart()
    assert log_dir.open(COMPACTED).log_end_offset == 120


@STOPS
def test_a_log_that_was_compacted_once_keeps_its_gaps(
    log_dir: LogTestDirectory, stop: Callable[[LogTestDirectory], None]
) -> None:
    closed = build(log_dir)
    stop(log_dir)
    delete_segment(closed[1])
    (log_dir.path / "cleaner-offset-checkpoint").write_text("0\n1\norders 0 60\n")
    log_dir.restart()
    assert log_dir.open().log_end_offset == 120


def without_records(content: bytes, count: int) -> bytes:
    """Returns a batch as compaction leaves it: with its offsets, but fewer records."""
    batch = bytearray(content[:57] + count.to_bytes(4) + content[61:])
    batch[17:21] = crc32c(bytes(batch[21:])).to_bytes(4)
    return bytes(batch)


@pytest.mark.parametrize(
    "compacted",
    [
        pytest.param(batch_at(0) + batch_at(3), id="gap between batches"),
        pytest.param(without_records(batch_at(0, [b"a", b"b"]), 1), id="batch without a record"),
    ],
)
def test_a_replica_of_a_log_that_was_compacted_once_is_not_rejected(
    log_dir: LogTestDirectory, compacted: bytes
) -> None:
    closed = build(log_dir)
    log_dir.stop()
    closed[0].write_bytes(compacted)
    closed[0].with_suffix(".index").write_bytes(b"")
    log_dir.restart()
    assert log_dir.open().log_end_offset == 120


def test_a_compacted_log_with_a_cut_segment_is_rejected(log_dir: LogTestDirectory) -> None:
    closed = build(log_dir, COMPACTED)
    log_dir.stop()
    os.truncate(closed[1], closed[1].stat().st_size - 10)
    log_dir.restart()
    with pytest.raises(CorruptLog, match=closed[1].name):
        log_dir.open(COMPACTED)


@pytest.mark.parametrize("index", [None, b"", bytes(4096), b"garbage!" * 30, b"odd"])
def test_a_segment_is_not_rejected_for_its_index(
    log_dir: LogTestDirectory, index: bytes | None
) -> None:
    closed = build(log_dir)
    log_dir.stop()
    for path in closed:
        path.with_suffix(".index").unlink()
        if index is not None:
            path.with_suffix(".index").write_bytes(index)
    log_dir.restart()
    assert len(read_all(log_dir.open(), 500)) == 120


def test_a_lost_index_is_rebuilt_once(
    log_dir: LogTestDirectory, caplog: pytest.LogCaptureFixture
) -> None:
    closed = build(log_dir)
    log_dir.stop()
    index = closed[1].with_suffix(".index")
    entries = index.read_bytes()
    index.unlink()
    log_dir.restart()
    log_dir.open()
    assert index.read_bytes() == entries
    caplog.clear()
    log_dir.stop_and_reopen()
    assert "rebuilding" not in caplog.text


def test_a_log_of_many_segments_is_checked_with_a_few_small_reads(
    log_dir: LogTestDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = build(log_dir)
    log_dir.stop()
    log_dir.restart()
    reads: list[int] = []
    real_pread = os.pread

    def pread(fd: int, count: int, position: int) -> bytes:
        reads.append(count)
        return real_pread(fd, count, position)

    monkeypatch.setattr(os, "pread", pread)
    log_dir.open()
    assert len(reads) <= 3 * (len(closed) + 1)
    assert sum(reads) < sum(path.stat().st_size for path in closed) / 4


@pytest.mark.parametrize("config", [SMALL, COMPACTED])
def test_a_first_segment_that_was_lost_is_found_by_the_log_start_offset(
    log_dir: LogTestDirectory, config: LogConfig
) -> None:
    closed = build(log_dir, config)
    log_dir.directory.logs["orders", 0].advance_log_start_offset(7)
    log_dir.stop()
    delete_segment(closed[0])
    log_dir.restart()
    with pytest.raises(CorruptLog, match=f"from offset 7 to {int(closed[1].stem) - 1} are missing"):
        log_dir.open(config)


def test_a_first_segment_that_was_lost_is_found_by_the_leader_epochs(
    log_dir: LogTestDirectory,
) -> None:
    closed = build(log_dir)
    log_dir.stop()
    delete_segment(closed[0])
    log_dir.restart()
    with pytest.raises(CorruptLog, match="records from offset 0 to"):
        log_dir.open()


def test_segments_that_retention_deleted_before_a_crash_are_not_missed(
    log_dir: LogTestDirectory,
) -> None:
    build(log_dir)
    log = log_dir.directory.logs["orders", 0]
    log.advance_log_start_offset(7)
    log_dir.directory.checkpoint()
    log.advance_log_start_offset(50)
    log.maintenance.delete_old_segments(0, 120)
    assert log.segments.base_offset > 7
    reopened = log_dir.kill_and_reopen()
    assert reopened.log_end_offset == 120


def test_a_log_past_its_recovery_point_ends_at_a_missing_segment(
    log_dir: LogTestDirectory, caplog: pytest.LogCaptureFixture
) -> None:
    fill(log_dir.create(), 120)
    log_dir.kill()
    segments = sorted(log_dir.folder().glob("*.log"))
    delete_segment(segments[2])
    log_dir.restart()
    log = log_dir.open()
    assert log.log_end_offset == int(segments[2].stem)
    assert [offset for offset, _ in read_all(log)] == list(range(log.log_end_offset))
    assert f"up to offset {int(segments[3].stem) - 1} are missing" in caplog.text
    assert sorted(log_dir.folder().glob("*.log")) == segments[:2]
    assert append(log, b"next") == int(segments[2].stem)


def test_damage_after_a_missing_segment_is_not_taken_for_compaction(
    log_dir: LogTestDirectory,
) -> None:
    """A power loss may cut one segment between two batches, and leave zeroes in the next."""
    fill(log_dir.create(), 120)
    log_dir.kill()
    first, second, *_ = sorted(log_dir.folder().glob("*.log"))
    os.truncate(first, 0)
    content = second.read_bytes()
    second.write_bytes(content[:WITHIN_HEADER].ljust(len(content), b"\0"))
    log_dir.restart()
    log = log_dir.open()
    assert log.log_end_offset == 0
    assert append(log, b"next") == 0


def test_a_missing_segment_across_the_recovery_point_is_rejected(
    log_dir: LogTestDirectory,
) -> None:
    log = log_dir.create()
    fill(log, 60)
    log.flusher.flush()
    log_dir.directory.checkpoint()
    fill(log, 60)
    log_dir.kill()
    segments = sorted(log_dir.folder().glob("*.log"))
    lost = max(path for path in segments if int(path.stem) < 60)
    delete_segment(lost)
    log_dir.restart()
    with pytest.raises(CorruptLog, match="everything up to offset 60 was on disk"):
        log_dir.open()
    assert len(sorted(log_dir.folder().glob("*.log"))) == len(segments) - 1
