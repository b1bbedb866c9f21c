"""Coordinators live in partitions: they come and go with their leaders, and write through them."""

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
from barnabas.node.coordinators import add_coordinators
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from barnabas.wire.messages.offset_fetch import OffsetFetchRequestGroup, OffsetFetchRequestTopics

GROUPS = "__consumer_offsets"
CLIENT = GroupClient("c", "/there", 8)


class House(World):
    """A broker with its coordinators, which follow the metadata as the node has them do."""

    def start(self, lost_paths: object = ()) -> None:
        super().start()
        nobody: Any = None  # there is no other broker to ask
        self.elections = add_coordinators(self.broker, nobody, os.urandom)
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
        """The error of the group, and the offset."""
        wanted = OffsetFetchRequestGroup(
            group_id=group,
            topics=[OffsetFetchRequestTopics(name="orders", partition_indexes=[0])],
        )
        (found,) = self.broker.groups.fetch([wanted], False, CLIENT).result()
        offset = found.topics[0].partitions[0].committed_offset if found.topics else -1
        return found.error_code, offset


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    house = House(tmp_path, log_flush_interval_messages="9223372036854775807")
    house.create_topic("orders")
    yield house
    house.partitions.close()
    asyncio.set_event_loop(None)
    loop.close()


def code_of(answer: PendingResponse[OffsetCommitResponse]) -> int:
    """The error of the request, or of its only partition."""
    if isinstance(answer.error, KafkaError):
        return answer.error.code
    return answer.result().topics[0].partitions[0].error_code


def test_before_the_topic_exists_nobody_coordinates(house: House) -> None:
    assert code_of(house.commit("g", 1)) == ErrorCode.NOT_COORDINATOR


def test_what_was_committed_is_there_after_a_restart(house: House) -> None:
    house.create_topic(GROUPS, 3)
    for number in range(10):
        assert code_of(house.commit(f"g{number}", number)) == ErrorCode.NONE
    house.restart()
    assert [house.fetch(f"g{number}") for number in range(10)] == [(0, n) for n in range(10)]


def test_who_loses_a_partition_coordinates_its_groups_no_more(house: House) -> None:
    house.create_topic(GROUPS, 1, replicas=(NODE_ID, 2), isr=(NODE_ID,))
    assert code_of(house.commit("g", 1)) == ErrorCode.NONE
    house.lead(GROUPS, leader=2, isr=(2,))
    assert code_of(house.commit("g", 2)) == ErrorCode.NOT_COORDINATOR
    house.lead(GROUPS, leader=NODE_ID, isr=(NODE_ID,))
    assert house.fetch("g") == (0, 1)


def test_a_commit_is_acknowledged_when_all_in_sync_have_it(house: House) -> None:
    house.create_topic(GROUPS, 1, replicas=(NODE_ID, 2))
    answer = house.commit("g", 1)
    assert not answer.is_done
    house.lead(GROUPS, leader=2)  # before the follower had it
    _let_futures_tell()
    assert code_of(answer) == ErrorCode.NOT_COORDINATOR


def test_a_commit_that_is_not_kept_in_time_is_not_acknowledged(house: House) -> None:
    house.create_topic(GROUPS, 1, replicas=(NODE_ID, 2))
    answer = house.commit("g", 1)
    for _, ring in house.timer.alarms:
        ring()
    _let_futures_tell()
    assert code_of(answer) == ErrorCode.COORDINATOR_NOT_AVAILABLE


def test_a_deleted_topic_takes_its_groups_with_it(house: House) -> None:
    house.create_topic(GROUPS, 1)
    house.commit("g", 1)
    house.delete_topic(GROUPS)
    assert code_of(house.commit("g", 1)) == ErrorCode.NOT_COORDINATOR
    house.create_topic(GROUPS, 1, topic_id=b"another topic id"[:16])
    assert house.fetch("g") == (0, -1)


def test_the_topics_own_count_of_partitions_places_the_groups(house: House) -> None:
    house.create_topic(GROUPS, 7)
    assert house.broker.groups.runtime.partition_count == 7


def test_scrapes_count_what_is_there(house: House) -> None:
    house.create_topic(GROUPS, 3)
    house.commit("g", 1)
    gauges = {
        (each.name, *each.labels.values()): each.value for each in house.broker.metrics.gauges()
    }
    assert gauges["kafka_coordinator_group_groupmetadatamanager_numoffsets",] == 1
    assert gauges["kafka_coordinator_group_groupmetadatamanager_numgroupsempty",] == 1
    assert gauges["kafka_server_group_coordinator_metrics_group_count", "classic"] == 1
    partitions = "kafka_server_group_coordinator_metrics_num_partitions"
    assert [gauges[partitions, each] for each in ("active", "loading", "failed")] == [1, 2, 0]


def test_an_image_without_the_topics_elects_nobody(house: House) -> None:
    house.elections.start(MetadataImage())
    assert house.broker.groups.runtime.active_shards() == []


def _let_futures_tell() -> None:
    loop = asyncio.get_event_loop_policy().get_event_loop()
    loop.run_until_complete(asyncio.sleep(0))
