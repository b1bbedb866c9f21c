"""Compacted partitions: what the cleaner keeps, when it runs, and what ends a cleaning."""

import os
from itertools import pairwise
from pathlib import Path

import pytest
from tests.replication.world import World, batch_of

from barnabas.replication.compacted_partitions import CHECKED_PER_STEP
from barnabas.wire.records.batch import iterate_batches
from barnabas.wire.records.read import read_records

DAY_MS = 24 * 60 * 60 * 1000
BACKOFF_MS = 15_000

Pair = tuple[bytes, bytes | None]
A, B, C = b"A", b"B", b"C"


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def write(world: World, topic: str, *pairs: Pair, **fields: object) -> None:
    """Appends each record in a batch of its own."""
    for key, value in pairs:
        batch = batch_of(value, keys=(key,), now_ms=world.now_ms, **fields)
        world.partition(topic).append(batch, acks=-1, now_ms=world.now_ms)


def roll(world: World, topic: str) -> None:
    world.partition(topic).log.maintenance.roll()


def read(world: World, topic: str) -> list[tuple[int, bytes | None, bytes | None]]:
    """Returns offset, key and value of every record."""
    partition = world.partition(topic)
    offset, read = partition.log.log_start_offset, []
    while (fetched := partition.fetch(offset, 1 << 20).records) is not None:
        batches = memoryview(fetched.read())
        for at, header in iterate_batches(batches):
            if not header.is_control:
                read += [(r.offset, r.key, r.value) for r in read_records(batches, at)]
        offset = fetched.next_offset
    return read


def run_cleaner(world: World) -> None:
    world.run_maintenance(for_ms=2 * BACKOFF_MS)


def test_the_last_record_of_each_key_stays_at_its_offset(world: World) -> None:
    world.create_topic("prices", cleanup_policy="compact")
    write(world, "prices", (A, b"1"), (B, b"10"), (A, b"2"), (C, b"5"), (B, b"20"), (A, b"3"))
    roll(world, "prices")
    run_cleaner(world)
    assert read(world, "prices") == [(3, C, b"5"), (4, B, b"20"), (5, A, b"3")]


def test_the_active_segment_is_not_cleaned(world: World) -> None:
    world.create_topic("prices", cleanup_policy="compact")
    write(world, "prices", (A, b"1"), (A, b"2"))
    run_cleaner(world)
    assert len(read(world, "prices")) == 2


def test_a_tombstone_stays_for_delete_retention_ms_and_goes_without_new_records(
    world: World,
) -> None:
    world.create_topic("prices", cleanup_policy="compact")
    write(world, "prices", (A, b"1"), (B, b"10"), (A, None))
    roll(world, "prices")
    run_cleaner(world)
    assert read(world, "prices") == [(1, B, b"10"), (2, A, None)]
    world.run_maintenance(for_ms=DAY_MS - 3 * BACKOFF_MS)
    assert (2, A, None) in read(world, "prices")
    world.run_maintenance(for_ms=4 * BACKOFF_MS)
    assert read(world, "prices") == [(1, B, b"10")]


def test_a_tombstone_goes_after_a_restart_too(world: World) -> None:
    world.create_topic("prices", cleanup_policy="compact")
    write(world, "prices", (A, b"1"), (B, b"10"), (A, None))
    roll(world, "prices")
    run_cleaner(world)
    world.restart()
    world.run_maintenance(for_ms=DAY_MS + 4 * BACKOFF_MS)
    assert read(world, "prices") == [(1, B, b"10")]


@pytest.mark.parametrize(
    "lag", [{"max_compaction_lag_ms": "60000"}, {"segment_ms": "60000"}], ids=str
)
def test_an_idle_active_segment_is_rolled_and_cleaned(world: World, lag: dict[str, str]) -> None:
    world.create_topic("prices", cleanup_policy="compact", min_cleanable_dirty_ratio="0.1", **lag)
    write(world, "prices", (A, b"1"), (A, b"2"))
    active = world.partition("prices").log.segments.active
    os.utime(active.path(), (world.now_ms / 1000, world.now_ms / 1000))
    world.run_maintenance(for_ms=60_000 + 2 * BACKOFF_MS)
    assert read(world, "prices") == [(1, A, b"2")]


