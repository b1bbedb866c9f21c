"""Metadata, and creating, changing and deleting topics, in every version."""

from collections.abc import Sequence
from itertools import product
from typing import Any

import pytest
from tests.conformance.side_by_side.conftest import PLAIN, create_topic
from tests.conformance.side_by_side.sides import Side, Sides, assert_same_responses

from barnabas.wire.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from barnabas.wire.messages.metadata import (
    Cursor,
    DescribeTopicPartitionsRequest,
    MetadataRequest,
    MetadataRequestTopic,
    TopicRequest,
)
from barnabas.wire.messages.topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DeleteTopicState,
)

pytestmark = pytest.mark.peer

UNKNOWN_ID = b"\x01" * 16
KNOWN_ELECTIONS = (0, 1)


@pytest.mark.parametrize(
    "names",
    [[PLAIN], ["unknown-to-both"], [PLAIN, "unknown-to-both"], ["no/name"], [""], [PLAIN, PLAIN]],
    ids=["known", "unknown", "both", "bad_name", "no_name", "twice"],
)
def test_metadata_of_named_topics(sides: Sides, names: Sequence[str]) -> None:
    def build(_: Side, version: int) -> Any:
        if version < 4 and names != [PLAIN]:  # those create unknown topics
            return None if version >= 0 else MetadataRequest()
        return MetadataRequest(
            topics=[MetadataRequestTopic(name=name) for name in names],
            allow_auto_topic_creation=version < 4,
        )

    assert_same_responses(sides, build)


def test_metadata_of_no_topics_and_with_authorized_operations(sides: Sides) -> None:
    def build(_: Side, version: int) -> Any:
        return MetadataRequest(
            topics=[MetadataRequestTopic(name=PLAIN)] if version >= 1 else [],
            include_cluster_authorized_operations=8 <= version <= 10,
            include_topic_authorized_operations=version >= 8,
        )

    assert_same_responses(sides, lambda _, version: None if version == 0 else build(_, version))
    assert_same_responses(
        sides, lambda _, version: None if version == 0 else MetadataRequest(topics=[])
    )


@pytest.mark.parametrize("known", [True, False])
def test_metadata_by_id(sides: Sides, known: bool) -> None:
    def build(side: Side, version: int) -> Any:
        if 0 <= version < 12:
            return None
        topic_id = side.topic_id(PLAIN) if known else UNKNOWN_ID
        return MetadataRequest(topics=[MetadataRequestTopic(topic_id=topic_id, name=None)])

    assert_same_responses(sides, build)


def new(name: str, **settings: Any) -> CreatableTopic:
    configs = [
        CreatableTopicConfig(name=key, value=value)
        for key, value in settings.pop("configs", {}).items()
    ]
    assignments = [
        CreatableReplicaAssignment(partition_index=index, broker_ids=brokers)
        for index, brokers in settings.pop("assignments", {}).items()
    ]
    counts = {"num_partitions": -1, "replication_factor": -1} if assignments else {
        "num_partitions": 1,
        "replication_factor": 1,
    }  # fmt: skip
    return CreatableTopic(
        name=name, configs=configs, assignments=assignments, **(counts | settings)
    )


