"""Fetches of records that are not in the page cache: a thread loads them, then they are read."""

import errno
import os
from typing import Any

import pytest
from tests.os_faults import fault_in_this_thread
from tests.replication.world import PendingHandler, World, id_of, registration

from barnabas.log.segments.page_cache import NotCached
from barnabas.server.api.fetch import handle
from barnabas.server.disk_reads import PendingRead
from barnabas.server.fetching import fetch_reader
from barnabas.server.fetching.fetch_reader import MAX_COLD_PARTITIONS
from barnabas.server.network.suspended_handler import SuspendedHandler
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    PartitionData,
    ReplicaState,
)

FOLLOWER = 2
VERSION = 17
PARTITIONS = MAX_COLD_PARTITIONS + 3


class ColdDisk:
    """Stands in for `pread_cached`: nothing is cached until a thread has loaded it."""

    def __init__(self) -> None:
        self._cached: set[int] = set()
        self.loads = 0

    def pread(self, fd: int, count: int, position: int) -> bytes:
        if fd not in self._cached:
            raise NotCached(position)
        return os.pread(fd, count, position)

    def load(self, fd: int, position: int) -> None:
        self._cached.add(fd)
        self.loads += 1


@pytest.fixture
def world(world: World) -> World:
    world.metadata(registration(FOLLOWER, rack="r2"))
    world.create_topic("orders", PARTITIONS, replicas=(1, FOLLOWER))
    for index in range(PARTITIONS):
        for value in (b"a", b"b"):
            world.append("orders", value, index=index, acks=1)
        world.partition("orders", index).high_watermark = 2
    return world


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> ColdDisk:
    disk = ColdDisk()
    monkeypatch.setattr(fetch_reader, "pread_cached", disk.pread)
    monkeypatch.setattr("barnabas.log.segments.log_segments.load", disk.load)
    return disk


def request(*indexes: int, replica_id: int = -1, **fields: Any) -> FetchRequest:
    """A fetch of the second batch of partitions, which an index search finds."""
    return FetchRequest(
        replica_state=ReplicaState(replica_id=replica_id, replica_epoch=5),
        min_bytes=1,
        topics=[
            FetchTopic(
                topic_id=id_of("orders"),
                partitions=[
                    FetchPartition(partition=index, fetch_offset=1, partition_max_bytes=1 << 20)
                    for index in indexes
                ],
            )
        ],
        **{"max_wait_ms": 500, "session_epoch": -1, **fields},
    )


def begin(world: World, *indexes: int, **fields: Any) -> PendingHandler:
    return world.begin_request(handle, request(*indexes, **fields), VERSION)


def results(pending: PendingHandler) -> list[PartitionData]:
    pending.resume()
    assert pending.is_complete
    return [result for topic in pending.response.responses for result in topic.partitions]


def with_records(found: list[PartitionData]) -> list[int]:
    return [result.partition_index for result in found if result.records]


@pytest.mark.parametrize("replica_id", [-1, FOLLOWER])
def test_a_cold_partition_is_read_when_a_thread_has_loaded_it(
    world: World, disk: ColdDisk, replica_id: int
) -> None:
    world.background.hold()
    pending = begin(world, 0, replica_id=replica_id)
    assert isinstance(pending.waits_for, PendingRead)
    assert disk.loads == 0
    world.background.release()
    (result,) = results(pending)
    assert (result.error_code, with_records([result]), result.high_watermark) == (0, [0], 2)
    assert disk.loads == 1


def test_a_partition_in_the_page_cache_is_read_at_once(world: World) -> None:
    world.background.hold()
    assert with_records(results(begin(world, 0))) == [0]


def test_the_partitions_of_a_response_keep_their_order(world: World, disk: ColdDisk) -> None:
    begin(world, 1)
    assert disk.loads == 1
    found = results(begin(world, 0, 1, 2))
    assert with_records(found) == [0, 1, 2]


def test_a_fetch_loads_few_partitions_and_the_next_one_others(world: World, disk: ColdDisk) -> None:
    pending = begin(world, *range(PARTITIONS), session_epoch=0)
    first = results(pending)
    assert [result.partition_index for result in first] == list(range(PARTITIONS))
    assert with_records(first) == list(range(MAX_COLD_PARTITIONS))
    assert {result.high_watermark for result in first} == {2}
    session_id = pending.response.session_id
    second = begin(world, session_id=session_id, session_epoch=1)
    assert set(range(MAX_COLD_PARTITIONS, PARTITIONS)) <= set(with_records(results(second)))
    assert disk.loads == PARTITIONS


def test_a_fetch_that_waits_for_records_loads_what_it_then_finds(
    world: World, disk: ColdDisk
) -> None:
    partition = world.partition("orders")
    partition.high_watermark = 1
    pending = begin(world, 0)
    assert not pending.is_complete
    partition.high_watermark = 2
    world.background.hold()
    world.purgatory.notify(partition, 1)
    pending.resume()
    assert isinstance(pending.waits_for, PendingRead)
    world.background.release()
    assert with_records(results(pending)) == [0]


def test_a_page_that_is_lost_again_and_again_is_waited_for(
    world: World, disk: ColdDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk, "_cached", frozenset())
    monkeypatch.setattr("barnabas.log.segments.log_segments.load", lambda *_: None)
    assert with_records(results(begin(world, 0))) == [0]


@pytest.mark.usefixtures("disk")
def test_a_disk_that_fails_during_a_load_is_reported(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> bytes:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr("barnabas.log.segments.log_segments.load", fail)
    monkeypatch.setattr(os, "pread", fault_in_this_thread("pread", fail))
    (result,) = results(begin(world, 0))
    assert result.error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert world.partition("orders").error_code == ErrorCode.KAFKA_STORAGE_ERROR


def test_a_client_that_disconnects_abandons_its_load(world: World, disk: ColdDisk) -> None:
    world.background.hold()
    ended: list[BaseException | None] = []
    coroutine = handle(request(0), world.call(VERSION))
    loop: Any = None
    suspended = SuspendedHandler(
        coroutine, coroutine.send(None), lambda _, failure: ended.append(failure), loop
    )
    suspended.abandon()
    world.background.release()
    assert disk.loads == 1  # it had begun
    assert len(world.broker.disk_reads) == 0
