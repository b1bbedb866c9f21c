"""A broker's life as the controller sees it, the records as Kafka 4.3 writes them."""

from typing import Any

import pytest
from tests.controller.conftest import CLUSTER_ID, World, broker

from barnabas.controller import (
    allocate_producer_ids,
    alter_partition,
    assign_replicas_to_dirs,
    broker_heartbeat,
    broker_registration,
    controller_registration,
    create_topics,
    elect_leaders,
    unregister_broker,
)
from barnabas.metadata.features import SUPPORTED
from barnabas.metadata.states import NO_LEADER, PartitionState
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages import assign_replicas_to_dirs as dirs
from barnabas.wire.messages.allocate_producer_ids import AllocateProducerIdsRequest
from barnabas.wire.messages.alter_partition import (
    AlterPartitionRequest,
    BrokerState,
    RequestPartitionData,
    RequestTopicData,
)
from barnabas.wire.messages.broker_heartbeat import BrokerHeartbeatRequest
from barnabas.wire.messages.broker_registration import (
    BrokerRegistrationRequest,
    Feature,
    Listener,
)
from barnabas.wire.messages.controller_registration import ControllerRegistrationRequest
from barnabas.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from barnabas.wire.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from barnabas.wire.messages.metadata_records import (
    BrokerRegistrationChangeRecord,
    PartitionChangeRecord,
    RegisterControllerRecord,
    UnregisterBrokerRecord,
)
from barnabas.wire.messages.unregister_broker import UnregisterBrokerRequest

FIRST_LIFE, SECOND_LIFE = b"1" * 16, b"2" * 16
LOG_DIR = b"d" * 16


def registration(broker_id: int = 1, **changes: Any) -> BrokerRegistrationRequest:
    values: dict[str, Any] = {
        "broker_id": broker_id,
        "cluster_id": CLUSTER_ID,
        "incarnation_id": FIRST_LIFE,
        "listeners": [Listener(name="PLAINTEXT", host="localhost", port=9092)],
        "features": [
            Feature(name=name, min_supported_version=each.min, max_supported_version=each.max)
            for name, each in SUPPORTED.items()
        ],
        "log_dirs": [LOG_DIR],
    }
    return BrokerRegistrationRequest(**{**values, **changes})


def register(world: World, **changes: Any) -> int:
    response: Any = world.decide(broker_registration, registration(**changes)).response
    epoch: int = response.broker_epoch
    return epoch


def beat(world: World, epoch: int, **wants: Any) -> tuple[Any, list[Any]]:
    values: dict[str, Any] = {"current_metadata_offset": world.offset, **wants}
    request = BrokerHeartbeatRequest(broker_id=1, broker_epoch=epoch, **values)
    decision = world.decide(broker_heartbeat, request)
    return decision.response, decision.records


def create(world: World, name: str = "orders", **options: Any) -> bytes:
    counts = {"num_partitions": 1, "replication_factor": 1, **options}
    request = CreateTopicsRequest(topics=[CreatableTopic(name=name, **counts)])
    response: Any = world.decide(create_topics, request).response
    assert response.topics[0].error_code == 0, response.topics[0].error_message
    topic_id: bytes = response.topics[0].topic_id
    return topic_id


def partition(world: World, topic_id: bytes, index: int = 0) -> PartitionState:
    state = world.image.partition(topic_id, index)
    assert state is not None
    return state


def test_a_broker_registers_is_let_in_and_leaves() -> None:
    world = World()
    epoch = register(world)
    assert epoch == world.offset - 1
    assert world.image.brokers[1].fenced

    response, records = beat(world, epoch, current_metadata_offset=epoch - 1)
    assert (response.is_caught_up, response.is_fenced, records) == (False, True, [])
    response, records = beat(world, epoch, want_fence=True)
    assert (response.is_caught_up, response.is_fenced, records) == (True, True, [])
    response, records = beat(world, epoch)
    assert (response.is_caught_up, response.is_fenced) == (True, False)
    assert records == [BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=epoch, fenced=-1)]

    topic_id = create(world)
    response, records = beat(world, epoch, want_shut_down=True)
    assert (response.is_fenced, response.should_shut_down) == (False, False)
    assert records == [
        BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=epoch, in_controlled_shutdown=1),
        PartitionChangeRecord(
            partition_id=0,
            topic_id=topic_id,
            isr=[],
            leader=-1,
            eligible_leader_replicas=[1],
            last_known_elr=[1],
        ),
    ]
    response, records = beat(world, epoch, want_shut_down=True)
    assert (response.is_fenced, response.should_shut_down) == (True, True)
    assert records == [BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=epoch, fenced=1)]


def test_after_a_clean_stop_it_leads_again_what_it_led() -> None:
    world = World()
    epoch = register(world)
    beat(world, epoch)
    topic_id = create(world)
    beat(world, epoch, want_shut_down=True)
    beat(world, epoch, want_shut_down=True)

    again = register(world, incarnation_id=SECOND_LIFE, previous_broker_epoch=epoch)
    assert again > epoch
    _, records = beat(world, again)
    assert records[1:] == [
        PartitionChangeRecord(
            partition_id=0,
            topic_id=topic_id,
            isr=[1],
            leader=1,
            eligible_leader_replicas=[],
            last_known_elr=[],
        )
    ]
    assert partition(world, topic_id).leader_epoch == 2