CREATED: dict[str, list[CreatableTopic]] = {
    "plain": [new("NAME")],
    "defaults": [new("NAME", num_partitions=-1, replication_factor=-1)],
    "configs": [new("NAME", configs={"retention.ms": "1000", "cleanup.policy": "compact"})],
    "config_null": [new("NAME", configs={"retention.ms": None})],
    "config_unknown": [new("NAME", configs={"no.such": "1"})],
    "config_empty": [new("NAME", configs={"cleanup.policy": ""})],
    "config_bad_list": [new("NAME", configs={"cleanup.policy": "burn"})],
    "config_below_range": [new("NAME", configs={"segment.bytes": "1"})],
    "config_bad_pair": [
        new("NAME", configs={"local.retention.ms": "9", "retention.ms": "1"}),
    ],
    "configs_null": [new("NAME", configs={"retention.ms": None, "segment.ms": None})],
    "config_bad": [new("NAME", configs={"retention.ms": "soon"})],
    "assigned": [new("NAME", assignments={0: [1], 1: [1]})],
    "assigned_to_nobody": [new("NAME", assignments={0: []})],
    "assigned_to_unknown_broker": [new("NAME", assignments={0: [7]})],
    "assigned_twice": [new("NAME", assignments={0: [1, 1]})],
    "assigned_with_gap": [new("NAME", assignments={0: [1], 2: [1]})],
    "assigned_unevenly": [new("NAME", assignments={0: [1], 1: [1, 2]})],
    "assigned_to_negative_broker": [new("NAME", assignments={0: [-1]})],
    "assigned_and_counted": [new("NAME", assignments={0: [1]}, num_partitions=1)],
    "assigned_and_replicated": [new("NAME", assignments={0: [1]}, replication_factor=1)],
    "no_partitions": [new("NAME", num_partitions=0)],
    "too_few_partitions": [new("NAME", num_partitions=-2)],
    "too_few_replicas": [new("NAME", replication_factor=-2)],
    "far_too_many_replicas": [new("NAME", replication_factor=32767)],
    "no_replicas": [new("NAME", replication_factor=0)],
    "too_many_replicas": [new("NAME", replication_factor=2)],
    "bad_name": [new("no/name")],
    "empty_name": [new("")],
    "dots": [new("..")],
    "long_name": [new("x" * 250)],
    "exists": [new(PLAIN)],
    "same_name_twice": [new("NAME"), new("NAME")],
    "internal_name": [new("__cluster_metadata")],
    "too_many_partitions": [new("NAME", num_partitions=100_001)],
    "collides": [new("col.lides"), new("col_lides")],
}


@pytest.mark.parametrize("validate_only", [True, False])
@pytest.mark.parametrize("case", CREATED)
def test_create_topics(sides: Sides, case: str, validate_only: bool) -> None:
    def build(_: Side, version: int) -> Any:
        topics = []
        for new_topic in CREATED[case]:
            name = f"{case}-{version}" if new_topic.name == "NAME" else new_topic.name
            topics.append(
                CreatableTopic(
                    name=name,
                    num_partitions=new_topic.num_partitions,
                    replication_factor=new_topic.replication_factor,
                    assignments=new_topic.assignments,
                    configs=new_topic.configs,
                )
            )
        return CreateTopicsRequest(topics=topics, timeout_ms=10_000, validate_only=validate_only)

    assert_same_responses(sides, build)


@pytest.mark.parametrize("by_id", [True, False])
def test_delete_topics(sides: Sides, by_id: bool) -> None:
    def build(side: Side, version: int) -> Any:
        name = f"delete-{by_id}-{version}"
        if version >= 1:
            create_topic(side, name)
        if version < 6:
            return DeleteTopicsRequest(topic_names=[name, "unknown-to-both"], timeout_ms=10_000)
        if by_id:
            known = DeleteTopicState(name=None, topic_id=side.topic_id(name))
            unknown = DeleteTopicState(name=None, topic_id=UNKNOWN_ID)
        else:
            known, unknown = DeleteTopicState(name=name), DeleteTopicState(name="unknown-to-both")
        return DeleteTopicsRequest(topics=[known, unknown], timeout_ms=10_000)

    assert_same_responses(sides, build)


def test_delete_topics_with_invalid_states(sides: Sides) -> None:
    for states in (
        [DeleteTopicState(name="unknown-to-both", topic_id=UNKNOWN_ID)],
        [DeleteTopicState(name=None)],
        [DeleteTopicState(name="unknown-to-both"), DeleteTopicState(name="unknown-to-both")],
        [],
    ):
        assert_same_responses(
            sides,
            lambda _, version, states=states: (
                DeleteTopicsRequest(topics=states, timeout_ms=10_000)
                if version < 0 or version >= 6
                else None
            ),
        )