def test_unopened_dirty_logs_are_found_a_few_at_a_time(world: World) -> None:
    topics = [f"prices-{number}" for number in range(40)]
    for topic in topics:
        world.create_topic(topic, cleanup_policy="compact")
        write(world, topic, (A, b"1"), (A, b"2"))
        roll(world, topic)
        write(world, topic, (B, b"1"))
    world.restart()
    opened = []
    for _ in world.partitions.cleaner.run(world.now_ms):
        opened.append(len(world.partitions.opened()))
    assert opened[-1] == len(topics)
    assert max(after - before for before, after in pairwise(opened)) <= CHECKED_PER_STEP


def test_records_of_an_open_transaction_are_not_cleaned(world: World) -> None:
    world.create_topic("prices", cleanup_policy="compact", min_cleanable_dirty_ratio="0.0")
    write(world, "prices", (A, b"1"), (A, b"2"))
    roll(world, "prices")
    world.write_in_transaction("prices", b"open", keys=(b"T",))
    roll(world, "prices")
    write(world, "prices", (A, b"3"))
    run_cleaner(world)
    assert [value for _, _, value in read(world, "prices")] == [b"2", b"open", b"3"]


def test_aborted_records_go_first_and_their_marker_later(world: World) -> None:
    world.create_topic("prices", cleanup_policy="compact", min_cleanable_dirty_ratio="0.0")
    write(world, "prices", (A, b"1"))
    world.write_in_transaction("prices", b"aborted", keys=(A,))
    world.end_transaction("prices", committed=False)
    write(world, "prices", (B, b"1"))
    log = world.partition("prices").log
    assert log.aborted_transactions(0, 4) == [(7, 1)]
    roll(world, "prices")
    run_cleaner(world)
    assert read(world, "prices") == [(0, A, b"1"), (3, B, b"1")]


def test_an_idempotent_producer_goes_on_after_its_records_were_removed(world: World) -> None:
    world.create_topic("prices", cleanup_policy="compact", min_cleanable_dirty_ratio="0.0")
    fields = {"producer_id": 5, "producer_epoch": 0}
    write(world, "prices", (A, b"1"), base_sequence=0, **fields)
    write(world, "prices", (A, b"2"))
    roll(world, "prices")
    run_cleaner(world)
    assert read(world, "prices") == [(1, A, b"2")]
    world.partition("prices").log.directory.checkpoint()
    for path in Path(world.partition("prices").log.path).glob("*.snapshot"):
        path.unlink()
    world.restart(clean=False)
    assert world.partition("prices").log.producers.entries[5].last_sequence == 0
    write(world, "prices", (A, b"3"), base_sequence=1, **fields)


def test_segments_are_merged_up_to_segment_bytes(world: World) -> None:
    world.create_topic("prices", cleanup_policy="compact", min_cleanable_dirty_ratio="0.0")
    for number in range(10):
        write(world, "prices", (b"%d" % number, b"1"))
        roll(world, "prices")
    run_cleaner(world)
    log = world.partition("prices").log
    assert len(log.segments) == 2
    assert len(read(world, "prices")) == 10
    world.restart()
    assert len(read(world, "prices")) == 10


def test_a_log_that_is_less_dirty_than_its_ratio_is_left_alone(world: World) -> None:
    world.create_topic("prices", cleanup_policy="compact", min_cleanable_dirty_ratio="0.9")
    write(world, "prices", *((b"%d" % number, b"1") for number in range(10)))
    roll(world, "prices")
    run_cleaner(world)
    write(world, "prices", (b"0", b"2"))
    roll(world, "prices")
    run_cleaner(world)
    assert len(read(world, "prices")) == 11


def test_a_topic_that_becomes_compacted_is_cleaned(world: World) -> None:
    world.create_topic("prices")
    write(world, "prices", (A, b"1"), (A, b"2"))
    roll(world, "prices")
    run_cleaner(world)
    assert len(read(world, "prices")) == 2
    world.configure("prices", cleanup_policy="compact")
    run_cleaner(world)
    assert read(world, "prices") == [(1, A, b"2")]


def test_a_corrupt_batch_makes_the_log_uncleanable_and_others_are_cleaned(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    for topic in ("damaged", "prices"):
        world.create_topic(topic, cleanup_policy="compact")
        write(world, topic, (A, b"1"), (A, b"2"))
        roll(world, topic)
    path = Path(world.partition("damaged").log.segments.ordered[0].path())
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    run_cleaner(world)
    assert "damaged-0 is not compacted any more" in caplog.text
    assert path.read_bytes() == content
    assert read(world, "prices") == [(1, A, b"2")]
    assert not list(path.parent.glob("*.cleaned"))
