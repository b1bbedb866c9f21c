"""ElectLeaders, AlterPartition and AssignReplicasToDirs: partitions change on demand."""

from typing import Any

import pytest
from tests.controller.conftest import World, broker, error_response_to
from tests.controller.test_brokers import beat, create, partition

from barnabas.metadata.states import NO_LEADER
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages import assign_replicas_to_dirs as dirs
from barnabas.wire.messages.alter_partition import (
    AlterPartitionRequest,
    BrokerState,
    RequestPartitionData,
    RequestTopicData,
)
from barnabas.wire.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from barnabas.wire.messages.metadata_records import (
    BrokerRegistrationChangeRecord,
    PartitionChangeRecord,
)

# ElectLeaders


def elect(world: World, election_type: int, index: int = 0) -> int:
    requested = [TopicPartitions(topic="orders", partitions=[index])]
    request = ElectLeadersRequest(election_type=election_type, topic_partitions=requested)
    response: Any = world.decide(request).response
    code: int = response.replica_election_results[0].partition_result[0].error_code
    return code


def test_elect_leaders_elects_the_preferred_leader() -> None:
    world = World(broker(1), broker(2))
    topic_id = create(world, replication_factor=2)
    assert elect(world, 0) == ErrorCode.ELECTION_NOT_NEEDED
    assert elect(world, 0, index=7) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    beat(world, 5, want_fence=True)
    assert elect(world, 0) == ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
    beat(world, 5)
    world.apply(PartitionChangeRecord(partition_id=0, topic_id=topic_id, isr=[1, 2]))
    assert elect(world, 0) == ErrorCode.NONE
    assert partition(world, topic_id).leader == 1


def test_an_unclean_election_only_concerns_leaderless_partitions(one_broker: World) -> None:
    topic_id = create(one_broker)
    assert elect(one_broker, 1) == ErrorCode.ELECTION_NOT_NEEDED
    one_broker.apply(
        PartitionChangeRecord(partition_id=0, topic_id=topic_id, isr=[], leader=NO_LEADER)
    )
    assert elect(one_broker, 1) == ErrorCode.NONE
    assert partition(one_broker, topic_id).leader == 1


def test_an_election_for_all_partitions_reports_only_the_changed_ones(one_broker: World) -> None:
    create(one_broker)
    response: Any = one_broker.decide(ElectLeadersRequest(topic_partitions=None)).response
    assert [r.partition_result for r in response.replica_election_results] == [[]]


def test_an_unknown_election_type_is_rejected(one_broker: World) -> None:
    request = ElectLeadersRequest(election_type=5, topic_partitions=[])
    with pytest.raises(KafkaError) as error:
        one_broker.decide(request)
    assert error_response_to(request, error.value).error_code == ErrorCode.INVALID_REQUEST


# AlterPartition


def alter(world: World, topic_id: bytes, isr: list[int], **changes: Any) -> Any:
    values: dict[str, Any] = {
        "partition_index": 0,
        "leader_epoch": 0,
        "partition_epoch": 0,
        "new_isr_with_epochs": [BrokerState(broker_id=item, broker_epoch=5) for item in isr],
    }
    requested = RequestPartitionData(**{**values, **changes})
    request = AlterPartitionRequest(
        broker_id=1,
        broker_epoch=5,
        topics=[RequestTopicData(topic_id=topic_id, partitions=[requested])],
    )
    response: Any = world.decide(request).response
    return response.topics[0].partitions[0]


def test_a_leader_shrinks_and_expands_its_isr() -> None:
    world = World(broker(1), broker(2))
    topic_id = create(world, replication_factor=2)
    outcome = alter(world, topic_id, [1])
    assert (outcome.error_code, outcome.isr, outcome.partition_epoch) == (0, [1], 1)
    outcome = alter(world, topic_id, [1, 2], partition_epoch=1)
    assert (outcome.error_code, outcome.isr, outcome.leader_epoch) == (0, [1, 2], 0)
    assert partition(world, topic_id).isr == (1, 2)


