"""Settings of compaction take effect while the broker runs."""

from pathlib import Path

import pytest
from tests.replication.world import World, batch_of

HOUR_MS = 60 * 60 * 1000
BACKOFF_MS = 15_000


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def write(world: World, topic: str, *values: bytes | None) -> None:
    """Appends records with one key, and rolls the segment."""
    partition = world.partition(topic)
    batch = batch_of(*values, keys=(b"key",) * len(values), now_ms=world.now_ms)
    partition.append(batch, acks=-1, now_ms=world.now_ms)
    partition.log.maintenance.roll()


def is_clean(world: World, topic: str) -> bool:
    log = world.partition(topic).log
    return log.directory.cleaner_offsets.get((topic, 0)) == log.log_end_offset


def has_tombstones(world: World, topic: str) -> bool:
    return world.partition(topic).log.compaction_state().earliest_horizon_ms >= 0


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"min_cleanable_dirty_ratio": "1.0"}, {"min_cleanable_dirty_ratio": "0.9"}),
        ({"min_compaction_lag_ms": str(HOUR_MS)}, {"min_compaction_lag_ms": "0"}),
        (
            {"min_cleanable_dirty_ratio": "1.0"},
            {"max_compaction_lag_ms": "1000", "min_cleanable_dirty_ratio": "1.0"},
        ),
        ({"cleanup_policy": "delete"}, {"cleanup_policy": "compact"}),
    ],
    ids=lambda settings: next(iter(settings)),
)
def test_a_changed_setting_of_a_topic_makes_it_cleanable(
    world: World, before: dict[str, str], after: dict[str, str]
) -> None:
    world.create_topic("prices", **{"cleanup_policy": "compact", **before})
    write(world, "prices", b"1", b"2")
    world.run_maintenance(for_ms=2 * BACKOFF_MS)
    assert not is_clean(world, "prices")
    world.configure("prices", **after)
    world.run_maintenance(for_ms=2 * BACKOFF_MS)
    assert is_clean(world, "prices")


def test_a_changed_default_of_the_cluster_makes_its_topics_cleanable(world: World) -> None:
    world.create_topic("prices")
    write(world, "prices", b"1", b"2")
    world.run_maintenance(for_ms=2 * BACKOFF_MS)
    world.configure_broker(log_cleanup_policy="compact")
    world.run_maintenance(for_ms=2 * BACKOFF_MS)
    assert is_clean(world, "prices")


def test_delete_retention_is_that_of_the_cleaning_that_first_keeps_the_tombstone(
    world: World,
) -> None:
    world.create_topic("prices", cleanup_policy="compact")
    write(world, "prices", b"1", None)
    world.configure("prices", delete_retention_ms=str(HOUR_MS))
    world.run_maintenance(for_ms=2 * BACKOFF_MS)
    world.configure("prices", delete_retention_ms="0")
    world.run_maintenance(for_ms=HOUR_MS - 4 * BACKOFF_MS)
    assert has_tombstones(world, "prices")
    write(world, "prices", b"2", None)
    world.run_maintenance(for_ms=3 * BACKOFF_MS)
    assert not has_tombstones(world, "prices")


@pytest.mark.parametrize("threads", [1, 2])
def test_as_many_logs_are_cleaned_at_once_as_there_are_threads(world: World, threads: int) -> None:
    topics = ["prices", "rates", "quotes"]
    for topic in topics:
        world.create_topic(topic, cleanup_policy="compact")
        write(world, topic, b"1", b"2")
    world.configure_broker(log_cleaner_threads=str(threads))
    world.background.hold()
    world.run_maintenance(for_ms=2 * BACKOFF_MS)
    busy = [topic for topic in topics if world.partition(topic).log.compaction_state().is_busy]
    assert len(busy) == threads
    world.background.release()
    world.run_maintenance(for_ms=2 * BACKOFF_MS)
    assert all(is_clean(world, topic) for topic in topics)


def test_a_log_becomes_dirty_and_is_cleaned_while_another_cleaning_runs(world: World) -> None:
    world.configure_broker(log_cleaner_threads="2")
    for topic in ("prices", "rates"):
        world.create_topic(topic, cleanup_policy="compact")
    world.run_maintenance(for_ms=2 * BACKOFF_MS)
    world.background.hold()
    write(world, "prices", b"1", b"2")
    world.run_maintenance(for_ms=2 * BACKOFF_MS)
    assert not world.partition("rates").log.compaction_state().is_busy
    write(world, "rates", b"1", b"2")
    world.run_maintenance(for_ms=2 * BACKOFF_MS)
    assert world.partition("prices").log.compaction_state().is_busy
    assert world.partition("rates").log.compaction_state().is_busy
    world.background.release()
    assert all(is_clean(world, topic) for topic in ("prices", "rates"))


def test_the_backoff_between_two_rounds_can_be_changed(world: World) -> None:
    world.create_topic("prices", cleanup_policy="compact")
    world.run_maintenance(for_ms=2 * BACKOFF_MS)
    world.configure_broker(log_cleaner_backoff_ms=str(HOUR_MS))
    world.run_maintenance(for_ms=2 * BACKOFF_MS)
    write(world, "prices", b"1", b"2")
    world.run_maintenance(for_ms=HOUR_MS // 2)
    assert not is_clean(world, "prices")
    world.configure_broker(log_cleaner_backoff_ms="1000")
    world.run_maintenance(for_ms=2_000)
    assert is_clean(world, "prices")


def test_nothing_is_cleaned_without_the_cleaner(tmp_path: Path) -> None:
    world = World(tmp_path, log_cleaner_enable="false")
    world.create_topic("prices", cleanup_policy="compact")
    write(world, "prices", b"1", b"2")
    world.run_maintenance(for_ms=HOUR_MS)
    assert not is_clean(world, "prices")


def test_a_cleaning_on_request_begins_after_those_in_progress(world: World) -> None:
    world.create_topic("prices", cleanup_policy="compact")
    write(world, "prices", b"1", b"2")
    world.background.hold()
    world.run_maintenance(for_ms=2 * BACKOFF_MS)
    write(world, "prices", b"3")
    done: list[bool] = []
    world.partitions.cleaner.clean_now(lambda: done.append(is_clean(world, "prices")))
    assert not done
    world.background.release()
    assert done == [True]


def test_each_cleaning_has_a_line_that_says_what_was_left(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.create_topic("prices", cleanup_policy="compact", delete_retention_ms="0")
    write(world, "prices", b"1", b"2", None)
    with caplog.at_level("INFO", "barnabas.log"):
        world.run_maintenance(for_ms=2 * BACKOFF_MS)
    first, second = caplog.messages
    assert "MB/s read): 1 of 3 records are left, " in first
    assert first.endswith("Offsets 0 to 2 were dirty (keys: 1, 0% of the offset map).")
    assert "MB/s read): 0 of 1 records are left, " in second
    assert second.endswith("it was for expired tombstones or transaction markers.")
