"""The periodic tasks of partitions, and that they run in small steps."""

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.os_faults import fault_in_this_thread
from tests.replication.world import World, batch_of

from barnabas.log import ColdRead, LogDirFailure, pread_cached
from barnabas.log.checkpoint_file import read_offsets
from barnabas.log.leader_epochs import LeaderEpochCache
from barnabas.replication.maintenance_tasks import (
    CACHED_INDEX_MS,
    MAX_CONCURRENT_FLUSHES,
    STEPS_PER_SLICE,
    FlushScheduler,
)
from barnabas.wire.errors import ErrorCode

HOUR_MS = 60 * 60 * 1000


def test_segments_past_their_retention_are_deleted(world: World) -> None:
    world.create_topic("orders", retention_ms=str(HOUR_MS), segment_ms=str(HOUR_MS))
    world.append("orders", b"old")
    world.now_ms += 2 * HOUR_MS
    world.append("orders", b"new")
    world.run_maintenance(for_ms=10 * 60 * 1000)
    assert world.partition("orders").log.log_start_offset == 1
    assert world.partition("orders").high_watermark == 2


def test_a_partition_that_was_never_opened_loses_its_old_segments_too(world: World) -> None:
    world.create_topic("old", retention_ms=str(HOUR_MS))
    world.create_topic("young", retention_ms=str(HOUR_MS))
    world.append("old", b"a")
    world.append("young", b"a")
    world.restart()
    for topic, age_ms in (("old", 3 * HOUR_MS), ("young", 0)):
        (log,) = (world.paths[0] / f"{topic}-0").glob("*.log")
        written_ns = (world.now_ms + 3 * HOUR_MS - age_ms) * 1_000_000
        os.utime(log, ns=(written_ns, written_ns))
    world.now_ms += 3 * HOUR_MS
    world.run_maintenance()
    assert [partition.topic for partition in world.partitions.opened()] == ["old"]
    assert world.partition("old").log.log_start_offset == 1


def test_logs_are_flushed_after_flush_ms(world: World) -> None:
    world.create_topic("orders", flush_ms="5000")
    world.append("orders", b"a")
    log = world.partition("orders").log
    world.run_maintenance(for_ms=3_000)
    assert log.recovery_point == 0
    world.run_maintenance(for_ms=4_000)
    assert log.recovery_point == 1


def test_a_rolled_segment_is_flushed(world: World) -> None:
    world.create_topic("orders", segment_bytes="1048576")
    for _ in range(3):
        world.append("orders", b"x" * 500_000)
    world.run_maintenance(for_ms=2_000)
    assert world.partition("orders").log.recovery_point == 3


def test_high_watermarks_are_checkpointed(world: World) -> None:
    world.create_topic("orders", 2)
    world.append("orders", b"a", b"b", index=1)
    world.run_maintenance(for_ms=10_000)
    path = world.paths[0] / "replication-offset-checkpoint"
    assert read_offsets(str(path)) == {("orders", 0): 0, ("orders", 1): 2}


