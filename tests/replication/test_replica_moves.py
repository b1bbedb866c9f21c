"""A replica moves between log directories while it is written to and read from."""

from collections.abc import Callable

import pytest
from tests.replication.world import World

from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.records.batch import iterate_batches


@pytest.fixture
def world(new_world: Callable[..., World]) -> World:
    return new_world(disks=2)


def values(world: World, topic: str) -> list[int]:
    """The base offsets of all batches, as a reader from the start finds them."""
    partition = world.partition(topic)
    offset, found = partition.log.log_start_offset, []
    while (records := partition.fetch(offset, 1 << 20).records) is not None:
        found += [header.base_offset for _, header in iterate_batches(records.read())]
        offset = records.next_offset
    return found


def elsewhere(world: World, topic: str) -> str:
    home = world.partition(topic).directory.path
    return next(str(path) for path in world.paths if str(path) != home)


def test_a_moved_replica_is_in_the_new_directory_and_not_in_the_old(world: World) -> None:
    world.create_topic("orders", segment_bytes="1048576")
    for _ in range(5):
        world.append("orders", b"x" * 400_000)
    target = elsewhere(world, "orders")
    epochs = world.partition("orders").log.leader_epochs.entries
    world.partitions.move_to_log_dir("orders", 0, target)
    world.run_maintenance(for_ms=5_000)
    partition = world.partition("orders")
    assert partition.directory.path == target
    assert values(world, "orders") == [0, 1, 2, 3, 4]
    assert partition.log.leader_epochs.entries == epochs
    assert world.append("orders", b"more") == 5
    here, there = (world.folders(disk) for disk in (0, 1))
    assert sorted(name.rpartition("-")[2] for name in here + there) == ["0", "delete"]


def test_appends_during_the_move_are_copied(world: World) -> None:
    world.create_topic("orders")
    world.append("orders", b"a" * 900_000)
    world.partitions.move_to_log_dir("orders", 0, elsewhere(world, "orders"))
    for _ in range(200):
        world.append("orders", b"meanwhile")
        world.now_ms += 50
        world.partitions.run_maintenance(world.now_ms)
    world.run_maintenance(for_ms=1_000)
    assert not world.partitions.replica_moves.in_progress
    assert values(world, "orders") == list(range(201))


def test_a_future_log_starts_where_the_log_does(world: World) -> None:
    world.create_topic("orders")
    for _ in range(3):
        world.append("orders", b"a")
    world.partition("orders").delete_records(2)
    world.partitions.move_to_log_dir("orders", 0, elsewhere(world, "orders"))
    world.run_maintenance(for_ms=1_000)
    assert world.partition("orders").log.log_start_offset == 2
    assert values(world, "orders") == [2]


def test_a_log_that_starts_within_a_batch_moves_with_the_whole_batch(world: World) -> None:
    world.create_topic("orders")
    world.append("orders", b"a")
    world.append("orders", b"b", b"c", b"d")
    world.append("orders", b"e")
    world.partition("orders").delete_records(2)
    target = elsewhere(world, "orders")
    world.partitions.move_to_log_dir("orders", 0, target)
    world.run_maintenance(for_ms=1_000)
    partition = world.partition("orders")
    assert partition.directory.path == target
    assert partition.log.log_start_offset == 2
    assert values(world, "orders") == [1, 4]


def test_records_deleted_during_the_move_do_not_come_back(world: World) -> None:
    world.create_topic("orders")
    for _ in range(3):
        world.append("orders", b"a" * 900_000)
    world.partitions.move_to_log_dir("orders", 0, elsewhere(world, "orders"))
    (move,) = world.partitions.replica_moves.in_progress.values()
    while move.copy_next_slice(world.now_ms):
        pass
    world.partition("orders").delete_records(2)
    world.run_maintenance(for_ms=1_000)
    assert not world.partitions.replica_moves.in_progress
    assert world.partition("orders").log.log_start_offset == 2


def test_the_moved_replica_is_there_after_a_restart(world: World) -> None:
    world.create_topic("orders")
    world.append("orders", b"a")
    target = elsewhere(world, "orders")
    world.partitions.move_to_log_dir("orders", 0, target)
    world.run_maintenance(for_ms=1_000)
    world.restart()
    assert world.partition("orders").directory.path == target
    assert values(world, "orders") == [0]


def test_the_new_directory_is_reported(world: World) -> None:
    topic_id = world.create_topic("orders")
    world.partitions.move_to_log_dir("orders", 0, elsewhere(world, "orders"))
    world.run_maintenance(for_ms=1_000)
    directory = world.partition("orders").directory
    assert world.partitions.unassigned_dirs == {(topic_id, 0): directory.directory_id}


def test_idempotent_producers_are_still_known_after_the_move(world: World) -> None:
    from tests.replication.world import batch_of

    world.create_topic("orders")
    fields = {"producer_id": 9, "producer_epoch": 0, "base_sequence": 0}
    partition = world.partition("orders")
    partition.append(batch_of(b"a", **fields), acks=-1, now_ms=world.now_ms)
    world.partitions.move_to_log_dir("orders", 0, elsewhere(world, "orders"))
    world.run_maintenance(for_ms=1_000)
    again = partition.append(batch_of(b"a", **fields), acks=-1, now_ms=world.now_ms)
    assert again.duplicate
    assert again.first_offset == 0


def test_a_move_interrupted_by_a_shutdown_starts_again(world: World) -> None:
    world.create_topic("orders")
    world.append("orders", b"a")
    target = elsewhere(world, "orders")
    world.partitions.move_to_log_dir("orders", 0, target)
    world.partitions.replica_moves.in_progress.clear()  # a kill leaves the future folder behind
    world.restart()
    world.run_maintenance(for_ms=10_000)
    assert world.partition("orders").directory.path == target
    assert values(world, "orders") == [0]


def test_a_move_to_the_current_directory_cancels_the_move(world: World) -> None:
    world.create_topic("orders")
    world.append("orders", b"a")
    home = world.partition("orders").directory.path
    world.partitions.move_to_log_dir("orders", 0, elsewhere(world, "orders"))
    world.partitions.move_to_log_dir("orders", 0, home)
    world.run_maintenance(for_ms=10_000)
    assert world.partition("orders").directory.path == home
    assert sorted(world.folders(0) + world.folders(1)) == ["orders-0"]


def test_deleting_the_topic_cancels_the_move(world: World) -> None:
    world.create_topic("orders")
    world.partitions.move_to_log_dir("orders", 0, elsewhere(world, "orders"))
    world.delete_topic("orders")
    world.run_maintenance(for_ms=100_000)
    assert world.folders(0) + world.folders(1) == []


def test_a_move_to_an_invalid_directory_is_rejected(world: World) -> None:
    world.create_topic("orders")
    with pytest.raises(KafkaError, match=ErrorCode.LOG_DIR_NOT_FOUND.name):
        world.partitions.move_to_log_dir("orders", 0, "/nowhere")
    with pytest.raises(KafkaError, match=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION.name):
        world.partitions.move_to_log_dir("orders", 9, str(world.paths[0]))