def test_after_a_crash_it_leads_again_but_has_to_recover() -> None:
    world = World()
    beat(world, register(world))
    topic_id = create(world)
    world.now_ms += 9000
    epoch = register(world, incarnation_id=SECOND_LIFE)
    assert (partition(world, topic_id).leader, partition(world, topic_id).elr) == (NO_LEADER, ())
    _, records = beat(world, epoch)
    assert records[1:] == [
        PartitionChangeRecord(
            partition_id=0,
            topic_id=topic_id,
            isr=[1],
            leader=1,
            leader_recovery_state=1,
            last_known_elr=[],
        )
    ]


def test_the_same_process_registers_again_without_losing_its_place() -> None:
    world = World()
    epoch = register(world)
    beat(world, epoch)
    assert register(world) == epoch
    assert not world.image.brokers[1].fenced


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"cluster_id": "another"}, ErrorCode.INCONSISTENT_CLUSTER_ID),
        ({"log_dirs": []}, ErrorCode.INVALID_REGISTRATION),
        ({"log_dirs": [LOG_DIR, LOG_DIR]}, ErrorCode.INVALID_REGISTRATION),
        ({"log_dirs": [bytes(16)]}, ErrorCode.INVALID_REGISTRATION),
        ({"features": []}, ErrorCode.INVALID_REGISTRATION),
        ({"broker_id": 2}, ErrorCode.INVALID_REGISTRATION),  # with the directory of broker 1
        ({"incarnation_id": SECOND_LIFE}, ErrorCode.DUPLICATE_BROKER_REGISTRATION),
        (
            {
                "features": [
                    Feature(
                        name="metadata.version", min_supported_version=7, max_supported_version=29
                    )
                ]
            },
            ErrorCode.UNSUPPORTED_VERSION,
        ),
    ],
)
def test_who_does_not_fit_is_not_registered(changes: dict[str, Any], code: ErrorCode) -> None:
    world = World()
    beat(world, register(world))
    with pytest.raises(KafkaError) as refused:
        register(world, **changes)
    assert refused.value.code is code
    response = broker_registration.refuse(registration(), refused.value)
    assert (response.error_code, response.broker_epoch) == (code, -1)


def test_only_the_registered_process_is_listened_to(one_broker: World) -> None:
    with pytest.raises(KafkaError) as refused:
        beat(one_broker, epoch=4)
    assert refused.value.code is ErrorCode.STALE_BROKER_EPOCH
    with pytest.raises(KafkaError):
        one_broker.decide(
            allocate_producer_ids, AllocateProducerIdsRequest(broker_id=7, broker_epoch=5)
        )


def test_leaders_move_when_their_broker_is_fenced() -> None:
    world = World(broker(1), broker(2))
    topic_id = create(world, replication_factor=2)
    _, records = beat(world, 5, want_fence=True)
    state = partition(world, topic_id)
    assert (state.leader, state.isr, state.leader_epoch) == (2, (2,), 1)
    assert isinstance(records[-1], BrokerRegistrationChangeRecord)
    assert world.image.brokers[1].fenced


def test_a_failed_directory_takes_only_its_replicas_along() -> None:
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


def test_cordoned_directories_are_noted_once(one_broker: World) -> None:
    assert len(beat(one_broker, 5, cordoned_log_dirs=[])[1]) == 1
    assert beat(one_broker, 5, cordoned_log_dirs=[])[1] == []
    assert one_broker.image.brokers[1].cordoned_log_dirs == ()


def test_shutting_down_waits_until_the_others_know() -> None:
    world = World(broker(1), broker(2))
    create(world, replication_factor=2)
    request = BrokerHeartbeatRequest(broker_id=2, broker_epoch=5, current_metadata_offset=10)
    world.decide(broker_heartbeat, request)
    beat(world, 5, want_shut_down=True)
    response, _ = beat(world, 5, want_shut_down=True)
    assert not response.should_shut_down
    request.current_metadata_offset = world.offset
    world.decide(broker_heartbeat, request)
    response, _ = beat(world, 5, want_shut_down=True)
    assert response.should_shut_down


def test_a_broker_is_forgotten(one_broker: World) -> None:
    create(one_broker)
    decision = one_broker.decide(unregister_broker, UnregisterBrokerRequest(broker_id=1))
    assert decision.records[-1] == UnregisterBrokerRecord(broker_id=1, broker_epoch=5)
    assert one_broker.image.brokers == {}
    with pytest.raises(KafkaError) as refused:
        one_broker.decide(unregister_broker, UnregisterBrokerRequest(broker_id=1))
    assert refused.value.code is ErrorCode.BROKER_ID_NOT_REGISTERED


