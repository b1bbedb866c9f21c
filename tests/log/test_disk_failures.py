"""A disk that refuses must not leave half a batch where it could be served."""

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.log.log_test_directory import (
    NOW_MS,
    SMALL,
    TOPIC_ID,
    LogTestDirectory,
    append,
    batch,
    batch_at,
    fill,
    numbered,
    read_all,
)
from tests.os_faults import fault_in_this_thread

from barnabas.log import DirectoryInUse, LogDirectory, LogDirFailure

FULL = OSError(errno.ENOSPC, "No space left on device")
real_pwrite = os.pwrite


def short_then_full(written: int) -> Callable[[int, bytes, int], int]:
    """A disk that takes so many bytes of the next write, and then no more."""
    left = [written]

    def pwrite(fd: int, content: bytes, position: int) -> int:
        if left[0] == 0:
            raise FULL
        count = real_pwrite(fd, bytes(content)[: left[0]], position)
        left[0] -= count
        return count

    return pwrite


@pytest.mark.parametrize("written", [0, 1, 30, 100])
def test_a_batch_that_does_not_fit_the_disk_is_undone(
    log_dir: LogTestDirectory, monkeypatch: pytest.MonkeyPatch, written: int
) -> None:
    log = log_dir.create()
    fill(log, 5)
    path = log_dir.folder() / "00000000000000000000.log"
    size_bytes = path.stat().st_size
    monkeypatch.setattr(os, "pwrite", fault_in_this_thread("pwrite", short_then_full(written)))
    with pytest.raises(LogDirFailure, match="No space left") as failed:
        append(log, b"x" * 100)
    assert failed.value.errno == errno.ENOSPC
    assert failed.value.directory == str(log_dir.path)
    assert str(log_dir.path) in str(failed.value)
    assert log_dir.directory.failed is None
    assert path.stat().st_size == size_bytes
    monkeypatch.undo()
    assert append(log, b"there is space again") == 5
    assert len(read_all(log)) == 6


