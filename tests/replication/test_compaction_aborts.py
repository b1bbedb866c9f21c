"""What ends the cleaning of a partition: the partition is served on, and no file is left."""

import logging
from collections.abc import Callable

import pytest
from tests.replication.world import World, batch_of

from barnabas.log import Log
from barnabas.wire.records.batch import iterate_batches
from barnabas.wire.records.read import read_records

HOUR_MS = 60 * 60 * 1000
BACKOFF_MS = 15_000
TOPIC = "prices"
A, B = b"A", b"B"

Held = tuple[int, bytes | None, bytes | None]


@pytest.fixture
def world(new_world: Callable[..., World]) -> World:
    return new_world(disks=2)


@pytest.fixture(autouse=True)
def short_steps(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr("barnabas.log.cleaner.cleaning.STEP_BYTES", 1)
    caplog.set_level(logging.INFO, "barnabas.log")


def create_dirty(world: World, **configs: str) -> Log:
    """A topic of two closed segments with the same keys."""
    configs = {"cleanup_policy": "compact", "min_cleanable_dirty_ratio": "0.0"} | configs
    world.create_topic(TOPIC, **configs)
    for value in (b"1", b"2"):
        write(world, A, value)
        write(world, B, value)
        roll(world)
    return world.partition(TOPIC).log


def write(world: World, key: bytes, value: bytes) -> int:
    """Appends a record; returns its offset."""
    batch = batch_of(value, keys=(key,), now_ms=world.now_ms)
    return world.partition(TOPIC).append(batch, acks=-1, now_ms=world.now_ms).first_offset


def roll(world: World) -> None:
    world.partition(TOPIC).log.maintenance.roll()


def read(world: World) -> list[Held]:
    """Returns offset, key and value of every record."""
    partition = world.partition(TOPIC)
    offset, found = partition.log.log_start_offset, []
    while (fetched := partition.fetch(offset, 1 << 20).records) is not None:
        batches = memoryview(fetched.read())
        for at, _ in iterate_batches(batches):
            found += [(r.offset, r.key, r.value) for r in read_records(batches, at)]
        offset = fetched.next_offset
    return found


def begin_cleaning(world: World, steps: int) -> None:
    """Runs the first steps of a cleaning, and holds the next."""
    world.background.hold()
    world.partitions.cleaner.clean_now(lambda: None)
    for _ in range(steps):
        world.background.run_next()
    assert world.partition(TOPIC).log.compaction_state().is_busy


def finish(world: World) -> None:
    """Lets the cleaning see what has happened, and checks that it left nothing."""
    world.background.release()
    for disk in world.paths:
        assert not [path for path in disk.rglob("*") if path.suffix in (".cleaned", ".swap")]
    assert world.partitions.log_dirs.offline_paths == []


during = pytest.mark.parametrize("steps", range(5))


@during
def test_retention_deletes_the_segments(
    world: World, steps: int, caplog: pytest.LogCaptureFixture
) -> None:
    log = create_dirty(world, cleanup_policy="compact,delete", retention_ms=str(HOUR_MS))
    begin_cleaning(world, steps)
    world.run_maintenance(for_ms=2 * HOUR_MS)
    assert log.log_start_offset == 4
    finish(world)
    assert "prices-0: the cleaning was aborted: its segments have changed" in caplog.text
    assert read(world) == []
    assert write(world, A, b"more") == 4
    assert not log.compaction_state().uncleanable_reason


def test_retention_deletes_clean_segments_while_the_dirty_ones_are_mapped(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """Or a log whose segments expire all the time would never be cleaned."""
    log = create_dirty(world, cleanup_policy="compact,delete")
    world.run_maintenance(for_ms=2 * BACKOFF_MS)
    world.now_ms += HOUR_MS
    for value in (b"3", b"4"):
        write(world, A, value)
    roll(world)
    begin_cleaning(world, steps=1)
    world.configure(TOPIC, cleanup_policy="compact,delete", retention_ms=str(HOUR_MS // 2))
    world.run_maintenance(for_ms=HOUR_MS // 4)
    assert log.log_start_offset == 4
    finish(world)
    assert "aborted" not in caplog.text
    assert read(world) == [(5, A, b"4")]


@during
def test_delete_records_moves_the_start_of_the_log(world: World, steps: int) -> None:
    log = create_dirty(world, cleanup_policy="compact,delete")
    begin_cleaning(world, steps)
    world.partition(TOPIC).delete_records(3)
    world.run_maintenance(for_ms=HOUR_MS)
    assert len(log.segments) == 2
    finish(world)
    assert (3, B, b"2") in read(world)
    assert log.log_start_offset == 3
    world.run_maintenance(for_ms=HOUR_MS)
    assert world.partitions.cleaner.cleanable_range(log, 4).first_dirty_offset == 4


@during
def test_the_topic_is_deleted(world: World, steps: int) -> None:
    create_dirty(world)
    begin_cleaning(world, steps)
    world.delete_topic(TOPIC)
    finish(world)
    world.run_maintenance(for_ms=HOUR_MS)
    assert world.folders() == []
    world.restart()
    for directory in world.directories:
        assert (TOPIC, 0) not in directory.cleaner_offsets


@during
def test_the_topic_is_deleted_and_created_again(world: World, steps: int) -> None:
    """The new one is not confused with the old."""
    create_dirty(world)
    begin_cleaning(world, steps)
    world.delete_topic(TOPIC)
    world.create_topic(TOPIC, topic_id=bytes(range(16)), cleanup_policy="compact")
    write(world, A, b"new")
    finish(world)
    assert read(world) == [(0, A, b"new")]
    roll(world)
    write(world, A, b"newer")
    roll(world)
    world.run_maintenance(for_ms=2 * BACKOFF_MS)
    assert read(world) == [(1, A, b"newer")]


@during
def test_the_topic_is_not_compacted_any_more(world: World, steps: int) -> None:
    create_dirty(world)
    begin_cleaning(world, steps)
    world.configure(TOPIC, cleanup_policy="delete")
    finish(world)
    assert len(read(world)) == 4
    world.configure(TOPIC, cleanup_policy="compact")
    world.run_maintenance(for_ms=2 * BACKOFF_MS)
    assert len(read(world)) == 2


@during
def test_the_replica_moves_to_another_directory(world: World, steps: int) -> None:
    log = create_dirty(world)
    begin_cleaning(world, steps)
    target = next(path for path in world.paths if str(path) != log.directory.path)
    world.partitions.move_to_log_dir(TOPIC, 0, str(target))
    finish(world)
    world.run_maintenance(for_ms=BACKOFF_MS)
    assert world.partition(TOPIC).directory.path == str(target)
    roll(world)
    world.run_maintenance(for_ms=2 * BACKOFF_MS)
    assert read(world) == [(2, A, b"2"), (3, B, b"2")]
    world.restart()
    assert read(world) == [(2, A, b"2"), (3, B, b"2")]


def test_a_moved_replica_keeps_its_first_dirty_offset(world: World) -> None:
    log = create_dirty(world)
    world.run_maintenance(for_ms=2 * BACKOFF_MS)
    target = next(path for path in world.paths if str(path) != log.directory.path)
    world.partitions.move_to_log_dir(TOPIC, 0, str(target))
    world.run_maintenance(for_ms=5_000)
    moved = world.partition(TOPIC).log
    assert moved.directory.path == str(target)
    assert moved.log_end_offset == 4
    assert read(world) == [(2, A, b"2"), (3, B, b"2")]
    assert moved.directory.cleaner_offsets.get((TOPIC, 0)) == 4
    assert log.directory.cleaner_offsets.get((TOPIC, 0)) is None


@during
def test_the_disk_fails(world: World, steps: int) -> None:
    log = create_dirty(world)
    begin_cleaning(world, steps)
    world.partitions.handle_log_dir_failure(log.directory, OSError(5, "Input/output error"))
    world.background.release()
    assert world.partitions.log_dirs.offline_paths == [log.directory.path]
    assert not log.compaction_state().is_busy


@during
def test_the_broker_stops(world: World, steps: int) -> None:
    """It does not wait for the end of the cleaning; the next start removes what it left."""
    create_dirty(world)
    begin_cleaning(world, steps)
    world.partitions.cleaner.close()
    world.background.run_next()
    assert world.background.held == []
    world.restart()
    assert len(read(world)) == 4
    finish(world)


def test_a_disabled_cleaner_cleans_nothing(new_world: Callable[..., World]) -> None:
    world = new_world(log_cleaner_enable="false")
    create_dirty(world)
    world.run_maintenance(for_ms=HOUR_MS)
    assert len(read(world)) == 4


def test_the_backoff_changes_at_run_time(new_world: Callable[..., World]) -> None:
    world = new_world(log_cleaner_backoff_ms="600000")
    world.run_maintenance(for_ms=BACKOFF_MS)
    create_dirty(world)
    world.run_maintenance(for_ms=BACKOFF_MS)
    assert len(read(world)) == 4
    world.configure_broker(log_cleaner_backoff_ms="1000")
    world.run_maintenance(for_ms=BACKOFF_MS)
    assert len(read(world)) == 2
