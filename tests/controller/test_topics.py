"""CreateTopics, DeleteTopics and CreatePartitions: decisions and errors."""

from typing import Any

import pytest
from tests.controller.conftest import World, broker, error_response_to

from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.metadata_records import (
    BrokerRegistrationChangeRecord,
    ClearElrRecord,
    ConfigRecord,
    PartitionRecord,
    TopicRecord,
)
from barnabas.wire.messages.topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreatableTopicResult,
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DeleteTopicState,
)

LOG_DIR = broker(1).log_dirs[0]


def topic(
    name: str,
    partitions: int = 1,
    replication_factor: int = 1,
    assignments: list[tuple[int, list[int]]] | None = None,
    **configs: str | None,
) -> CreatableTopic:
    return CreatableTopic(
        name=name,
        num_partitions=partitions if assignments is None else -1,
        replication_factor=replication_factor if assignments is None else -1,
        assignments=[
            CreatableReplicaAssignment(partition_index=index, broker_ids=broker_ids)
            for index, broker_ids in assignments or ()
        ],
        configs=[
            CreatableTopicConfig(name=key.replace("_", "."), value=value)
            for key, value in configs.items()
        ],
    )


def create(world: World, *topics: CreatableTopic, **options: Any) -> list[CreatableTopicResult]:
    request = CreateTopicsRequest(topics=list(topics), **options)
    response: Any = world.decide(request).response
    results: list[CreatableTopicResult] = response.topics
    return results


def test_a_topic_is_created_by_a_topic_record_its_configs_and_its_partitions(
    one_broker: World,
) -> None:
    request = CreateTopicsRequest(topics=[topic("orders", 2, retention_ms="1000")])
    decision = one_broker.decide(request)
    topic_id = decision.response.topics[0].topic_id  # type: ignore[attr-defined]
    partitions = [
        PartitionRecord(
            partition_id=index,
            topic_id=topic_id,
            replicas=[1],
            isr=[1],
            leader=1,
            leader_epoch=0,
            partition_epoch=0,
            directories=[LOG_DIR],
        )
        for index in range(2)
    ]
    assert decision.records == [
        TopicRecord(name="orders", topic_id=topic_id),
        ConfigRecord(resource_type=2, resource_name="orders", name="retention.ms", value="1000"),
        *partitions,
    ]


def test_the_create_response_has_id_counts_and_all_configs(one_broker: World) -> None:
    (result,) = create(one_broker, topic("orders", 3, retention_ms="1000"))
    assert (result.error_code, result.error_message) == (0, None)
    assert (result.num_partitions, result.replication_factor) == (3, 1)
    created = one_broker.image.topics.by_name("orders")
    assert created is not None
    assert result.topic_id == created.topic_id
    settings = {item.name: (item.value, item.config_source) for item in result.configs or ()}
    assert len(settings) == 33
    assert settings["retention.ms"] == ("1000", 1)
    assert settings["cleanup.policy"] == ("delete", 5)
    (plain,) = create(one_broker, topic("plain"))
    settings = {item.name: (item.value, item.config_source) for item in plain.configs or ()}
    assert settings["retention.ms"] == ("604800000", 5)


def test_minus_one_means_the_brokers_default() -> None:
    world = World(broker(1), broker(2), num_partitions="4", default_replication_factor="2")
    (result,) = create(world, topic("orders", -1, -1))
    assert (result.num_partitions, result.replication_factor) == (4, 2)


def test_validate_only_responds_and_changes_nothing(one_broker: World) -> None:
    (result,) = create(one_broker, topic("orders"), validate_only=True)
    assert (result.error_code, result.num_partitions) == (0, 1)
    assert len(one_broker.image.topics) == 0