def test_a_failed_append_does_not_change_producer_state(
    log_dir: LogTestDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = log_dir.create()
    monkeypatch.setattr(os, "pwrite", fault_in_this_thread("pwrite", short_then_full(20)))
    with pytest.raises(LogDirFailure):
        log.append_as_leader(numbered(1, 0, 0), 0, NOW_MS)
    monkeypatch.undo()
    assert not log.append_as_leader(numbered(1, 0, 0), 0, NOW_MS).duplicate


def test_a_follower_undoes_a_write_that_does_not_fit(
    log_dir: LogTestDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = log_dir.create()
    monkeypatch.setattr(os, "pwrite", fault_in_this_thread("pwrite", short_then_full(90)))
    with pytest.raises(LogDirFailure):
        log.append_as_follower(batch_at(0) + batch_at(1), NOW_MS)
    assert log.log_end_offset == 0
    monkeypatch.undo()
    log.append_as_follower(batch_at(0) + batch_at(1), NOW_MS)
    assert len(read_all(log)) == 2


def test_a_partial_write_is_completed(
    log_dir: LogTestDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        os,
        "pwrite",
        fault_in_this_thread("pwrite", lambda fd, b, at: real_pwrite(fd, bytes(b)[:17], at)),
    )
    log = log_dir.create()
    append(log, b"x" * 100)
    assert read_all(log) == [(0, b"x" * 100)]


def test_a_directory_in_which_a_write_cannot_be_undone_has_failed(
    log_dir: LogTestDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = log_dir.create()

    def refuse(*_: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "pwrite", fault_in_this_thread("pwrite", short_then_full(10)))
    monkeypatch.setattr(os, "ftruncate", fault_in_this_thread("ftruncate", refuse))
    with pytest.raises(LogDirFailure) as failed:
        append(log, b"x")
    assert log_dir.directory.failed is failed.value
    assert log.log_end_offset == 0
    monkeypatch.undo()
    log_dir.stop()
    assert not (log_dir.path / ".kafka_cleanshutdown").exists()
    log_dir.restart()
    assert log_dir.open().log_end_offset == 0


def test_a_segment_that_cannot_be_created_leaves_the_log_as_it_was(
    log_dir: LogTestDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = log_dir.create()
    fill(log, 20)
    real_open = os.open

    def refuse(path: str, *more: int) -> int:
        if path.endswith(".log"):
            raise FULL
        return real_open(path, *more)

    monkeypatch.setattr(os, "open", fault_in_this_thread("open", refuse))
    with pytest.raises(LogDirFailure):
        fill(log, 100)
    monkeypatch.undo()
    end = log.log_end_offset
    assert append(log, b"continues") == end
    assert len(read_all(log)) == end + 1


def test_index_entries_stay_in_memory_while_the_disk_is_full(
    log_dir: LogTestDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = log_dir.create()

    def log_only(fd: int, content: bytes, position: int) -> int:
        if Path(f"/proc/self/fd/{fd}").readlink().name.endswith("index"):
            raise FULL
        return real_pwrite(fd, content, position)

    log.config = SMALL.__class__(index_interval_bytes=0)
    log.truncate_fully_and_start_at(0)
    monkeypatch.setattr(os, "pwrite", fault_in_this_thread("pwrite", log_only))
    fill(log, 300)
    monkeypatch.undo()
    assert len(read_all(log, 500)) == 300
    assert len(read_all(log_dir.stop_and_reopen(log.config), 500)) == 300


def test_a_sync_that_fails_fails_the_directory(
    log_dir: LogTestDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = log_dir.create()
    fill(log, 3)

    def refuse(fd: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "fdatasync", fault_in_this_thread("fdatasync", refuse))
    with pytest.raises(LogDirFailure):
        log.flusher.flush()
    assert log_dir.directory.failed is not None
    assert log.recovery_point == 0


def test_one_failed_directory_does_not_affect_the_others(tmp_path: Path) -> None:
    good, bad = LogTestDirectory(tmp_path / "good"), LogTestDirectory(tmp_path / "bad")
    log = good.create()
    deleted = bad.create()
    bad.directory.failed = LogDirFailure(str(bad.path), FULL)
    append(log, b"fine")
    bad.directory.close()
    assert len(read_all(log)) == 1
    assert deleted.log_end_offset == 0
    good.directory.close()


def test_a_folder_that_cannot_be_read_is_a_failure_of_the_directory(
    log_dir: LogTestDirectory,
) -> None:
    with pytest.raises(LogDirFailure):
        log_dir.directory.open_log("nowhere", 0, TOPIC_ID, SMALL)


def test_a_directory_opens_only_once(log_dir: LogTestDirectory) -> None:
    with pytest.raises(LogDirFailure, match="another broker") as refused:
        LogDirectory.open(log_dir.path)
    assert isinstance(refused.value.__cause__, DirectoryInUse)


def test_flushing_is_due_by_number_and_by_time(log_dir: LogTestDirectory) -> None:
    log = log_dir.create(SMALL.__class__(flush_messages=3, flush_ms=1000))
    assert not log.flusher.is_due(NOW_MS)
    fill(log, 2)
    assert not log.flusher.is_due(NOW_MS + 999)
    assert log.flusher.is_due(NOW_MS + 1000)
    fill(log, 1)
    assert log.flusher.is_due(NOW_MS)
    log.flusher.flush()
    assert log.recovery_point == 3
    assert not log.flusher.is_due(NOW_MS + 5000)
    log.append_as_leader(batch(), 0, NOW_MS + 5000)
    assert not log.flusher.is_due(NOW_MS + 5999)
    assert log.flusher.is_due(NOW_MS + 6000)


def test_records_appended_during_a_flush_are_not_covered_by_it(log_dir: LogTestDirectory) -> None:
    log = log_dir.create()
    fill(log, 3)
    flush = log.flusher.begin()
    fill(log, 60)
    flush.sync()
    log.flusher.finish(flush)
    assert log.recovery_point == 3
    assert log.flusher.is_due(NOW_MS)
