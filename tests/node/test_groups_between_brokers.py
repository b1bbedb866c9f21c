"""Groups whose coordinator moves from broker to broker: what was answered stays, nothing else."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.node.brokers import Cluster

from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages import metadata_records as records
from barnabas.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from barnabas.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)

OFFSETS = "__consumer_offsets"


class House(Cluster):
    """Broker 1 keeps the groups, 2 and 3 have copies."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, 3)
        self.create_topic("orders", 1)
        self.create_topic(OFFSETS, 1, replicas=(1, 2, 3))

    def begin_commit(self, broker_id: int, offset: int) -> list[Any]:
        """The answers that come, by and by."""
        partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
        request = OffsetCommitRequest(
            group_id="g",
            generation_id_or_member_epoch=-1,
            topics=[OffsetCommitRequestTopic(name="orders", partitions=[partition])],
        )
        answers: list[Any] = []
        self.members[broker_id].begin(request, 8, answers.append)
        return answers

    def commit(self, broker_id: int, offset: int) -> ErrorCode:
        answers = self.begin_commit(broker_id, offset)
        self.run(6_000)
        return ErrorCode(answers[0].topics[0].partitions[0].error_code)

    def begin_fetch(self, broker_id: int) -> list[Any]:
        topic = OffsetFetchRequestTopics(name="orders", partition_indexes=[0])
        group = OffsetFetchRequestGroup(group_id="g", topics=[topic])
        answers: list[Any] = []
        self.members[broker_id].begin(OffsetFetchRequest(groups=[group]), 9, answers.append)
        return answers

    def fetch(self, broker_id: int) -> int | ErrorCode:
        answers = self.begin_fetch(broker_id)
        self.run(6_000)
        group = answers[0].groups[0]
        if group.error_code:
            return ErrorCode(group.error_code)
        offset: int = group.topics[0].partitions[0].committed_offset
        return offset

    def end(self, broker_id: int) -> int:
        return self.members[broker_id].partition(OFFSETS).log.log_end_offset


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    house = House(tmp_path)
    yield house
    house.close()


def test_what_was_committed_is_there_at_the_next_coordinator(house: House) -> None:
    assert house.commit(1, 7) is ErrorCode.NONE
    house.lead(OFFSETS, 0, 2)
    assert house.fetch(2) == 7
    assert house.fetch(1) is ErrorCode.NOT_COORDINATOR
    assert house.commit(1, 8) is ErrorCode.NOT_COORDINATOR
    assert house.commit(2, 8) is ErrorCode.NONE


def test_what_others_wrote_meanwhile_is_there_for_who_leads_again(house: House) -> None:
    house.commit(1, 7)
    house.lead(OFFSETS, 0, 2)
    assert house.commit(2, 8) is ErrorCode.NONE
    house.lead(OFFSETS, 0, 1)
    assert house.fetch(1) == 8


def test_a_leader_cut_off_acknowledges_nothing_and_forgets_it_when_it_is_back(
    house: House,
) -> None:
    assert house.commit(1, 7) is ErrorCode.NONE
    house.network.cut_off.add(1)
    house.behind[1] = []
    house.lead(OFFSETS, 0, 2, isr=(2, 3))
    assert house.commit(1, 666) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert house.fetch(1) is ErrorCode.COORDINATOR_NOT_AVAILABLE, "it may yet be lost"
    assert house.end(1) == 2
    house.network.cut_off.clear()
    house.catch_up(1)
    house.run(100)
    assert house.end(1) == 1
    house.lead(OFFSETS, 0, 1, isr=(1, 2, 3))
    assert house.fetch(1) == 7


def test_who_waits_for_a_commit_hears_at_once_that_another_leads(house: House) -> None:
    house.network.cut_off.add(1)
    answers = house.begin_commit(1, 7)
    house.run(100)
    assert not answers
    house.lead(OFFSETS, 0, 2, isr=(2, 3))
    house.run(1)
    assert answers[0].topics[0].partitions[0].error_code == ErrorCode.NOT_COORDINATOR


def test_back_and_forth_in_one_change_loads_anew(house: House) -> None:
    """The shard of an earlier epoch must not go on: another may have led in between."""
    house.commit(1, 7)
    shard = house.members[1].broker.groups.runtime.shard(0)
    topic = house.image.topics.by_name(OFFSETS)
    assert topic is not None
    house.metadata(
        *(
            records.PartitionChangeRecord(topic_id=topic.topic_id, partition_id=0, leader=leader)
            for leader in (2, 1)
        )
    )
    assert house.members[1].broker.groups.runtime.shard(0) is not shard
    assert house.fetch(1) == 7
    assert house.commit(1, 8) is ErrorCode.NONE


def test_a_new_coordinator_tells_of_nothing_before_it_is_committed(house: House) -> None:
    house.commit(1, 7)
    house.begin_commit(1, 8)
    house.run(7)  # it has reached 2 and 3, and 1 does not know that yet
    assert (house.end(2), house.end(3)) == (2, 2)
    house.network.cut_off.update((1, 3))
    house.lead(OFFSETS, 0, 2, isr=(2, 3))
    answers = house.begin_fetch(2)
    house.run(1_000)
    assert not answers, "3 is in sync, and has not confirmed it"
    house.network.cut_off.remove(3)
    house.run(100)
    assert answers[0].groups[0].topics[0].partitions[0].committed_offset == 8


def test_too_few_replicas_in_sync_are_told_as_no_coordinator(house: House) -> None:
    house.metadata(
        records.ConfigRecord(
            resource_type=2, resource_name=OFFSETS, name="min.insync.replicas", value="2"
        )
    )
    house.network.cut_off.update((2, 3))
    house.lead(OFFSETS, 0, 1, isr=(1,))
    assert house.commit(1, 7) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert house.end(1) == 0


def test_a_commit_that_lost_its_replicas_on_the_way_counts_when_they_are_back(
    house: House,
) -> None:
    house.metadata(
        records.ConfigRecord(
            resource_type=2, resource_name=OFFSETS, name="min.insync.replicas", value="2"
        )
    )
    house.network.cut_off.update((2, 3))
    answers = house.begin_commit(1, 7)
    house.run(100)
    topic = house.image.topics.by_name(OFFSETS)
    assert topic is not None
    for isr in ([1], [1, 2, 3]):
        house.metadata(
            records.PartitionChangeRecord(topic_id=topic.topic_id, partition_id=0, isr=isr)
        )
        house.run(6_000)
        house.network.cut_off.clear()
    told = answers[0].topics[0].partitions[0].error_code
    assert told == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert house.fetch(1) == 7