@pytest.mark.parametrize(
    ("topic", "count", "assignments"),
    [
        (PLAIN, 3, None),
        (PLAIN, 2, None),
        (PLAIN, 1, None),
        (PLAIN, 0, None),
        (PLAIN, -1, None),
        (PLAIN, 3, [[1]]),
        (PLAIN, 3, [[7]]),
        (PLAIN, 3, [[1], [1]]),
        (PLAIN, 3, [[]]),
        (PLAIN, 3, [[1, 1]]),
        (PLAIN, 3, [[1, 2]]),
        (PLAIN, 4, [[1]]),
        (PLAIN, 12_000, None),
        (PLAIN, 200_000, None),
        ("unknown-to-both", 3, None),
        ("no/name", 3, None),
    ],
)
def test_create_partitions(
    sides: Sides, topic: str, count: int, assignments: list[list[int]] | None
) -> None:
    replica_assignments = (
        None
        if assignments is None
        else [CreatePartitionsAssignment(broker_ids=assignment) for assignment in assignments]
    )
    requested = CreatePartitionsTopic(name=topic, count=count, assignments=replica_assignments)
    for topics in [requested], [requested, requested]:
        assert_same_responses(
            sides,
            lambda _, __, topics=topics: CreatePartitionsRequest(
                topics=topics, timeout_ms=10_000, validate_only=True
            ),
        )


@pytest.mark.parametrize(
    ("names", "limit", "cursor"),
    [
        ([PLAIN], 2000, None),
        ([PLAIN], 1, None),
        ([PLAIN], 1, (PLAIN, 1)),
        ([PLAIN], 2000, (PLAIN, 2)),
        ([PLAIN, "unknown-to-both"], 2000, None),
        (["no/name"], 2000, None),
        ([PLAIN], 0, None),
        ([PLAIN], -1, None),
        ([PLAIN], 10, ("zzz", 0)),
        ([PLAIN], 10, (PLAIN, -1)),
        ([PLAIN, "unknown-to-both"], 2, None),
        ([PLAIN], 10, ("", 0)),
    ],
)
def test_describe_topic_partitions(
    sides: Sides, names: list[str], limit: int, cursor: tuple[str, int] | None
) -> None:
    start = Cursor(topic_name=cursor[0], partition_index=cursor[1]) if cursor else None
    request = DescribeTopicPartitionsRequest(
        topics=[TopicRequest(name=name) for name in names],
        response_partition_limit=limit,
        cursor=start,
    )
    assert_same_responses(sides, lambda *_: request)


@pytest.mark.parametrize("election", [*KNOWN_ELECTIONS, 2])
@pytest.mark.parametrize(
    ("topic", "partitions"), [(PLAIN, [0, 1]), (PLAIN, [99]), ("unknown-to-both", [0])]
)
def test_elect_leaders(sides: Sides, election: int, topic: str, partitions: list[int]) -> None:
    selected = [TopicPartitions(topic=topic, partitions=partitions)]
    assert_same_responses(sides, lambda *_: elect(election, selected))


@pytest.mark.parametrize("election", [*KNOWN_ELECTIONS, 2])
def test_elect_leaders_of_all_topics(sides: Sides, election: int) -> None:
    """The response has every topic of the broker, with the partitions that were elected."""
    ignoring = {"replica_election_results": "different topics"}
    versions = assert_same_responses(sides, lambda *_: elect(election, None), ignoring=ignoring)
    for side, version in product(sides, versions):
        response: Any = side.send(elect(election, None), version)
        results = {
            result.topic: result.partition_result for result in response.replica_election_results
        }
        expected = {name: [] for name in topics_of(side)} if election in KNOWN_ELECTIONS else {}
        assert (side.name, version, results) == (side.name, version, expected)


def elect(election: int, selected: list[TopicPartitions] | None) -> ElectLeadersRequest:
    return ElectLeadersRequest(election_type=election, topic_partitions=selected, timeout_ms=10_000)


def topics_of(side: Side) -> list[str]:
    response: Any = side.send(MetadataRequest(topics=None), 12)
    return [topic.name for topic in response.topics]
