"""After a crash every log of a directory is recovered quickly, and a second crash is safe."""

import errno
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.log.log_test_directory import (
    NOW_MS,
    SMALL,
    TOPIC_ID,
    LogTestDirectory,
    append,
    batch,
    fill,
    numbered,
    read_all,
)
from tests.os_faults import fault_in_this_thread

from barnabas.log import CorruptLog, LogConfig, LogDirectory
from barnabas.log.checkpoint_file import read_offsets
from barnabas.log.segments.segment import SHORT_BYTES

ONE_SEGMENT = LogConfig(index_interval_bytes=256)
CHANGES = ("ftruncate", "truncate", "unlink", "pwrite", "replace", "rename")


class Killed(BaseException):
    """The process ends here."""


@contextmanager
def killed_at_change(number: int) -> Iterator[list[str]]:
    """Ends the process at a change of its files; yields the changes before."""
    changes: list[str] = []

    def counted(name: str) -> Callable[..., Any]:
        real = getattr(os, name)

        def change(*args: Any, **kwargs: Any) -> Any:
            if len(changes) == number:
                raise Killed
            changes.append(name)
            return real(*args, **kwargs)

        return fault_in_this_thread(name, change)

    with pytest.MonkeyPatch.context() as patch:
        for name in CHANGES:
            patch.setattr(os, name, counted(name))
        yield changes


def recovery_points(log_dir: LogTestDirectory) -> dict[tuple[str, int], int]:
    return read_offsets(str(log_dir.path / "recovery-point-offset-checkpoint"))


