"""The lifecycle of a broker on the controller, with the records of Kafka 4.3."""

from typing import Any

import pytest
from tests.controller.conftest import CLUSTER_ID, World, broker, error_response_to

from barnabas.metadata.features import SUPPORTED
from barnabas.metadata.states import NO_LEADER, PartitionRegistration, RecoveryState
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.metadata_records import (
    BrokerRegistrationChangeRecord,
    PartitionChangeRecord,
    RegisterControllerRecord,
    UnregisterBrokerRecord,
)
from barnabas.wire.messages.producer_ids import AllocateProducerIdsRequest
from barnabas.wire.messages.registrations import (
    BrokerHeartbeatRequest,
    BrokerRegistrationRequest,
    ControllerRegistrationRequest,
    Feature,
    Listener,
    UnregisterBrokerRequest,
)
from barnabas.wire.messages.topics import CreatableTopic, CreateTopicsRequest

FIRST_LIFE, SECOND_LIFE = b"1" * 16, b"2" * 16
LOG_DIR = b"d" * 16


def registration(broker_id: int = 1, **changes: Any) -> BrokerRegistrationRequest:
    values: dict[str, Any] = {
        "broker_id": broker_id,
        "cluster_id": CLUSTER_ID,
        "incarnation_id": FIRST_LIFE,
        "listeners": [Listener(name="PLAINTEXT", host="localhost", port=9092)],
        "features": [
            Feature(name=name, min_supported_version=item.min, max_supported_version=item.max)
            for name, item in SUPPORTED.items()
        ],
        "log_dirs": [LOG_DIR],
    }
    return BrokerRegistrationRequest(**{**values, **changes})


def register(world: World, **changes: Any) -> int:
    response: Any = world.decide(registration(**changes)).response
    epoch: int = response.broker_epoch
    return epoch


def beat(world: World, epoch: int, **wants: Any) -> tuple[Any, list[Any]]:
    values: dict[str, Any] = {"current_metadata_offset": world.offset, **wants}
    request = BrokerHeartbeatRequest(broker_id=1, broker_epoch=epoch, **values)
    decision = world.decide(request)
    return decision.response, decision.records


def create(world: World, name: str = "orders", **options: Any) -> bytes:
    counts = {"num_partitions": 1, "replication_factor": 1, **options}
    request = CreateTopicsRequest(topics=[CreatableTopic(name=name, **counts)])
    response: Any = world.decide(request).response
    assert response.topics[0].error_code == 0, response.topics[0].error_message
    topic_id: bytes = response.topics[0].topic_id
    return topic_id


def partition(world: World, topic_id: bytes, index: int = 0) -> PartitionRegistration:
    state = world.image.partition(topic_id, index)
    assert state is not None
    return state


def test_a_broker_registers_is_unfenced_and_shuts_down() -> None:
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


def test_a_broker_leads_its_partitions_again_after_a_clean_shutdown() -> None:
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


def test_a_broker_leads_again_after_a_crash_but_must_recover() -> None:
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


def test_the_same_process_registers_again_with_the_same_epoch() -> None:
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
        (
            {"incarnation_id": SECOND_LIFE, "log_dirs": [b"e" * 16]},
            ErrorCode.DUPLICATE_BROKER_REGISTRATION,
        ),
        (
            {"incarnation_id": SECOND_LIFE, "listeners": []},
            ErrorCode.DUPLICATE_BROKER_REGISTRATION,
        ),
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
def test_an_invalid_registration_is_rejected(changes: dict[str, Any], code: ErrorCode) -> None:
    world = World()
    beat(world, register(world))
    with pytest.raises(KafkaError) as error:
        register(world, **changes)
    assert error.value.code is code
    response = error_response_to(registration(), error.value)
    assert (response.error_code, response.broker_epoch) == (code, -1)


def test_a_process_with_the_directories_and_listeners_of_a_broker_replaces_it() -> None:
    world = World()
    epoch = register(world)
    beat(world, epoch)
    assert register(world, incarnation_id=SECOND_LIFE) > epoch


