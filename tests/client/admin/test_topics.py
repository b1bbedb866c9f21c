"""Topics and partitions, asked for by an administrator."""

import pytest

from barnabas import TopicCollection
from barnabas.admin import AdminClient, KafkaError, KafkaException, NewPartitions, NewTopic
from barnabas.testing import Broker


def test_topics_are_created_described_and_deleted(admin: AdminClient, name: str) -> None:
    created = admin.create_topics([NewTopic(name, 2, 1, config={"retention.ms": "60000"})])
    assert created[name].result(30) is None
    described = admin.describe_topics(TopicCollection([name]))[name].result(30)
    assert (described.name, described.is_internal) == (name, False)
    assert [partition.id for partition in described.partitions] == [0, 1]
    assert {partition.leader.id for partition in described.partitions if partition.leader} == {1}
    assert admin.delete_topics([name])[name].result(30) is None
    assert name not in admin.list_topics(timeout=30).topics


def test_each_topic_has_its_own_outcome(admin: AdminClient, topic: str) -> None:
    outcomes = admin.create_topics([NewTopic(topic, 1, 1), NewTopic("no name", 1, 1)])
    assert outcomes[topic].exception(30).args[0] == KafkaError.TOPIC_ALREADY_EXISTS
    assert outcomes["no name"].exception(30).args[0] == KafkaError.TOPIC_EXCEPTION


def test_offsets_of_a_missing_topic_fail_at_once(admin: AdminClient, topic: str) -> None:
    described = admin.describe_topics(TopicCollection([topic, "nobody"]))
    assert described[topic].result(30).name == topic
    assert described["nobody"].exception(30).args[0] == KafkaError.UNKNOWN_TOPIC_OR_PART
    deleted = admin.delete_topics(["nobody"])
    assert deleted["nobody"].exception(30).args[0] == KafkaError.UNKNOWN_TOPIC_OR_PART


def test_validate_only_creates_nothing(admin: AdminClient, name: str) -> None:
    admin.create_topics([NewTopic(name, 1, 1)], validate_only=True)[name].result(30)
    assert name not in admin.list_topics(timeout=30).topics


def test_a_topic_is_created_with_a_replica_assignment(admin: AdminClient, name: str) -> None:
    admin.create_topics([NewTopic(name, replica_assignment=[[1], [1]])])[name].result(30)
    partitions = admin.list_topics(name, timeout=30).topics[name].partitions
    assert {index: each.replicas for index, each in partitions.items()} == {0: [1], 1: [1]}


@pytest.mark.parametrize(
    ("new_topics", "error"),
    [
        ([], ValueError),
        (["a name"], TypeError),
        ("a name", TypeError),
        ([NewTopic("t", 1, 1, [[1]])], ValueError),
        ([NewTopic("t", 3, replica_assignment=[[1]])], ValueError),
    ],
)
def test_invalid_arguments_are_rejected_at_once(
    admin: AdminClient, new_topics: list[NewTopic], error: type[Exception]
) -> None:
    with pytest.raises(error):
        admin.create_topics(new_topics)


@pytest.mark.parametrize("timeout", [-5, 3601])
def test_a_timeout_out_of_range_is_rejected(admin: AdminClient, timeout: float) -> None:
    with pytest.raises(ValueError, match="request_timeout must be from 0 to 3600 seconds"):
        admin.delete_topics(["t"], request_timeout=timeout)


def test_list_topics_returns_the_brokers_of_the_cluster(
    admin: AdminClient, broker: Broker, topic: str
) -> None:
    cluster = admin.list_topics(timeout=30)
    assert cluster.cluster_id == admin.cluster_id(timeout=30)
    assert (cluster.controller_id, cluster.orig_broker_id) == (1, 1)
    assert f"{cluster.brokers[1]}" == cluster.orig_broker_name == f"{broker.bootstrap_servers}/1"
    partition = cluster.topics[topic].partitions[2]
    assert (partition.id, partition.leader, partition.replicas, partition.isrs) == (2, 1, [1], [1])


def test_listing_a_missing_topic_does_not_create_it(admin: AdminClient, name: str) -> None:
    error = admin.list_topics(name, timeout=30).topics[name].error
    assert error == KafkaError.UNKNOWN_TOPIC_OR_PART
    assert name not in admin.list_topics(timeout=30).topics


def test_partitions_are_added(admin: AdminClient, topic: str) -> None:
    added = admin.create_partitions([NewPartitions(topic, 5), NewPartitions("nobody", 5)])
    assert added[topic].result(30) is None
    assert added["nobody"].exception(30).args[0] == KafkaError.UNKNOWN_TOPIC_OR_PART
    assert len(admin.list_topics(topic, timeout=30).topics[topic].partitions) == 5
    fewer = admin.create_partitions([NewPartitions(topic, 1)])[topic]
    with pytest.raises(KafkaException) as raised:
        fewer.result(30)
    assert raised.value.args[0] == KafkaError.INVALID_PARTITIONS


def test_a_topic_with_more_partitions_than_a_page_is_described_whole(
    admin: AdminClient, name: str
) -> None:
    names = [f"{name}-{number}" for number in range(4)]
    created = admin.create_topics([NewTopic(each, 700, 1) for each in names])
    for each in created.values():
        each.result(60)
    described = admin.describe_topics(TopicCollection(names))
    for each in names:
        partitions = described[each].result(60).partitions
        assert [partition.id for partition in partitions] == list(range(700))
    for each in admin.delete_topics(names).values():
        each.result(60)