def fill_long(log_dir: LogTestDirectory) -> None:
    """Writes a log that is too long to be read again when it is opened."""
    log = log_dir.create(ONE_SEGMENT)
    for sequence in range(12):
        stamped = numbered(7, 0, sequence, timestamp=NOW_MS + sequence)
        log.append_as_leader(stamped, 3, NOW_MS)
        log.append_as_leader(batch([bytes(SHORT_BYTES // 6)]), 3, NOW_MS)


def test_a_second_crash_during_recovery_is_safe(tmp_path: Path) -> None:
    origin = LogTestDirectory(tmp_path / "origin")
    log = origin.create()
    for sequence in range(60):
        log.append_as_leader(numbered(1, 0, sequence), 0, NOW_MS)
        append(log, b"x" * 100)
    origin.kill()
    damaged = sorted(origin.folder().glob("*.log"))[1]
    content = bytearray(damaged.read_bytes())
    content[-1] ^= 1
    damaged.write_bytes(content)

    def recover(killed_at: int) -> tuple[object, ...]:
        path = tmp_path / f"killed-at-{killed_at}"
        shutil.copytree(origin.path, path)
        directory = LogDirectory.open(path)
        with killed_at_change(killed_at):
            try:
                directory.recover_all(lambda topic: SMALL)
            except Killed:
                pass
            else:
                finished.append(killed_at)
        directory.close(clean=False)
        directory = LogDirectory.open(path)
        log = directory.open_log("orders", 0, TOPIC_ID, SMALL)
        producer = log.producers.entries[1]
        found = (log.log_end_offset, read_all(log), producer.batches, log.leader_epochs.entries)
        directory.close(clean=False)
        return found

    finished: list[int] = []
    expected = recover(10_000)
    finished.clear()
    for number in range(1000):
        assert recover(number) == expected
        if finished:
            break
    assert finished
    assert finished[0] > 5


def test_recovering_short_logs_writes_and_syncs_nothing(
    log_dir: LogTestDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    for partition in range(5):
        log = log_dir.create(partition=partition)
        log.append_as_leader(numbered(1, 0, 0), 2, NOW_MS)
    log_dir.kill()
    log_dir.restart()
    before = sorted(log_dir.path.rglob("*"))
    for name in ("fsync", "fdatasync"):
        monkeypatch.setattr(os, name, fault_in_this_thread(name, lambda fd: pytest.fail("synced")))
    with killed_at_change(0):
        log_dir.directory.recover_all(lambda topic: SMALL)
    assert log_dir.directory.unrecovered_partitions() == []
    assert sorted(log_dir.path.rglob("*")) == before
    for partition in range(5):
        log = log_dir.open(partition=partition)
        assert log.log_end_offset == 1
        assert log.leader_epochs.entries == ((2, 0),)
        assert log.append_as_leader(numbered(1, 0, 0), 2, NOW_MS).duplicate
        assert log.offset_for_timestamp(NOW_MS) is not None


@pytest.mark.parametrize("long", [True, False])
def test_a_recovered_log_is_on_disk_only_after_a_flush(
    log_dir: LogTestDirectory, long: bool
) -> None:
    if long:
        fill_long(log_dir)
    else:
        fill(log_dir.create(ONE_SEGMENT), 3)
    log_dir.kill()
    log_dir.restart()
    log_dir.directory.recover_all(lambda topic: ONE_SEGMENT)
    log_dir.directory.checkpoint()
    assert recovery_points(log_dir) == {("orders", 0): 0}
    log = log_dir.open(ONE_SEGMENT)
    assert log.recovery_point == 0
    log.flusher.flush()
    log_dir.directory.checkpoint()
    assert recovery_points(log_dir) == {("orders", 0): log.log_end_offset}


def test_a_recovered_log_keeps_its_producers_epochs_and_timestamps(
    log_dir: LogTestDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill_long(log_dir)
    log_dir.kill()
    log_dir.restart()
    log_dir.directory.recover_all(lambda topic: ONE_SEGMENT)
    monkeypatch.setattr("barnabas.log.tail_recovery.ValidBatches", None)
    monkeypatch.setattr("barnabas.log.producers.replay.replay_batch", None)
    log = log_dir.open(ONE_SEGMENT)
    assert log.log_end_offset == 24
    assert log.producers.entries[7].last_sequence == 11
    assert len(log.producers.entries[7].batches) == 5
    assert log.latest_epoch == 3
    found = log.offset_of_max_timestamp()
    assert found is not None
    assert found.offset == 22


def test_a_flush_of_what_was_recovered_is_due(log_dir: LogTestDirectory) -> None:
    fill(log_dir.create(), 3)
    log = log_dir.kill_and_reopen()
    assert log.flusher.is_due(NOW_MS)
    log.flusher.flush()
    fill(log, 1)
    assert not log.flusher.is_due(NOW_MS)
    assert not log_dir.stop_and_reopen().flusher.is_due(NOW_MS)


def test_recovered_logs_are_synced_a_few_at_a_time(log_dir: LogTestDirectory) -> None:
    for partition in range(5):
        fill(log_dir.create(partition=partition), 3)
    log_dir.kill()
    log_dir.restart()
    directory = log_dir.directory
    directory.recover_all(lambda topic: SMALL)
    while sync := directory.begin_sync(2):
        assert len(sync) <= 2
        sync.run()
        directory.finish_sync(sync)
    directory.checkpoint()
    assert recovery_points(log_dir) == {("orders", number): 3 for number in range(5)}
    assert log_dir.open().recovery_point == 3


def test_a_sync_does_not_move_the_recovery_point_of_a_log_that_was_opened_or_deleted(
    log_dir: LogTestDirectory,
) -> None:
    for partition in range(2):
        fill(log_dir.create(partition=partition), 3)
    log_dir.kill()
    log_dir.restart()
    directory = log_dir.directory
    directory.recover_all(lambda topic: SMALL)
    sync = directory.begin_sync()
    log_dir.open(partition=0).truncate_to(1)
    directory.delete_log(log_dir.open(partition=1))
    sync.run()
    directory.finish_sync(sync)
    directory.checkpoint()
    assert recovery_points(log_dir) == {("orders", 0): 0}


def test_a_flush_includes_every_file_that_recovery_wrote(log_dir: LogTestDirectory) -> None:
    fill(log_dir.create(), 60)
    log_dir.kill()
    log_dir.restart()
    log_dir.directory.recover_all(lambda topic: SMALL)
    log = log_dir.open()
    recovered = {str(path) for path in log_dir.folder().iterdir()}
    flush = log.flusher.begin()
    logs = {str(path) for path in log_dir.folder().glob("*.log")}
    assert len(flush.log_files) == len(logs)
    metadata = str(log_dir.folder() / "partition.metadata")
    snapshots = {path for path in recovered if path.endswith(".snapshot")}
    assert recovered - logs - snapshots - {metadata} <= set(flush.other_paths)
    assert str(log_dir.folder()) in flush.other_paths


def test_a_clean_shutdown_syncs_recovered_logs_that_were_not_opened(
    log_dir: LogTestDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    for partition in range(3):
        fill(log_dir.create(partition=partition), 60)
    log_dir.kill()
    log_dir.restart()
    log_dir.directory.recover_all(lambda topic: SMALL)
    log_dir.directory.delete_log(log_dir.open(partition=2))
    synced: set[str] = set()
    real_fsync = os.fsync

    def fsync(fd: int) -> None:
        synced.add(str(Path(f"/proc/self/fd/{fd}").readlink()))
        real_fsync(fd)

    monkeypatch.setattr(os, "fsync", fsync)
    log_dir.stop()
    monkeypatch.undo()
    for partition in range(2):
        folder = log_dir.folder(partition=partition)
        written = [*folder.glob("*.log"), *folder.glob("*index"), folder]
        assert {str(path) for path in written} <= synced
    assert recovery_points(log_dir) == {("orders", 0): 60, ("orders", 1): 60}
    log_dir.restart()
    assert log_dir.directory.was_clean_shutdown
    assert log_dir.open().recovery_point == 60


def test_logs_are_recovered_in_several_threads(log_dir: LogTestDirectory) -> None:
    for partition in range(12):
        log = log_dir.create(partition=partition)
        fill(log, 30 + partition)
        log.flusher.flush()
    log_dir.directory.checkpoint()
    for partition in range(12):
        fill(log_dir.open(partition=partition), 1)
    log_dir.kill()
    cut = log_dir.folder(partition=5) / "00000000000000000000.log"
    os.truncate(cut, 100)
    log_dir.restart()
    recovery = log_dir.directory.begin_recovery(lambda topic: SMALL)
    counts: list[tuple[int, int]] = []
    recovered = recovery.run(4, lambda *progress: counts.append(progress))
    assert log_dir.directory.logs == {}
    log_dir.directory.finish_recovery(recovered)
    assert sorted(counts) == [(number, 12) for number in range(1, 13)]
    assert log_dir.directory.unrecovered_partitions() == [("orders", 5)]
    for partition in {*range(12)} - {5}:
        assert log_dir.open(partition=partition).log_end_offset == 31 + partition
    with pytest.raises(CorruptLog):
        log_dir.open(partition=5)


def test_a_recovery_that_is_stopped_leaves_the_rest_for_another_time(
    log_dir: LogTestDirectory,
) -> None:
    for partition in range(5):
        fill(log_dir.create(partition=partition), 3)
    log_dir.kill()
    log_dir.restart()
    recovery = log_dir.directory.begin_recovery(lambda topic: SMALL)
    recovered = recovery.run(1, lambda count, total: recovery.stop() if count == 2 else None)
    log_dir.directory.finish_recovery(recovered)
    assert len(log_dir.directory.unrecovered_partitions()) == 3
    assert all(len(read_all(log_dir.open(partition=n))) == 3 for n in range(5))


def test_a_full_disk_leaves_a_log_for_when_it_is_opened(
    log_dir: LogTestDirectory, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    fill_long(log_dir)
    fill(log_dir.create(partition=1), 3)
    log_dir.kill()
    log_dir.restart()

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "pwrite", fault_in_this_thread("pwrite", full))
    log_dir.directory.recover_all(lambda topic: ONE_SEGMENT)
    monkeypatch.undo()
    assert "orders-0 is recovered when it is opened: No space left" in caplog.text
    assert log_dir.directory.unrecovered_partitions() == [("orders", 0)]
    assert log_dir.open(ONE_SEGMENT).log_end_offset == 24
    assert log_dir.open(partition=1).log_end_offset == 3


def test_an_empty_log_is_recovered(log_dir: LogTestDirectory) -> None:
    log_dir.create()
    log_dir.create(partition=1).append_as_leader(batch(), 0, NOW_MS)
    log_dir.kill()
    os.truncate(log_dir.folder(partition=1) / "00000000000000000000.log", 0)
    log_dir.restart()
    log_dir.directory.recover_all()
    assert log_dir.directory.unrecovered_partitions() == []
    assert [log_dir.open(partition=number).log_end_offset for number in (0, 1)] == [0, 0]