def test_heartbeats_of_an_unregistered_process_are_rejected(one_broker: World) -> None:
    with pytest.raises(KafkaError) as error:
        beat(one_broker, epoch=4)
    assert error.value.code is ErrorCode.STALE_BROKER_EPOCH
    with pytest.raises(KafkaError):
        one_broker.decide(AllocateProducerIdsRequest(broker_id=7, broker_epoch=5))


def test_leaders_move_when_their_broker_is_fenced() -> None:
    world = World(broker(1), broker(2))
    topic_id = create(world, replication_factor=2)
    _, records = beat(world, 5, want_fence=True)
    state = partition(world, topic_id)
    assert (state.leader, state.isr, state.leader_epoch) == (2, (2,), 1)
    assert isinstance(records[-1], BrokerRegistrationChangeRecord)
    assert world.image.brokers[1].fenced


def test_cordoned_directories_are_recorded_once(one_broker: World) -> None:
    assert len(beat(one_broker, 5, cordoned_log_dirs=[])[1]) == 1
    assert beat(one_broker, 5, cordoned_log_dirs=[])[1] == []
    assert one_broker.image.brokers[1].cordoned_log_dirs == ()


def test_a_controlled_shutdown_waits_until_all_brokers_have_the_change() -> None:
    world = World(broker(1), broker(2))
    create(world, replication_factor=2)
    request = BrokerHeartbeatRequest(broker_id=2, broker_epoch=5, current_metadata_offset=10)
    world.decide(request)
    beat(world, 5, want_shut_down=True)
    response, _ = beat(world, 5, want_shut_down=True)
    assert not response.should_shut_down
    request.current_metadata_offset = world.offset
    world.decide(request)
    response, _ = beat(world, 5, want_shut_down=True)
    assert response.should_shut_down


def test_a_broker_is_unregistered(one_broker: World) -> None:
    create(one_broker)
    decision = one_broker.decide(UnregisterBrokerRequest(broker_id=1))
    assert decision.records[-1] == UnregisterBrokerRecord(broker_id=1, broker_epoch=5)
    assert one_broker.image.brokers == {}
    with pytest.raises(KafkaError) as error:
        one_broker.decide(UnregisterBrokerRequest(broker_id=1))
    assert error.value.code is ErrorCode.BROKER_ID_NOT_REGISTERED


def test_an_unregistered_broker_returns_without_being_eligible_as_leader() -> None:
    world = World(broker(1), broker(2))
    topic_id = create(world, replication_factor=2)
    for number in (2, 1):
        world.decide(UnregisterBrokerRequest(broker_id=number))
    assert (partition(world, topic_id).leader, partition(world, topic_id).elr) == (NO_LEADER, (1,))
    beat(world, register(world, log_dirs=list(broker(1).log_dirs)))
    state = partition(world, topic_id)
    assert (state.leader, state.recovery_state) == (1, RecoveryState.RECOVERING)


def test_a_broker_in_controlled_shutdown_may_be_replaced_at_once() -> None:
    world = World()
    epoch = register(world)
    beat(world, epoch)
    create(world)
    beat(world, epoch, want_shut_down=True)
    assert register(world, incarnation_id=SECOND_LIFE, previous_broker_epoch=epoch) > epoch


def test_blocks_of_producer_ids_never_overlap(one_broker: World) -> None:
    request = AllocateProducerIdsRequest(broker_id=1, broker_epoch=5)
    starts = []
    for _ in range(3):
        response: Any = one_broker.decide(request).response
        starts.append((response.producer_id_start, response.producer_id_len))
    assert starts == [(0, 1000), (1000, 1000), (2000, 1000)]


def test_a_controller_registers(one_broker: World) -> None:
    request = ControllerRegistrationRequest(controller_id=1, incarnation_id=FIRST_LIFE)
    decision = one_broker.decide(request)
    assert decision.records == [
        RegisterControllerRecord(controller_id=1, incarnation_id=FIRST_LIFE)
    ]