def test_producer_ids_come_in_blocks_that_never_overlap(one_broker: World) -> None:
    request = AllocateProducerIdsRequest(broker_id=1, broker_epoch=5)
    starts = []
    for _ in range(3):
        response: Any = one_broker.decide(allocate_producer_ids, request).response
        starts.append((response.producer_id_start, response.producer_id_len))
    assert starts == [(0, 1000), (1000, 1000), (2000, 1000)]


def test_a_controller_registers(one_broker: World) -> None:
    request = ControllerRegistrationRequest(controller_id=1, incarnation_id=FIRST_LIFE)
    decision = one_broker.decide(controller_registration, request)
    assert decision.records == [
        RegisterControllerRecord(controller_id=1, incarnation_id=FIRST_LIFE)
    ]


# ElectLeaders


def elect(world: World, election_type: int, index: int = 0) -> int:
    asked = [TopicPartitions(topic="orders", partitions=[index])]
    request = ElectLeadersRequest(election_type=election_type, topic_partitions=asked)
    response: Any = world.decide(elect_leaders, request).response
    code: int = response.replica_election_results[0].partition_result[0].error_code
    return code


def test_the_preferred_leader_takes_over_on_demand() -> None:
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


def test_an_unclean_election_is_for_partitions_without_a_leader(one_broker: World) -> None:
    topic_id = create(one_broker)
    assert elect(one_broker, 1) == ErrorCode.ELECTION_NOT_NEEDED
    one_broker.apply(
        PartitionChangeRecord(partition_id=0, topic_id=topic_id, isr=[], leader=NO_LEADER)
    )
    assert elect(one_broker, 1) == ErrorCode.NONE
    assert partition(one_broker, topic_id).leader == 1


def test_asked_for_all_only_those_are_told_that_changed(one_broker: World) -> None:
    create(one_broker)
    response: Any = one_broker.decide(
        elect_leaders, ElectLeadersRequest(topic_partitions=None)
    ).response
    assert [r.partition_result for r in response.replica_election_results] == [[]]


def test_an_unknown_election_type_is_refused(one_broker: World) -> None:
    request = ElectLeadersRequest(election_type=5, topic_partitions=[])
    with pytest.raises(KafkaError) as refused:
        one_broker.decide(elect_leaders, request)
    assert elect_leaders.refuse(request, refused.value).error_code == ErrorCode.INVALID_REQUEST


# AlterPartition


def alter(world: World, topic_id: bytes, isr: list[int], **changes: Any) -> Any:
    values: dict[str, Any] = {
        "partition_index": 0,
        "leader_epoch": 0,
        "partition_epoch": 0,
        "new_isr_with_epochs": [BrokerState(broker_id=each, broker_epoch=5) for each in isr],
    }
    asked = RequestPartitionData(**{**values, **changes})
    request = AlterPartitionRequest(
        broker_id=1,
        broker_epoch=5,
        topics=[RequestTopicData(topic_id=topic_id, partitions=[asked])],
    )
    response: Any = world.decide(alter_partition, request).response
    return response.topics[0].partitions[0]


def test_a_leader_shrinks_and_expands_its_in_sync_set() -> None:
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
def test_an_in_sync_set_that_cannot_be_is_refused(
    isr: list[int], changes: dict[str, Any], code: ErrorCode
) -> None:
    world = World(broker(1), broker(2), broker(3))
    topic_id = create(world, replication_factor=3)
    world.apply(BrokerRegistrationChangeRecord(broker_id=3, broker_epoch=5, fenced=1))
    assert alter(world, topic_id, isr, **changes).error_code == code


def test_a_replica_of_an_earlier_life_is_not_in_sync() -> None:
    world = World(broker(1), broker(2))
    topic_id = create(world, replication_factor=2)
    stale = [BrokerState(broker_id=1, broker_epoch=5), BrokerState(broker_id=2, broker_epoch=4)]
    outcome = alter(world, topic_id, [], new_isr_with_epochs=stale)
    assert outcome.error_code == ErrorCode.INELIGIBLE_REPLICA


def test_an_unknown_topic_is_told(one_broker: World) -> None:
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
    response: Any = world.decide(assign_replicas_to_dirs, request).response
    code: int = response.directories[0].topics[0].partitions[0].error_code
    return code


def test_a_broker_tells_where_its_replicas_are() -> None:
    directories = (b"f" * 16, b"s" * 16)
    world = World(broker(1, log_dirs=directories))
    topic_id = create(world)
    assert assign(world, topic_id, 0, directories[1]) == 0
    assert partition(world, topic_id).directories == (directories[1],)
    assert assign(world, topic_id, 7, directories[1]) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert assign(world, b"u" * 16, 0, directories[1]) == ErrorCode.UNKNOWN_TOPIC_ID


def test_a_replica_in_a_lost_directory_is_no_longer_led(one_broker: World) -> None:
    topic_id = create(one_broker)
    assert assign(one_broker, topic_id, 0, b"x" * 16) == 0
    assert partition(one_broker, topic_id).leader == NO_LEADER
