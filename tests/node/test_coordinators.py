"""Coordinators follow the leaders of the partitions of their topic, and write to them."""

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.replication.world import NODE_ID, World

from barnabas.coordinator.groups.context import GroupClient
from barnabas.coordinator.pending_response import PendingResponse
from barnabas.metadata.delta import MetadataDelta
from barnabas.metadata.image import MetadataImage
from barnabas.node.coordinators import CoordinatorLog, add_coordinators
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)

GROUPS = "__consumer_offsets"
CLIENT = GroupClient("c", "/there", 8)


class CoordinatorWorld(World):
    """A broker with its coordinators, which follow the metadata as in a node."""

    def start(self, lost_paths: object = ()) -> None:
        super().start()
        no_peers: Any = None  # there is no other broker
        self.elections = add_coordinators(self.broker, no_peers, os.urandom)
        self.elections.start(self.image)

    def metadata_without_broker(self, *changes: object) -> MetadataDelta:
        delta = super().metadata_without_broker(*changes)  # type: ignore[arg-type]
        self._delta = delta
        return delta

    def metadata(self, *changes: object) -> None:
        super().metadata(*changes)  # type: ignore[arg-type]
        self.elections.on_metadata_change(self._delta, self.image)

    def commit(self, group: str, offset: int) -> PendingResponse[OffsetCommitResponse]:
        partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
        request = OffsetCommitRequest(
            group_id=group,
            generation_id_or_member_epoch=-1,
            topics=[OffsetCommitRequestTopic(name="orders", partitions=[partition])],
        )
        return self.broker.groups.commit(request, CLIENT)

    def fetch(self, group: str) -> tuple[int, int]:
        """Returns the error of the group, and the offset."""
        request = OffsetFetchRequestGroup(
            group_id=group,
            topics=[OffsetFetchRequestTopics(name="orders", partition_indexes=[0])],
        )
        (response,) = self.broker.groups.fetch([request], False, CLIENT).result()
        offset = response.topics[0].partitions[0].committed_offset if response.topics else -1
        return response.error_code, offset


@pytest.fixture
def world(tmp_path: Path) -> Iterator[CoordinatorWorld]:
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    world = CoordinatorWorld(tmp_path, log_flush_interval_messages="9223372036854775807")
    world.create_topic("orders")
    yield world
    world.partitions.close()
    asyncio.set_event_loop(None)
    loop.close()


def code_of(response: PendingResponse[OffsetCommitResponse]) -> int:
    """Returns the error of the request, or of its only partition."""
    if isinstance(response.error, KafkaError):
        return response.error.code
    return response.result().topics[0].partitions[0].error_code


def test_a_commit_before_the_offsets_topic_exists_gets_not_coordinator(
    world: CoordinatorWorld,
) -> None:
    assert code_of(world.commit("g", 1)) == ErrorCode.NOT_COORDINATOR


def test_committed_offsets_survive_a_restart(world: CoordinatorWorld) -> None:
    world.create_topic(GROUPS, 3)
    for number in range(10):
        assert code_of(world.commit(f"g{number}", number)) == ErrorCode.NONE
    world.restart()
    assert [world.fetch(f"g{number}") for number in range(10)] == [(0, n) for n in range(10)]


def test_a_broker_that_loses_a_partition_stops_to_coordinate_its_groups(
    world: CoordinatorWorld,
) -> None:
    world.create_topic(GROUPS, 1, replicas=(NODE_ID, 2), isr=(NODE_ID,))
    assert code_of(world.commit("g", 1)) == ErrorCode.NONE
    world.lead(GROUPS, leader=2, isr=(2,))
    assert code_of(world.commit("g", 2)) == ErrorCode.NOT_COORDINATOR
    world.lead(GROUPS, leader=NODE_ID, isr=(NODE_ID,))
    assert world.fetch("g") == (0, 1)


def test_a_commit_that_is_not_replicated_when_leadership_moves_gets_not_coordinator(
    world: CoordinatorWorld,
) -> None:
    world.create_topic(GROUPS, 1, replicas=(NODE_ID, 2))
    response = world.commit("g", 1)
    assert not response.is_done
    world.lead(GROUPS, leader=2)  # before the follower had it
    _run_callbacks()
    assert code_of(response) == ErrorCode.NOT_COORDINATOR


def test_a_commit_that_is_not_replicated_in_time_gets_coordinator_not_available(
    world: CoordinatorWorld,
) -> None:
    world.create_topic(GROUPS, 1, replicas=(NODE_ID, 2))
    response = world.commit("g", 1)
    for _, ring in world.timer.alarms:
        ring()
    _run_callbacks()
    assert code_of(response) == ErrorCode.COORDINATOR_NOT_AVAILABLE


def test_the_groups_of_a_deleted_offsets_topic_are_gone(world: CoordinatorWorld) -> None:
    world.create_topic(GROUPS, 1)
    world.commit("g", 1)
    world.delete_topic(GROUPS)
    assert code_of(world.commit("g", 1)) == ErrorCode.NOT_COORDINATOR
    world.create_topic(GROUPS, 1, topic_id=b"another topic id"[:16])
    assert world.fetch("g") == (0, -1)


def test_the_partition_count_of_the_topic_applies_instead_of_the_setting(
    world: CoordinatorWorld,
) -> None:
    world.create_topic(GROUPS, 7)
    assert world.broker.groups.runtime.partition_count == 7


def test_metrics_count_groups_offsets_and_partitions(world: CoordinatorWorld) -> None:
    world.create_topic(GROUPS, 3)
    world.commit("g", 1)
    gauges = {
        (gauge.name, *gauge.labels.values()): gauge.value for gauge in world.broker.metrics.gauges()
    }
    assert gauges["kafka_coordinator_group_groupmetadatamanager_numoffsets",] == 1
    assert gauges["kafka_coordinator_group_groupmetadatamanager_numgroupsempty",] == 1
    assert gauges["kafka_server_group_coordinator_metrics_group_count", "classic"] == 1
    partitions = "kafka_server_group_coordinator_metrics_num_partitions"
    assert [gauges[partitions, state] for state in ("active", "loading", "failed")] == [1, 2, 0]


def test_an_image_without_the_offsets_topic_starts_no_coordinator(world: CoordinatorWorld) -> None:
    world.elections.start(MetadataImage())
    assert world.broker.groups.runtime.active_shards() == []


def _run_callbacks() -> None:
    loop = asyncio.get_event_loop_policy().get_event_loop()
    loop.run_until_complete(asyncio.sleep(0))


def test_loading_a_shard_reads_ahead_of_a_cold_log(
    world: CoordinatorWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.create_topic(GROUPS)
    for _ in range(3):
        world.append(GROUPS, bytes(200))
    log = CoordinatorLog(
        world.partition(GROUPS), world.purgatory, world.broker.disk_reads, lambda: world.now_ms
    )
    world.background.hold()
    assert log.read(0, 300)
    assert not world.background.held
    monkeypatch.setattr("barnabas.log.segments.log_slice.count_cached", lambda *_: 0)
    assert log.read(1, 300)
    assert len(world.background.held or ()) == 1
    world.background.release()
