"""Groups whose coordinator moves between brokers keep their committed offsets, and no others."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.node.brokers import Cluster

from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages import metadata_records as records
from barnabas.wire.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)

OFFSETS = "__consumer_offsets"


class GroupCluster(Cluster):
    """Broker 1 leads the offsets topic; 2 and 3 are followers."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, 3)
        self.create_topic("orders", 1)
        self.create_topic(OFFSETS, 1, replicas=(1, 2, 3))

    def begin_commit(self, broker_id: int, offset: int) -> list[Any]:
        """Returns the list to which the response is added."""
        partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
        request = OffsetCommitRequest(
            group_id="g",
            generation_id_or_member_epoch=-1,
            topics=[OffsetCommitRequestTopic(name="orders", partitions=[partition])],
        )
        responses: list[Any] = []
        self.brokers[broker_id].start_request(request, 8, responses.append)
        return responses

    def commit(self, broker_id: int, offset: int) -> ErrorCode:
        responses = self.begin_commit(broker_id, offset)
        self.run(6_000)
        return ErrorCode(responses[0].topics[0].partitions[0].error_code)

    def begin_fetch(self, broker_id: int) -> list[Any]:
        topic = OffsetFetchRequestTopics(name="orders", partition_indexes=[0])
        group = OffsetFetchRequestGroup(group_id="g", topics=[topic])
        responses: list[Any] = []
        self.brokers[broker_id].start_request(
            OffsetFetchRequest(groups=[group]), 9, responses.append
        )
        return responses

    def fetch(self, broker_id: int) -> int | ErrorCode:
        responses = self.begin_fetch(broker_id)
        self.run(6_000)
        group = responses[0].groups[0]
        if group.error_code:
            return ErrorCode(group.error_code)
        offset: int = group.topics[0].partitions[0].committed_offset
        return offset

    def end(self, broker_id: int) -> int:
        return self.brokers[broker_id].partition(OFFSETS).log.log_end_offset


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[GroupCluster]:
    cluster = GroupCluster(tmp_path)
    yield cluster
    cluster.close()


def test_the_next_coordinator_has_the_committed_offsets(cluster: GroupCluster) -> None:
    assert cluster.commit(1, 7) is ErrorCode.NONE
    cluster.lead(OFFSETS, 0, 2)
    assert cluster.fetch(2) == 7
    assert cluster.fetch(1) is ErrorCode.NOT_COORDINATOR
    assert cluster.commit(1, 8) is ErrorCode.NOT_COORDINATOR
    assert cluster.commit(2, 8) is ErrorCode.NONE


def test_a_coordinator_that_leads_again_has_the_commits_of_the_one_between(
    cluster: GroupCluster,
) -> None:
    cluster.commit(1, 7)
    cluster.lead(OFFSETS, 0, 2)
    assert cluster.commit(2, 8) is ErrorCode.NONE
    cluster.lead(OFFSETS, 0, 1)
    assert cluster.fetch(1) == 8


def test_an_isolated_coordinator_acknowledges_no_commit_and_truncates_it_when_it_is_back(
    cluster: GroupCluster,
) -> None:
    assert cluster.commit(1, 7) is ErrorCode.NONE
    cluster.network.isolated.add(1)
    cluster.lagging[1] = []
    cluster.lead(OFFSETS, 0, 2, isr=(2, 3))
    assert cluster.commit(1, 666) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert cluster.fetch(1) is ErrorCode.COORDINATOR_NOT_AVAILABLE, "it may still be lost"
    assert cluster.end(1) == 2
    cluster.network.isolated.clear()
    cluster.catch_up(1)
    cluster.run(100)
    assert cluster.end(1) == 1
    cluster.lead(OFFSETS, 0, 1, isr=(1, 2, 3))
    assert cluster.fetch(1) == 7


def test_a_pending_commit_fails_at_once_when_another_broker_leads(cluster: GroupCluster) -> None:
    cluster.network.isolated.add(1)
    responses = cluster.begin_commit(1, 7)
    cluster.run(100)
    assert not responses
    cluster.lead(OFFSETS, 0, 2, isr=(2, 3))
    cluster.run(1)
    assert responses[0].topics[0].partitions[0].error_code == ErrorCode.NOT_COORDINATOR


def test_a_coordinator_that_lost_and_regained_leadership_in_one_change_loads_again(
    cluster: GroupCluster,
) -> None:
    """The shard of an earlier epoch must not continue: another broker may have led in between."""
    cluster.commit(1, 7)
    shard = cluster.brokers[1].broker.groups.runtime.shard(0)
    topic = cluster.image.topics.by_name(OFFSETS)
    assert topic is not None
    cluster.metadata(
        *(
            records.PartitionChangeRecord(topic_id=topic.topic_id, partition_id=0, leader=leader)
            for leader in (2, 1)
        )
    )
    assert cluster.brokers[1].broker.groups.runtime.shard(0) is not shard
    assert cluster.fetch(1) == 7
    assert cluster.commit(1, 8) is ErrorCode.NONE


def test_a_new_coordinator_returns_no_offset_before_it_is_committed(cluster: GroupCluster) -> None:
    cluster.commit(1, 7)
    cluster.begin_commit(1, 8)
    cluster.run(7)  # brokers 2 and 3 have it, which 1 does not know yet
    assert (cluster.end(2), cluster.end(3)) == (2, 2)
    cluster.network.isolated.update((1, 3))
    cluster.lead(OFFSETS, 0, 2, isr=(2, 3))
    responses = cluster.begin_fetch(2)
    cluster.run(1_000)
    assert not responses, "3 is in sync, and has not fetched beyond it"
    cluster.network.isolated.remove(3)
    cluster.run(100)
    assert responses[0].groups[0].topics[0].partitions[0].committed_offset == 8


def test_a_commit_under_min_isr_gets_coordinator_not_available(cluster: GroupCluster) -> None:
    cluster.metadata(
        records.ConfigRecord(
            resource_type=2, resource_name=OFFSETS, name="min.insync.replicas", value="2"
        )
    )
    cluster.network.isolated.update((2, 3))
    cluster.lead(OFFSETS, 0, 1, isr=(1,))
    assert cluster.commit(1, 7) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert cluster.end(1) == 0


def test_a_commit_that_timed_out_is_committed_when_its_replicas_are_back(
    cluster: GroupCluster,
) -> None:
    cluster.metadata(
        records.ConfigRecord(
            resource_type=2, resource_name=OFFSETS, name="min.insync.replicas", value="2"
        )
    )
    cluster.network.isolated.update((2, 3))
    responses = cluster.begin_commit(1, 7)
    cluster.run(100)
    topic = cluster.image.topics.by_name(OFFSETS)
    assert topic is not None
    for isr in ([1], [1, 2, 3]):
        cluster.metadata(
            records.PartitionChangeRecord(topic_id=topic.topic_id, partition_id=0, isr=isr)
        )
        cluster.run(6_000)
        cluster.network.isolated.clear()
    error_code = responses[0].topics[0].partitions[0].error_code
    assert error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert cluster.fetch(1) == 7