INVALID_TOPICS = [
    (topic(""), ErrorCode.INVALID_TOPIC_EXCEPTION),
    (topic("."), ErrorCode.INVALID_TOPIC_EXCEPTION),
    (topic(".."), ErrorCode.INVALID_TOPIC_EXCEPTION),
    (topic("a b"), ErrorCode.INVALID_TOPIC_EXCEPTION),
    (topic("é"), ErrorCode.INVALID_TOPIC_EXCEPTION),
    (topic("line\n"), ErrorCode.INVALID_TOPIC_EXCEPTION),
    (topic("a" * 250), ErrorCode.INVALID_TOPIC_EXCEPTION),
    (topic("with_dots"), ErrorCode.INVALID_TOPIC_EXCEPTION),
    (topic("__cluster_metadata"), ErrorCode.INVALID_REQUEST),
    (topic("with.dots"), ErrorCode.TOPIC_ALREADY_EXISTS),
    (topic("with.dots", 0, 0), ErrorCode.TOPIC_ALREADY_EXISTS),
    (topic("new", 0), ErrorCode.INVALID_PARTITIONS),
    (topic("new", -2), ErrorCode.INVALID_PARTITIONS),
    (topic("new", 1, 0), ErrorCode.INVALID_REPLICATION_FACTOR),
    (topic("new", 1, -2), ErrorCode.INVALID_REPLICATION_FACTOR),
    (topic("new", 0, 0), ErrorCode.INVALID_REPLICATION_FACTOR),
    (topic("new", 1, 2), ErrorCode.INVALID_REPLICATION_FACTOR),
    (topic("new", nope="1"), ErrorCode.INVALID_CONFIG),
    (topic("new", retention_ms="x"), ErrorCode.INVALID_CONFIG),
    (topic("new", retention_ms=None), ErrorCode.INVALID_CONFIG),
    (topic("new", 0, nope="1"), ErrorCode.INVALID_CONFIG),
    (topic("new", assignments=[(0, [2])]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    (topic("new", assignments=[(0, [1, 1])]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    (topic("new", assignments=[(0, [])]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    (topic("new", assignments=[(1, [1])]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    (topic("new", assignments=[(0, [1]), (0, [1])]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
]


@pytest.mark.parametrize(("requested", "code"), INVALID_TOPICS)
def test_an_invalid_topic_is_rejected(
    requested: CreatableTopic, code: ErrorCode, one_broker: World
) -> None:
    create(one_broker, topic("with.dots"))
    (result,) = create(one_broker, requested)
    assert result.error_code == code
    assert result.error_message
    assert (result.num_partitions, result.replication_factor, result.configs) == (-1, -1, [])


def test_a_manual_assignment_excludes_counts(one_broker: World) -> None:
    both = topic("new", assignments=[(0, [1])])
    both.num_partitions = 1
    assert create(one_broker, both)[0].error_code == ErrorCode.INVALID_REQUEST
    both.num_partitions, both.replication_factor = -1, 1
    assert create(one_broker, both)[0].error_code == ErrorCode.INVALID_REQUEST


def test_a_manual_assignment_is_used() -> None:
    world = World(broker(1), broker(2), broker(3, fenced=True))
    (result,) = create(world, topic("orders", assignments=[(1, [2, 1]), (0, [3, 1])]))
    assert (result.num_partitions, result.replication_factor) == (2, 2)
    orders = world.image.topics.by_name("orders")
    assert orders is not None
    assert (orders.partitions[0].replicas, orders.partitions[0].isr) == ((3, 1), (1,))
    assert orders.partitions[0].leader == 1
    assert (orders.partitions[1].replicas, orders.partitions[1].leader) == ((2, 1), 2)


def test_an_invalid_topic_does_not_affect_the_others_and_duplicates_are_reported_once(
    one_broker: World,
) -> None:
    results = create(one_broker, topic("d"), topic("fine"), topic("d"), topic("a b"))
    assert {result.name: result.error_code for result in results} == {
        "fine": ErrorCode.NONE,
        "d": ErrorCode.INVALID_REQUEST,
        "a b": ErrorCode.INVALID_TOPIC_EXCEPTION,
    }
    assert [item.name for item in one_broker.image.topics] == ["fine"]


def test_colliding_names_may_be_in_one_request_as_in_kafka(one_broker: World) -> None:
    assert {r.error_code for r in create(one_broker, topic("a.b"), topic("a_b"))} == {0}


@pytest.mark.parametrize("partitions", [10_000, 100_000])
def test_the_partitions_of_a_request_are_limited(partitions: int, one_broker: World) -> None:
    request = CreateTopicsRequest(topics=[topic("big", partitions)])
    with pytest.raises(KafkaError) as error:
        one_broker.decide(request)
    assert error.value.code is ErrorCode.POLICY_VIOLATION
    response = error_response_to(request, error.value)
    assert [r.error_code for r in response.topics] == [ErrorCode.POLICY_VIOLATION]


def test_replicas_rotate_over_the_active_brokers() -> None:
    world = World(broker(1), broker(2), broker(3), broker(4, in_controlled_shutdown=True))
    world.turn = 1
    create(world, topic("orders", 3, 2))
    orders = world.image.topics.by_name("orders")
    assert orders is not None
    assert [p.replicas for p in orders.partitions.values()] == [(2, 3), (3, 1), (1, 2)]


def test_fenced_brokers_get_replicas_only_if_needed_and_never_lead() -> None:
    world = World(broker(1), broker(2, fenced=True))
    create(world, topic("single", 4, 1), topic("double", 2, 2))
    single, double = world.image.topics.by_name("single"), world.image.topics.by_name("double")
    assert single is not None
    assert double is not None
    assert {p.replicas for p in single.partitions.values()} == {(1,)}
    assert {(p.replicas, p.isr) for p in double.partitions.values()} == {((1, 2), (1,))}


def test_without_an_active_broker_no_topic_is_created() -> None:
    world = World(broker(1, fenced=True))
    (result,) = create(world, topic("orders"))
    assert result.error_code == ErrorCode.INVALID_REPLICATION_FACTOR


def test_a_broker_with_all_directories_cordoned_gets_no_replicas() -> None:
    world = World(broker(1), broker(2, cordoned_log_dirs=broker(2).log_dirs))
    create(world, topic("orders", 3))
    orders = world.image.topics.by_name("orders")
    assert orders is not None
    assert {p.replicas for p in orders.partitions.values()} == {(1,)}


# DeleteTopics


def delete(world: World, *topics: tuple[str | None, bytes]) -> dict[tuple[str | None, bytes], int]:
    request = DeleteTopicsRequest(
        topics=[DeleteTopicState(name=name, topic_id=topic_id) for name, topic_id in topics]
    )
    response: Any = world.decide(request).response
    return {(item.name, item.topic_id): item.error_code for item in response.responses}


NO_ID = bytes(16)


def test_topics_are_deleted_by_name_or_by_id(one_broker: World) -> None:
    first, second = (r.topic_id for r in create(one_broker, topic("one"), topic("two")))
    assert delete(one_broker, ("one", NO_ID), (None, second)) == {
        ("one", first): ErrorCode.NONE,
        ("two", second): ErrorCode.NONE,
    }
    assert len(one_broker.image.topics) == 0


def test_old_versions_list_topics_in_another_field(one_broker: World) -> None:
    create(one_broker, topic("one"))
    one_broker.decide(DeleteTopicsRequest(topic_names=["one"]))
    assert len(one_broker.image.topics) == 0


def test_unknown_and_duplicate_topics_are_not_deleted(one_broker: World) -> None:
    (result,) = create(one_broker, topic("one"))
    topic_id, unknown = result.topic_id, b"u" * 16
    assert delete(one_broker, ("nope", NO_ID)) == {
        ("nope", NO_ID): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    }
    assert delete(one_broker, (None, unknown)) == {(None, unknown): ErrorCode.UNKNOWN_TOPIC_ID}
    for requested in (
        [(None, NO_ID)],
        [("one", topic_id)],
        [("one", NO_ID), ("one", NO_ID)],
        [(None, topic_id), (None, topic_id)],
        [("one", NO_ID), (None, topic_id)],
    ):
        assert set(delete(one_broker, *requested).values()) == {ErrorCode.INVALID_REQUEST}
    assert len(one_broker.image.topics) == 1


def test_deletion_can_be_disabled() -> None:
    world = World(broker(1), delete_topic_enable="false")
    request = DeleteTopicsRequest(topics=[DeleteTopicState(name="one")])
    with pytest.raises(KafkaError) as error:
        world.decide(request)
    assert error.value.code is ErrorCode.TOPIC_DELETION_DISABLED
    assert error_response_to(request, error.value).responses[0].name == "one"


# While brokers are away


def test_replicas_on_fenced_brokers_are_not_in_sync_and_do_not_lead() -> None:
    world = World(broker(1), broker(2, fenced=True), broker(3, in_controlled_shutdown=True))
    (placed,) = create(world, topic("placed", 2, 2))
    (assigned,) = create(world, topic("assigned", assignments=[(0, [2, 3, 1])]))
    assert (placed.error_code, assigned.error_code) == (ErrorCode.NONE, ErrorCode.NONE)
    for name, replicas in (("placed", (1, 2)), ("assigned", (2, 3, 1))):
        created = world.image.topics.by_name(name)
        assert created is not None
        for state in created.partitions.values():
            assert (state.replicas, state.isr, state.leader) == (replicas, (1,), 1)


@pytest.mark.parametrize(
    ("requested", "code"),
    [
        (topic("a", 1, 3), ErrorCode.INVALID_REPLICATION_FACTOR),
        (topic("a", assignments=[(0, [2])]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (topic("a", assignments=[(0, [2, 3])]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ],
)
def test_a_topic_without_possible_leader_is_rejected(
    requested: CreatableTopic, code: ErrorCode
) -> None:
    world = World(broker(1), broker(2, fenced=True), broker(3, in_controlled_shutdown=True))
    assert create(world, requested)[0].error_code == code


def test_partitions_are_added_on_active_brokers() -> None:
    world = World(broker(1), broker(2))
    create(world, topic("orders", 1, 2))
    world.apply(BrokerRegistrationChangeRecord(broker_id=2, broker_epoch=5, fenced=1))
    assert grow(world, "orders", 2) == ErrorCode.NONE
    assert grow(world, "orders", 3, [[2, 1]]) == ErrorCode.NONE
    assert grow(world, "orders", 4, [[2]]) == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    orders = world.image.topics.by_name("orders")
    assert orders is not None
    assert [orders.partitions[n].isr for n in (1, 2)] == [(1,), (1,)]


def test_a_topic_with_its_own_min_insync_replicas_has_no_eligible_leaders(
    one_broker: World,
) -> None:
    request = CreateTopicsRequest(topics=[topic("orders", min_insync_replicas="2")])
    records = one_broker.decide(request).records
    assert records[2] == ClearElrRecord(topic_name="orders")


# CreatePartitions


def grow(world: World, name: str, count: int, assignments: list[list[int]] | None = None) -> int:
    given = None
    if assignments is not None:
        given = [CreatePartitionsAssignment(broker_ids=broker_ids) for broker_ids in assignments]
    requested = CreatePartitionsTopic(name=name, count=count, assignments=given)
    response: Any = world.decide(CreatePartitionsRequest(topics=[requested])).response
    code: int = response.results[0].error_code
    return code


def test_new_partitions_have_the_replication_factor_of_the_topic() -> None:
    world = World(broker(1), broker(2))
    create(world, topic("orders", 1, 2))
    assert grow(world, "orders", 3) == 0
    orders = world.image.topics.by_name("orders")
    assert orders is not None
    assert sorted(orders.partitions) == [0, 1, 2]
    assert {len(p.replicas) for p in orders.partitions.values()} == {2}


@pytest.mark.parametrize(
    ("name", "count", "assignments", "code"),
    [
        ("nope", 2, None, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("orders", 2, None, ErrorCode.INVALID_PARTITIONS),
        ("orders", 1, None, ErrorCode.INVALID_PARTITIONS),
        ("orders", -1, None, ErrorCode.INVALID_PARTITIONS),
        ("orders", 20_000, None, ErrorCode.POLICY_VIOLATION),
        ("orders", 4, [[1]], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ("orders", 3, [], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ("orders", 3, [[]], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ("orders", 3, [[2]], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ("orders", 3, [[1, 1]], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ("orders", 3, [[1]], ErrorCode.NONE),
    ],
)
def test_the_partition_count_only_increases(
    name: str,
    count: int,
    assignments: list[list[int]] | None,
    code: ErrorCode,
    one_broker: World,
) -> None:
    create(one_broker, topic("orders", 2))
    assert grow(one_broker, name, count, assignments) == code


def test_a_topic_that_is_listed_twice_gets_no_partitions(one_broker: World) -> None:
    create(one_broker, topic("orders"))
    requested = [CreatePartitionsTopic(name="orders", count=n, assignments=None) for n in (2, 3)]
    decision = one_broker.decide(CreatePartitionsRequest(topics=requested))
    response: Any = decision.response
    assert [item.error_code for item in response.results] == [ErrorCode.INVALID_REQUEST]
    assert decision.records == []