@pytest.mark.parametrize(
    ("isr", "changes", "code"),
    [
        ([1], {"leader_epoch": 1}, ErrorCode.NOT_CONTROLLER),
        ([1], {"partition_epoch": 9}, ErrorCode.NOT_CONTROLLER),
        ([1], {"leader_epoch": -1}, ErrorCode.FENCED_LEADER_EPOCH),
        ([1], {"partition_epoch": -1}, ErrorCode.INVALID_UPDATE_VERSION),
        ([1], {"partition_index": 7}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ([2], {}, ErrorCode.INVALID_REQUEST),
        ([1, 1], {}, ErrorCode.INVALID_REQUEST),
        ([1, 9], {}, ErrorCode.INVALID_REQUEST),
        ([1], {"leader_recovery_state": 1}, ErrorCode.INVALID_REQUEST),
        ([1, 3], {}, ErrorCode.INELIGIBLE_REPLICA),
    ],
)
def test_an_invalid_isr_is_rejected(
    isr: list[int], changes: dict[str, Any], code: ErrorCode
) -> None:
    world = World(broker(1), broker(2), broker(3))
    topic_id = create(world, replication_factor=3)
    world.apply(BrokerRegistrationChangeRecord(broker_id=3, broker_epoch=5, fenced=1))
    assert alter(world, topic_id, isr, **changes).error_code == code


def test_a_replica_with_an_old_broker_epoch_cannot_join_the_isr() -> None:
    world = World(broker(1), broker(2))
    topic_id = create(world, replication_factor=2)
    stale = [BrokerState(broker_id=1, broker_epoch=5), BrokerState(broker_id=2, broker_epoch=4)]
    outcome = alter(world, topic_id, [], new_isr_with_epochs=stale)
    assert outcome.error_code == ErrorCode.INELIGIBLE_REPLICA


def test_a_partition_that_is_listed_twice_is_altered_once() -> None:
    world = World(broker(1), broker(2))
    topic_id = create(world, replication_factor=2)
    requested = [
        RequestPartitionData(
            partition_index=0,
            leader_epoch=0,
            partition_epoch=0,
            new_isr_with_epochs=[BrokerState(broker_id=1, broker_epoch=5)],
        )
    ] * 2
    request = AlterPartitionRequest(
        broker_id=1,
        broker_epoch=5,
        topics=[RequestTopicData(topic_id=topic_id, partitions=requested)],
    )
    decision = world.decide(request)
    response: Any = decision.response
    codes = [item.error_code for item in response.topics[0].partitions]
    assert codes == [ErrorCode.NONE, ErrorCode.INVALID_UPDATE_VERSION]
    assert len(decision.records) == 1


def test_an_unknown_topic_is_reported(one_broker: World) -> None:
    assert alter(one_broker, b"u" * 16, [1]).error_code == ErrorCode.UNKNOWN_TOPIC_ID


# AssignReplicasToDirs


def assign(world: World, topic_id: bytes, index: int, directory: bytes) -> int:
    topic = dirs.RequestTopicData(
        topic_id=topic_id, partitions=[dirs.RequestPartitionData(partition_index=index)]
    )
    request = dirs.AssignReplicasToDirsRequest(
        broker_id=1,
        broker_epoch=5,
        directories=[dirs.RequestDirectoryData(id=directory, topics=[topic])],
    )
    response: Any = world.decide(request).response
    code: int = response.directories[0].topics[0].partitions[0].error_code
    return code


def test_a_broker_assigns_its_replicas_to_directories() -> None:
    directories = (b"f" * 16, b"s" * 16)
    world = World(broker(1, log_dirs=directories))
    topic_id = create(world)
    assert assign(world, topic_id, 0, directories[1]) == 0
    assert partition(world, topic_id).directories == (directories[1],)
    assert assign(world, topic_id, 7, directories[1]) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert assign(world, b"u" * 16, 0, directories[1]) == ErrorCode.UNKNOWN_TOPIC_ID


def test_a_replica_in_a_lost_directory_does_not_lead(one_broker: World) -> None:
    topic_id = create(one_broker)
    assert assign(one_broker, topic_id, 0, b"x" * 16) == 0
    assert partition(one_broker, topic_id).leader == NO_LEADER


def test_a_failed_directory_affects_only_its_own_replicas() -> None:
    first, second = b"f" * 16, b"s" * 16
    world = World(broker(1, log_dirs=(first, second)), broker(2))
    topic_id = create(world, num_partitions=2, replication_factor=2)
    for index, directory in enumerate((first, second)):
        assign(world, topic_id, index, directory)
    beat(world, 5, offline_log_dirs=[first])
    assert partition(world, topic_id, 0).isr == (2,)
    assert set(partition(world, topic_id, 1).isr) == {1, 2}
    assert world.image.brokers[1].log_dirs == (second,)
    assert beat(world, 5, offline_log_dirs=[first])[1] == []
