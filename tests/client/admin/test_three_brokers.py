"""Several brokers: requests go to the right one, also when one of them dies."""

from collections.abc import Iterator

import pytest
from tests.wait import wait_until

from barnabas import ElectionType, TopicCollection, TopicPartition
from barnabas.admin import (
    AdminClient,
    ConfigResource,
    KafkaError,
    NewTopic,
    OffsetSpec,
)
from barnabas.testing import Cluster


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(brokers=3) as cluster:
        yield cluster


@pytest.fixture
def admin(cluster: Cluster) -> Iterator[AdminClient]:
    with AdminClient({"bootstrap.servers": cluster.bootstrap_servers}) as admin:
        yield admin


def create(cluster: Cluster, admin: AdminClient, topic: NewTopic) -> None:
    """Returns when every broker has heard of it: anyone may be asked about it next."""
    admin.create_topics([topic])[topic.topic].result(30)
    wait_until(
        lambda: all((topic.topic, 0) in cluster.partitions_seen_by(each) for each in cluster.nodes),
        f"every broker knows {topic.topic}",
    )


def replicas(admin: AdminClient, topic: str) -> list[list[int]]:
    described = admin.describe_topics(TopicCollection([topic]))[topic].result(30)
    return [[node.id for node in partition.replicas] for partition in described.partitions]


def test_configs_of_a_broker_come_from_that_broker(admin: AdminClient) -> None:
    resources = [ConfigResource("broker", str(broker)) for broker in range(3)]
    answers = admin.describe_configs(resources)
    ids = [answers[each].result(30)["node.id"].value for each in resources]
    assert ids == ["0", "1", "2"]
    assert sorted(admin.describe_log_dirs([0, 1, 2])) == [0, 1, 2]
    spoken = admin.describe_api_versions().result(30).all()
    assert sorted(node.id for node in spoken) == [0, 1, 2]


def test_partitions_move_and_their_leaders_are_elected(
    cluster: Cluster, admin: AdminClient, name: str
) -> None:
    create(cluster, admin, NewTopic(name, replica_assignment=[[0], [1], [2]]))
    moved = TopicPartition(name, 0)
    admin.alter_partition_reassignments({moved: [1, 2]})[moved].result(30)
    wait_until(lambda: not admin.list_partition_reassignments().result(30), "the move is done")
    wait_until(lambda: replicas(admin, name) == [[1, 2], [1], [2]], "partition 0 is on 1 and 2")
    errors = admin.elect_leaders(ElectionType.PREFERRED, [moved]).result(30)
    assert errors[moved] in (None, KafkaError.ELECTION_NOT_NEEDED)


def test_offsets_are_listed_from_every_leader(
    cluster: Cluster, admin: AdminClient, name: str
) -> None:
    create(cluster, admin, NewTopic(name, replica_assignment=[[0], [1], [2]]))
    asked = {TopicPartition(name, index): OffsetSpec.latest() for index in range(3)}
    found = admin.list_offsets(asked)
    assert [future.result(30).offset for future in found.values()] == [0, 0, 0]


def test_calls_succeed_while_a_broker_is_down(
    cluster: Cluster, admin: AdminClient, name: str
) -> None:
    create(cluster, admin, NewTopic(name, replica_assignment=[[2, 0, 1], [0, 1, 2]]))
    cluster.kill(2)
    asked = {TopicPartition(name, index): OffsetSpec.latest() for index in range(2)}
    found = admin.list_offsets(asked, request_timeout=30)
    assert [future.result(30).offset for future in found.values()] == [0, 0]
    assert name in admin.list_topics(timeout=30).topics
    away = ConfigResource("broker", "2")
    assert admin.describe_configs([away], request_timeout=2)[away].exception(30) is not None
    cluster.restart(2)
