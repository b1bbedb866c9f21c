"""Reassignments: requests, immediate changes, and completion."""

from typing import Any

import pytest
from tests.controller.conftest import World, broker

from barnabas.metadata.states import PartitionRegistration
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.alter_partition import (
    AlterPartitionRequest,
    BrokerState,
    RequestPartitionData,
    RequestTopicData,
)
from barnabas.wire.messages.metadata_records import (
    BrokerRegistrationChangeRecord,
    PartitionChangeRecord,
)
from barnabas.wire.messages.partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
    ReassignablePartition,
    ReassignableTopic,
)
from barnabas.wire.messages.topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)


@pytest.fixture
def world() -> World:
    """Five brokers, and a partition of the topic orders on the first three."""
    world = World(*(broker(number) for number in range(1, 6)))
    create(world, "orders", [1, 2, 3])
    return world


def create(world: World, name: str, replicas: list[int], **configs: str) -> None:
    request = CreateTopicsRequest(
        topics=[
            CreatableTopic(
                name=name,
                num_partitions=-1,
                replication_factor=-1,
                assignments=[CreatableReplicaAssignment(partition_index=0, broker_ids=replicas)],
                configs=[
                    CreatableTopicConfig(name=key.replace("_", "."), value=value)
                    for key, value in configs.items()
                ],
            )
        ]
    )
    response: Any = world.decide(request).response
    assert response.topics[0].error_code == 0, response.topics[0].error_message


def reassign(
    world: World, replicas: list[int] | None, *, number: int = 0, name: str = "orders", **more: Any
) -> tuple[int, list[Any]]:
    partition = ReassignablePartition(partition_index=number, replicas=replicas)
    topic = ReassignableTopic(name=name, partitions=[partition])
    request = AlterPartitionReassignmentsRequest(topics=[topic], **more)
    decision = world.decide(request)
    response: Any = decision.response
    assert response.error_code == ErrorCode.NONE
    return response.responses[0].partitions[0].error_code, decision.records


def in_sync(world: World, *isr: int, name: str = "orders") -> int:
    """The leader sends AlterPartition; returns the error code."""
    topic = world.image.topics.by_name(name)
    assert topic is not None
    state = topic.partitions[0]
    requested = RequestPartitionData(
        partition_index=0,
        leader_epoch=state.leader_epoch,
        partition_epoch=state.partition_epoch,
        new_isr_with_epochs=[BrokerState(broker_id=item, broker_epoch=5) for item in isr],
    )
    request = AlterPartitionRequest(
        broker_id=state.leader,
        broker_epoch=5,
        topics=[RequestTopicData(topic_id=topic.topic_id, partitions=[requested])],
    )
    response: Any = world.decide(request).response
    code: int = response.topics[0].partitions[0].error_code
    return code


def state(world: World, name: str = "orders") -> PartitionRegistration:
    topic = world.image.topics.by_name(name)
    assert topic is not None
    return topic.partitions[0]


def assignment(world: World) -> tuple[Any, ...]:
    now = state(world)
    return now.replicas, now.adding, now.removing


def ongoing(world: World, *names: str) -> dict[str, list[Any]]:
    topics = [ListPartitionReassignmentsTopics(name=name, partition_indexes=[0]) for name in names]
    request = ListPartitionReassignmentsRequest(topics=topics or None)
    response: Any = world.decide(request).response
    return {topic.name: topic.partitions for topic in response.topics}


def test_a_reassignment_ends_when_the_new_replicas_are_in_sync(world: World) -> None:
    orders = world.image.topics.by_name("orders")
    assert orders is not None
    code, records = reassign(world, [1, 4, 5])
    assert code == ErrorCode.NONE
    assert records == [
        PartitionChangeRecord(
            partition_id=0,
            topic_id=orders.topic_id,
            replicas=[1, 4, 5, 2, 3],
            adding_replicas=[4, 5],
            removing_replicas=[2, 3],
            directories=[bytes([100 + n]) * 16 for n in (1, 4, 5, 2, 3)],
        )
    ]
    assert (state(world).leader, state(world).leader_epoch) == (1, 0)
    assert in_sync(world, 1, 2, 3, 4) == ErrorCode.NONE
    assert assignment(world) == ((1, 4, 5, 2, 3), (4, 5), (2, 3))
    assert in_sync(world, 1, 2, 3, 4, 5) == ErrorCode.NONE
    assert assignment(world) == ((1, 4, 5), (), ())
    assert state(world).isr == (1, 4, 5)
    assert state(world).directories == tuple(bytes([100 + n]) * 16 for n in (1, 4, 5))
    # Those that were removed learn it by a new epoch, though the leader stays.
    assert (state(world).leader, state(world).leader_epoch) == (1, 1)


