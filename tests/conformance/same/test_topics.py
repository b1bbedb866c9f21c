"""Metadata and the making, changing and deleting of topics, in every version."""

from collections.abc import Sequence
from itertools import product
from typing import Any

import pytest
from tests.conformance.same.conftest import PLAIN, create
from tests.conformance.same.sides import Side, Sides, same

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
        if version < 4 and names != [PLAIN]:  # those create what they do not find
            return None if version >= 0 else MetadataRequest()
        return MetadataRequest(
            topics=[MetadataRequestTopic(name=name) for name in names],
            allow_auto_topic_creation=version < 4,
        )

    same(sides, build)


def test_metadata_of_no_topics_and_of_what_may_be_done(sides: Sides) -> None:
    def build(_: Side, version: int) -> Any:
        return MetadataRequest(
            topics=[MetadataRequestTopic(name=PLAIN)] if version >= 1 else [],
            include_cluster_authorized_operations=8 <= version <= 10,
            include_topic_authorized_operations=version >= 8,
        )

    same(sides, lambda _, version: None if version == 0 else build(_, version))
    same(sides, lambda _, version: None if version == 0 else MetadataRequest(topics=[]))


@pytest.mark.parametrize("known", [True, False])
def test_metadata_by_id(sides: Sides, known: bool) -> None:
    def build(side: Side, version: int) -> Any:
        if 0 <= version < 12:
            return None
        topic_id = side.topic_id(PLAIN) if known else UNKNOWN_ID
        return MetadataRequest(topics=[MetadataRequestTopic(topic_id=topic_id, name=None)])

    same(sides, build)


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
    "config_bad": [new("NAME", configs={"retention.ms": "soon"})],
    "assigned": [new("NAME", assignments={0: [1], 1: [1]})],
    "assigned_to_nobody": [new("NAME", assignments={0: []})],
    "assigned_to_unknown_broker": [new("NAME", assignments={0: [7]})],
    "assigned_twice": [new("NAME", assignments={0: [1, 1]})],
    "assigned_with_gap": [new("NAME", assignments={0: [1], 2: [1]})],
    "assigned_and_counted": [new("NAME", assignments={0: [1]}, num_partitions=1)],
    "no_partitions": [new("NAME", num_partitions=0)],
    "too_few_partitions": [new("NAME", num_partitions=-2)],
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
        for each in CREATED[case]:
            name = f"{case}-{version}" if each.name == "NAME" else each.name
            topics.append(
                CreatableTopic(
                    name=name,
                    num_partitions=each.num_partitions,
                    replication_factor=each.replication_factor,
                    assignments=each.assignments,
                    configs=each.configs,
                )
            )
        return CreateTopicsRequest(topics=topics, timeout_ms=10_000, validate_only=validate_only)

    same(sides, build)


@pytest.mark.parametrize("by_id", [True, False])
def test_delete_topics(sides: Sides, by_id: bool) -> None:
    def build(side: Side, version: int) -> Any:
        name = f"delete-{by_id}-{version}"
        if version >= 1:
            create(side, name)
        if version < 6:
            return DeleteTopicsRequest(topic_names=[name, "unknown-to-both"], timeout_ms=10_000)
        if by_id:
            known = DeleteTopicState(name=None, topic_id=side.topic_id(name))
            unknown = DeleteTopicState(name=None, topic_id=UNKNOWN_ID)
        else:
            known, unknown = DeleteTopicState(name=name), DeleteTopicState(name="unknown-to-both")
        return DeleteTopicsRequest(topics=[known, unknown], timeout_ms=10_000)

    same(sides, build)


def test_delete_topics_named_wrongly(sides: Sides) -> None:
    for states in (
        [DeleteTopicState(name="unknown-to-both", topic_id=UNKNOWN_ID)],
        [DeleteTopicState(name=None)],
        [DeleteTopicState(name="unknown-to-both"), DeleteTopicState(name="unknown-to-both")],
        [],
    ):
        same(
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
        (PLAIN, 200_000, None),
        ("unknown-to-both", 3, None),
        ("no/name", 3, None),
    ],
)
def test_create_partitions(
    sides: Sides, topic: str, count: int, assignments: list[list[int]] | None
) -> None:
    placed = (
        None
        if assignments is None
        else [CreatePartitionsAssignment(broker_ids=each) for each in assignments]
    )
    asked = CreatePartitionsTopic(name=topic, count=count, assignments=placed)
    for topics in [asked], [asked, asked]:
        same(
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
    place = Cursor(topic_name=cursor[0], partition_index=cursor[1]) if cursor else None
    request = DescribeTopicPartitionsRequest(
        topics=[TopicRequest(name=name) for name in names],
        response_partition_limit=limit,
        cursor=place,
    )
    same(sides, lambda *_: request)


@pytest.mark.parametrize("election", [*KNOWN_ELECTIONS, 2])
@pytest.mark.parametrize(
    ("topic", "partitions"), [(PLAIN, [0, 1]), (PLAIN, [99]), ("unknown-to-both", [0])]
)
def test_elect_leaders(sides: Sides, election: int, topic: str, partitions: list[int]) -> None:
    chosen = [TopicPartitions(topic=topic, partitions=partitions)]
    same(sides, lambda *_: elect(election, chosen))


@pytest.mark.parametrize("election", [*KNOWN_ELECTIONS, 2])
def test_elect_leaders_of_all_topics(sides: Sides, election: int) -> None:
    """Each broker names its own topics, and of each the partitions that it did something about."""
    but = {"replica_election_results": "each its own topics"}
    versions = same(sides, lambda *_: elect(election, None), but=but)
    for side, version in product(sides, versions):
        answer: Any = side.ask(elect(election, None), version)
        told = {each.topic: each.partition_result for each in answer.replica_election_results}
        expected = {name: [] for name in topics_of(side)} if election in KNOWN_ELECTIONS else {}
        assert (side.name, version, told) == (side.name, version, expected)


def elect(election: int, chosen: list[TopicPartitions] | None) -> ElectLeadersRequest:
    return ElectLeadersRequest(election_type=election, topic_partitions=chosen, timeout_ms=10_000)


def topics_of(side: Side) -> list[str]:
    answer: Any = side.ask(MetadataRequest(topics=None), 12)
    return [topic.name for topic in answer.topics]