def test_silent_producers_expire(new_world: Callable[..., World]) -> None:
    world = new_world(producer_id_expiration_ms=str(HOUR_MS))
    world.create_topic("orders")
    batch = batch_of(b"a", producer_id=1, producer_epoch=0, base_sequence=0)
    world.partition("orders").append(batch, acks=1, now_ms=world.now_ms)
    world.run_maintenance(for_ms=HOUR_MS // 2)
    assert len(world.partition("orders").log.active_producers()) == 1
    world.run_maintenance(for_ms=HOUR_MS)
    assert world.partition("orders").log.active_producers() == []


def test_a_slice_does_a_bounded_amount_of_work(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.create_topic("orders", 300)
    made: list[str] = []
    mkdir = os.mkdir
    monkeypatch.setattr(
        os, "mkdir", fault_in_this_thread("mkdir", lambda path: (made.append(path), mkdir(path))[1])
    )
    while True:
        before = len(made)
        if world.partitions.run_maintenance(world.now_ms) > 0:
            break
        assert len(made) - before <= STEPS_PER_SLICE
    assert len(world.folders()) == 300


def test_a_directory_that_fails_to_sync_goes_offline(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.create_topic("orders", flush_ms="1000")
    world.append("orders", b"a")

    def fail(_: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "fdatasync", fault_in_this_thread("fdatasync", fail))
    world.run_maintenance(for_ms=5_000)
    assert world.partitions.log_dirs.offline_paths == [str(world.paths[0])]
    assert not world.partition("orders").is_leader


def test_an_idle_broker_rarely_runs_maintenance(world: World) -> None:
    world.create_topic("orders")
    world.run_maintenance(for_ms=HOUR_MS)
    assert world.partitions.run_maintenance(world.now_ms) >= 0
    assert Path(world.paths[0], "orders-0").is_dir()


def test_a_clock_that_was_set_back_does_not_stop_the_tasks(world: World) -> None:
    world.create_topic("orders", flush_ms="1000")
    world.run_maintenance()
    world.now_ms -= 24 * HOUR_MS
    world.append("orders", b"a")
    world.run_maintenance(for_ms=3_000)
    assert world.partition("orders").log.recovery_point == 1


def test_a_flush_that_cannot_begin_is_retried(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.create_topic("orders", flush_ms="1000")
    world.append("orders", b"a")
    log = world.partition("orders").log
    with monkeypatch.context() as full:
        full.setattr(log.leader_epochs, "needs_sync", True)
        full.setattr(LeaderEpochCache, "save", fail_with(errno.ENOSPC))
        world.run_maintenance(for_ms=3_000)
        assert log.recovery_point == 0
    world.run_maintenance(for_ms=3_000)
    assert log.recovery_point == 1


def test_a_disk_that_is_full_when_it_syncs_has_failed(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the kernel could not write is gone, and a second sync would not say so."""
    world.create_topic("orders", flush_ms="1000")
    world.append("orders", b"a")
    monkeypatch.setattr(os, "fdatasync", fault_in_this_thread("fdatasync", fail_with(errno.ENOSPC)))
    world.run_maintenance(for_ms=3_000)
    assert world.directories[0].failed is not None
    assert world.partition("orders").error_code is ErrorCode.KAFKA_STORAGE_ERROR


def test_a_full_disk_is_logged_once_and_again_after_there_was_space(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    world.create_topic("orders")
    world.append("orders", b"a")
    for lines in (1, 2):
        with monkeypatch.context() as full:
            full.setattr(os, "pwrite", fault_in_this_thread("pwrite", fail_with(errno.ENOSPC)))
            for _ in range(3):
                with pytest.raises(LogDirFailure):
                    world.append("orders", b"b")
        assert len([line for line in caplog.messages if "is full" in line]) == lines
        world.append("orders", b"c")
        world.run_maintenance(for_ms=10_000)


def test_a_process_out_of_file_descriptors_keeps_its_directories_online(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    world.create_topic("orders")
    with monkeypatch.context() as out_of_files:
        out_of_files.setattr(os, "open", fault_in_this_thread("open", fail_with(errno.EMFILE)))
        with pytest.raises(LogDirFailure):
            world.append("orders", b"a")
    assert "ulimit -n" in caplog.text
    world.append("orders", b"b")
    assert world.partition("orders").log.log_end_offset == 1


def test_a_sync_that_could_not_open_its_files_is_retried(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.create_topic("orders", flush_ms="1000")
    world.append("orders", b"a")
    log = world.partition("orders").log
    with monkeypatch.context() as out_of_files:
        out_of_files.setattr("barnabas.log.flush.sync_path", fail_with(errno.EMFILE))
        world.run_maintenance(for_ms=3_000)
        assert log.recovery_point == 0
    world.run_maintenance(for_ms=3_000)
    assert log.recovery_point == 1


def test_few_logs_are_flushed_at_once_however_many_are_due(world: World) -> None:
    class Later:
        def __init__(self) -> None:
            self.begun: list[tuple[Callable[[], object], Callable[..., None]]] = []

        def run(self, work: Callable[[], object], done: Callable[..., None]) -> None:
            self.begun.append((work, done))

    later = Later()
    flushing = FlushScheduler(later, world.partitions.handle_log_dir_failure)
    world.create_topic("orders", MAX_CONCURRENT_FLUSHES * 2)
    for index in range(MAX_CONCURRENT_FLUSHES * 2):
        world.append("orders", b"a", index=index)
        flushing.request(world.partition("orders", index))
    assert len(later.begun) == MAX_CONCURRENT_FLUSHES
    while later.begun:
        work, done = later.begun.pop()
        work()
        done(None)
    assert {each.log.recovery_point for each in world.partitions.opened()} == {1}


def fail_with(number: int) -> Callable[..., None]:
    def call(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    return call


def test_indexes_are_loaded_again_after_a_minute(world: World) -> None:
    world.create_topic("orders")
    world.append("orders", b"a")
    world.append("orders", b"b")
    partition = world.partition("orders")
    assert partition.fetch(1, 1 << 20, pread=pread_cached).records is not None
    partition.log.segments.active.recent_positions = None
    world.run_maintenance(for_ms=CACHED_INDEX_MS)
    with pytest.raises(ColdRead):
        partition.fetch(1, 1 << 20, pread=pread_cached)
