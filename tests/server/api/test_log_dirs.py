"""DescribeLogDirs and AlterReplicaLogDirs respond as Kafka 4.3 does."""

from collections.abc import Callable

import pytest
from tests.replication.world import World

from barnabas.server.api import log_dirs
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
    DescribeLogDirsResult,
)


@pytest.fixture
def world(new_world: Callable[..., World]) -> World:
    return new_world(disks=2)


def describe(
    world: World, topics: dict[str, list[int]] | None = None, version: int = 5
) -> dict[str, DescribeLogDirsResult]:
    requested = None
    if topics is not None:
        requested = [
            DescribableLogDirTopic(topic=topic, partitions=partitions)
            for topic, partitions in topics.items()
        ]
    request = DescribeLogDirsRequest(topics=requested)
    pending = world.begin_request(log_dirs.handle_describe, request, version)
    return {result.log_dir: result for result in pending.response.results}


def held(result: DescribeLogDirsResult) -> dict[tuple[str, int], tuple[int, int, bool]]:
    return {
        (topic.name, partition.partition_index): (
            partition.partition_size,
            partition.offset_lag,
            partition.is_future_key,
        )
        for topic in result.topics
        for partition in topic.partitions
    }


@pytest.mark.parametrize("version", range(1, 6))
def test_every_directory_is_described_with_its_replicas(world: World, version: int) -> None:
    world.create_topic("orders", 2)
    world.append("orders", b"a")
    log = world.partition("orders").log
    entry = describe(world, version=version)
    assert set(entry) == {str(path) for path in world.paths}
    everything = {key: size for result in entry.values() for key, size in held(result).items()}
    assert everything == {("orders", 0): (log.size_bytes, 0, False), ("orders", 1): (0, 0, False)}
    home = entry[log.directory.path]
    assert home.error_code == ErrorCode.NONE
    assert home.total_bytes >= home.usable_bytes > 0


def test_a_partition_that_is_not_open_is_measured_on_disk(world: World) -> None:
    world.create_topic("orders", 200)
    world.append("orders", b"a", index=150)
    size_bytes = world.partition("orders", 150).log.size_bytes
    world.restart()
    everything = {}
    for result in describe(world).values():
        everything |= held(result)
    assert everything[("orders", 150)] == (size_bytes, 0, False)
    assert world.partitions.opened() == []


def test_describing_many_partitions_lets_other_requests_run(world: World) -> None:
    world.create_topic("orders", 200)
    world.run_maintenance()
    coroutine = log_dirs.handle_describe(DescribeLogDirsRequest(topics=None), world.call(5))
    pauses = 0
    try:
        while True:
            coroutine.send(None)
            pauses += 1
    except StopIteration:
        pass
    assert pauses >= 2


def test_only_the_requested_partitions_are_described(world: World) -> None:
    world.create_topic("orders", 2)
    world.create_topic("payments")
    entry = describe(world, {"orders": [1, 9], "nowhere": [0], "payments": []})
    assert [key for result in entry.values() for key in held(result)] == [("orders", 1)]
    assert all(held(result) == {} for result in describe(world, {}).values())


def test_a_failed_directory_is_described_with_its_error(world: World) -> None:
    world.create_topic("orders", 2)
    directory = world.partition("orders").directory
    world.partitions.handle_log_dir_failure(directory, OSError(5, "Input/output error"))
    result = describe(world)[directory.path]
    assert (result.error_code, result.topics) == (ErrorCode.KAFKA_STORAGE_ERROR, [])


def alter(world: World, *requested: tuple[str, str, int]) -> list[int]:
    """Requests (path, topic, partition) triples; returns their error codes."""
    request = AlterReplicaLogDirsRequest(
        dirs=[
            AlterReplicaLogDir(
                path=path, topics=[AlterReplicaLogDirTopic(name=topic, partitions=[index])]
            )
            for path, topic, index in requested
        ]
    )
    response = world.request(log_dirs.handle_alter, request, 2)
    return [partition.error_code for topic in response.results for partition in topic.partitions]


def test_a_move_is_described_as_a_future_replica_until_it_completes(world: World) -> None:
    world.create_topic("orders")
    world.append("orders", b"a", b"b")
    log = world.partition("orders").log
    home, target = log.directory.path, str(world.paths[1])
    if home == target:
        target = str(world.paths[0])
    assert alter(world, (target, "orders", 0)) == [ErrorCode.NONE]
    entry = describe(world)
    assert held(entry[home]) == {("orders", 0): (log.size_bytes, 0, False)}
    assert held(entry[target]) == {("orders", 0): (0, 2, True)}
    world.run_maintenance(for_ms=5_000)
    entry = describe(world)
    assert held(entry[home]) == {}
    assert held(entry[target]) == {("orders", 0): (log.size_bytes, 0, False)}


def test_a_replica_cannot_move_to_an_invalid_directory(world: World) -> None:
    world.create_topic("orders")
    here = str(world.paths[0])
    assert alter(
        world,
        ("/nowhere", "orders", 0),
        ("d0", "orders", 0),
        (here, "orders", 9),
        (here, "nowhere", 0),
        ("/nowhere", "nowhere", 0),
    ) == [
        ErrorCode.LOG_DIR_NOT_FOUND,
        ErrorCode.LOG_DIR_NOT_FOUND,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.LOG_DIR_NOT_FOUND,
    ]


def test_a_replica_cannot_move_to_a_failed_directory(world: World) -> None:
    world.create_topic("orders", 2)
    broken = world.partition("orders").directory
    world.partitions.handle_log_dir_failure(broken, OSError(5, "Input/output error"))
    assert alter(world, (broken.path, "orders", 1)) == [ErrorCode.KAFKA_STORAGE_ERROR]