def test_a_leader_that_is_reassigned_away_gets_new_leader_elected(world: World) -> None:
    reassign(world, [4, 5])
    assert state(world).leader == 1
    assert in_sync(world, 1, 2, 3, 4, 5) == ErrorCode.NEW_LEADER_ELECTED
    assert assignment(world) == ((4, 5), (), ())
    assert (state(world).leader, state(world).isr) == (4, (4, 5))


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ([3, 2, 1], ((3, 2, 1), (), ())),  # another order is no move
        ([1, 2], ((1, 2), (), ())),  # the remaining replicas are in sync already
        ([3], ((3,), (), ())),
        ([1, 2, 3, 4], ((1, 2, 3, 4), (4,), ())),
        ([1, 2, 3], ((1, 2, 3), (), ())),
    ],
)
def test_a_reassignment_without_new_replicas_completes_at_once(
    target: list[int], expected: tuple[Any, ...], world: World
) -> None:
    assert reassign(world, target)[0] == ErrorCode.NONE
    assert assignment(world) == expected
    assert state(world).leader in target
    assert set(state(world).isr) <= set(target)


@pytest.mark.parametrize(
    ("replicas", "more", "code"),
    [
        ([], {}, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ([1, 1], {}, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ([1, 9], {}, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ([1, -2], {}, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ([1], {"name": "nope"}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ([1], {"number": 7}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (None, {}, ErrorCode.NO_REASSIGNMENT_IN_PROGRESS),
        ([4, 5], {"allow_replication_factor_change": False}, ErrorCode.INVALID_REPLICATION_FACTOR),
        ([4, 5, 1], {"allow_replication_factor_change": False}, ErrorCode.NONE),
    ],
)
def test_an_invalid_reassignment_is_rejected(
    replicas: list[int] | None, more: dict[str, Any], code: ErrorCode, world: World
) -> None:
    assert reassign(world, replicas, **more)[0] == code


def test_the_replication_factor_during_a_reassignment_is_that_of_its_target(world: World) -> None:
    reassign(world, [4, 5])
    kept = {"allow_replication_factor_change": False}
    assert reassign(world, [4, 5, 1], **kept)[0] == ErrorCode.INVALID_REPLICATION_FACTOR
    assert reassign(world, [4, 1], **kept)[0] == ErrorCode.NONE


def test_a_reassignment_is_cancelled(world: World) -> None:
    reassign(world, [1, 4, 5])
    in_sync(world, 1, 2, 3, 4)
    assert reassign(world, None)[0] == ErrorCode.NONE
    assert assignment(world) == ((1, 2, 3), (), ())
    assert state(world).isr == (1, 2, 3)
    assert state(world).leader_epoch == 1


@pytest.mark.parametrize("unclean", ["false", "true"])
def test_a_reassignment_without_original_replicas_in_sync_is_cancelled_only_uncleanly(
    unclean: str, world: World
) -> None:
    create(world, "payments", [1], unclean_leader_election_enable=unclean)
    reassign(world, [4, 5], name="payments")
    in_sync(world, 1, 4, name="payments")
    payments = world.image.topics.by_name("payments")
    assert payments is not None
    world.apply(
        BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=5, fenced=1),
        PartitionChangeRecord(partition_id=0, topic_id=payments.topic_id, leader=4, isr=[4]),
    )
    code, _ = reassign(world, None, name="payments")
    if unclean == "false":
        assert code == ErrorCode.INVALID_REPLICA_ASSIGNMENT
        assert state(world, "payments").is_reassigning
    else:
        assert code == ErrorCode.NONE
        assert (state(world, "payments").replicas, state(world, "payments").isr) == ((1,), (1,))


def test_a_new_target_replaces_the_previous_one(world: World) -> None:
    reassign(world, [1, 4])
    assert assignment(world) == ((1, 4, 2, 3), (4,), (2, 3))
    reassign(world, [1, 2, 5])
    assert assignment(world) == ((1, 2, 5, 3, 4), (5,), (3, 4))
    in_sync(world, 1, 2, 3, 5)
    assert assignment(world) == ((1, 2, 5), (), ())


def test_replicas_being_added_stay_so_under_a_new_target(world: World) -> None:
    reassign(world, [1, 4, 5])
    reassign(world, [1, 2, 4])
    assert assignment(world) == ((1, 2, 4, 3, 5), (4,), (3, 5))
    reassign(world, None)
    assert 4 not in state(world).replicas


def test_a_partition_that_is_listed_twice_continues_from_its_first_reassignment(
    world: World,
) -> None:
    partitions = [ReassignablePartition(partition_index=0, replicas=r) for r in ([4], None)]
    request = AlterPartitionReassignmentsRequest(
        topics=[ReassignableTopic(name="orders", partitions=partitions)]
    )
    world.decide(request)
    assert assignment(world) == ((1, 2, 3), (), ())


def test_reassignments_in_progress_are_listed(world: World) -> None:
    create(world, "still", [1, 2])
    assert ongoing(world) == {}
    reassign(world, [1, 4])
    (move,) = ongoing(world)["orders"]
    assert (move.replicas, move.adding_replicas, move.removing_replicas) == (
        [1, 4, 2, 3],
        [4],
        [2, 3],
    )
    assert ongoing(world) == ongoing(world, "orders", "still", "nope")
    assert ongoing(world, "still") == {}
    in_sync(world, 1, 4)
    assert ongoing(world) == {}
