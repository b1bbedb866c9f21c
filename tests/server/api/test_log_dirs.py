"""DescribeLogDirs and AlterReplicaLogDirs respond as Kafka 4.3 does."""

from collections.abc import Callable

import pytest
from tests.replication.world import World, batch_of

from barnabas.server.api import log_dirs
from barnabas.wire.errors import ErrorCode
from barnabas.wire.extensions import (
    CompactionStatus,
    get_compaction_status,
    request_compaction_status,
)
from barnabas.wire.messages.log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
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


@pytest.mark.parametrize("version", range(1, 6))
def test_other_clients_receive_no_compaction_status(world: World, version: int) -> None:
    world.create_topic("prices", cleanup_policy="compact")
    world.partition("prices")
    assert all(status is None for status in compaction(world, version, requested=False).values())


@pytest.mark.parametrize("version", range(2, 6))
def test_the_compaction_status_is_sent_for_open_compacted_logs_on_request(
    world: World, version: int
) -> None:
    world.create_topic("prices", cleanup_policy="compact")
    world.create_topic("orders")
    for topic in ("prices", "orders"):
        batch = batch_of(b"1", b"2", keys=(b"key", b"key"), now_ms=world.now_ms)
        world.partition(topic).append(batch, acks=-1, now_ms=world.now_ms)
    world.partition("prices").log.maintenance.roll()
    never = CompactionStatus(dirty_ratio=1.0, last_cleaned_ms=-1)
    assert compaction(world, version) == {"prices": never, "orders": None}
    world.run_maintenance(for_ms=60_000)
    cleaned_ms = world.partition("prices").log.compaction_state().last_cleaned_ms
    assert cleaned_ms > 0
    cleaned = CompactionStatus(dirty_ratio=0.0, last_cleaned_ms=cleaned_ms)
    assert compaction(world, version) == {"prices": cleaned, "orders": None}
    world.partition("prices").log.compaction_state().uncleanable_reason = "it is damaged"
    cleaned.uncleanable_reason = "it is damaged"
    assert compaction(world, version)["prices"] == cleaned
    world.restart()
    assert compaction(world, version) == {"prices": None, "orders": None}


def compaction(
    world: World, version: int, *, requested: bool = True
) -> dict[str, CompactionStatus | None]:
    """Returns the status by topic, from the bytes of the response."""
    request = DescribeLogDirsRequest(topics=None)
    if requested:
        request_compaction_status(request)
    response = world.begin_request(log_dirs.handle_describe, request, version).response
    response = DescribeLogDirsResponse.read_exactly(response.write(version), version)
    return {
        topic.name: get_compaction_status(topic.partitions[0])
        for result in response.results
        for topic in result.topics
    }


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
