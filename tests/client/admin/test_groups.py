"""Consumer groups and what they have committed, requests for by an administrator."""

import pytest
from tests.client.admin.clients import member, produce

from barnabas import (
    ConsumerGroupState,
    ConsumerGroupTopicPartitions,
    ConsumerGroupType,
    TopicPartition,
)
from barnabas.admin import AdminClient, KafkaError
from barnabas.testing import Broker


def offsets(admin: AdminClient, group: str, *partitions: TopicPartition) -> dict[int, int]:
    request = ConsumerGroupTopicPartitions(group, list(partitions) or None)
    results = admin.list_consumer_group_offsets([request])[group].result(30)
    return {each.partition: each.offset for each in results.topic_partitions or ()}


def commit(admin: AdminClient, group: str, *partitions: TopicPartition) -> list[TopicPartition]:
    request = ConsumerGroupTopicPartitions(group, list(partitions))
    results = admin.alter_consumer_group_offsets([request])[group].result(30)
    return results.topic_partitions or []


@pytest.mark.parametrize(
    ("protocol", "kind", "assignor"),
    [
        ("classic", ConsumerGroupType.CLASSIC, "range"),
        ("consumer", ConsumerGroupType.CONSUMER, "uniform"),
    ],
)
def test_groups_of_both_protocols_are_listed_and_described(
    admin: AdminClient,
    broker: Broker,
    topic: str,
    protocol: str,
    kind: ConsumerGroupType,
    assignor: str,
) -> None:
    group = f"{topic}-readers"
    with member(broker.bootstrap_servers, group, topic, group_protocol=protocol):
        listed = admin.list_consumer_groups(states={ConsumerGroupState.STABLE}, types={kind})
        listing = next(each for each in listed.result(30).valid if each.group_id == group)
        assert (listing.state, listing.type) == (ConsumerGroupState.STABLE, kind)
        assert not listing.is_simple_consumer_group

        described = admin.describe_consumer_groups([group])[group].result(30)
    assert (described.state, described.type) == (ConsumerGroupState.STABLE, kind)
    assert (described.partition_assignor, described.coordinator.id) == (assignor, 1)
    (only,) = described.members
    assert (only.client_id, only.group_instance_id) == ("rdkafka", None)
    assert only.assignment.topic_partitions == [TopicPartition(topic, i) for i in range(3)]
    assert (only.member_epoch is not None) == (kind is ConsumerGroupType.CONSUMER)


def test_a_group_that_does_not_exist_is_dead(admin: AdminClient, name: str) -> None:
    described = admin.describe_consumer_groups([name])[name].result(30)
    assert (described.state, described.members) == (ConsumerGroupState.DEAD, [])


def test_the_first_request_for_a_group_finds_its_coordinator(
    admin: AdminClient, broker: Broker, name: str
) -> None:
    coordinator = admin.describe_consumer_groups([name])[name].result(30).coordinator
    assert f"{coordinator.host}:{coordinator.port}" == broker.bootstrap_servers


def test_list_groups_returns_raw_member_metadata(
    admin: AdminClient, broker: Broker, topic: str
) -> None:
    group = f"{topic}-readers"
    with member(broker.bootstrap_servers, group, topic), pytest.deprecated_call():
        (found,) = admin.list_groups(group, timeout=30)
    assert (found.id, found.state, found.protocol_type, found.protocol) == (
        group,
        "Stable",
        "consumer",
        "range",
    )
    assert found.members[0].client_id == "rdkafka"
    assert topic.encode() in (found.members[0].assignment or b"")
    with pytest.deprecated_call():
        assert admin.list_groups("nobody", timeout=30) == []


def test_groups_without_members_are_deleted(admin: AdminClient, broker: Broker, topic: str) -> None:
    group = f"{topic}-readers"
    with member(broker.bootstrap_servers, group, topic):
        outcomes = admin.delete_consumer_groups([group, "nobody"])
        assert outcomes[group].exception(30).args[0] == KafkaError.NON_EMPTY_GROUP
        assert outcomes["nobody"].exception(30).args[0] == KafkaError.GROUP_ID_NOT_FOUND
    commit(admin, group, TopicPartition(topic, 0, 0))
    assert admin.delete_consumer_groups([group])[group].result(30) is None


def test_static_members_are_removed_by_their_instance_ids(
    admin: AdminClient, broker: Broker, topic: str
) -> None:
    group = f"{topic}-readers"
    with member(broker.bootstrap_servers, group, topic, group_instance_id="first"):
        removed = admin.remove_members_from_consumer_group(group, ["first", "second"]).result(30)
        assert removed["first"] is None
        assert removed.errors == {"second": KafkaError(KafkaError.UNKNOWN_MEMBER_ID)}


def test_all_members_are_removed_if_none_is_named(
    admin: AdminClient, broker: Broker, topic: str
) -> None:
    group = f"{topic}-readers"
    with member(broker.bootstrap_servers, group, topic):
        removed = admin.remove_members_from_consumer_group(group, reason="moving").result(30)
        assert list(removed.all().values()) == [None]
    assert admin.remove_members_from_consumer_group(group).result(30).all() == {}


def test_committed_offsets_are_altered_listed_and_deleted(
    admin: AdminClient, broker: Broker, topic: str
) -> None:
    produce(broker.bootstrap_servers, topic, 5)
    group = f"{topic}-readers"
    given = [TopicPartition(topic, 1, 3, "why", 0), TopicPartition(topic, 0, 2)]
    assert [each.error for each in commit(admin, group, *given)] == [None, None]
    assert offsets(admin, group) == {0: 2, 1: 3}
    requests = [TopicPartition(topic, 1), TopicPartition(topic, 2)]
    assert offsets(admin, group, *requests) == {1: 3, 2: -1001}
    one = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group, requests)])
    first = (one[group].result(30).topic_partitions or [])[0]
    assert (first.metadata, first.leader_epoch) == ("why", 0)

    forgotten = ConsumerGroupTopicPartitions(group, [TopicPartition(topic, 1)])
    results = admin.delete_consumer_group_offsets([forgotten])[group].result(30)
    assert [each.error for each in results.topic_partitions or ()] == [None]
    assert offsets(admin, group) == {0: 2}


def test_each_partition_has_its_own_error(admin: AdminClient, topic: str) -> None:
    given = [TopicPartition(topic, 0, 2), TopicPartition("nobody", 0, 2)]
    errors = {each.topic: each.error for each in commit(admin, f"{topic}-readers", *given)}
    assert errors == {topic: None, "nobody": KafkaError.UNKNOWN_TOPIC_OR_PART}


def test_offsets_of_a_group_with_members_cannot_be_altered(
    admin: AdminClient, broker: Broker, topic: str
) -> None:
    group = f"{topic}-readers"
    with member(broker.bootstrap_servers, group, topic):
        (results,) = commit(admin, group, TopicPartition(topic, 0, 1))
        assert results.error == KafkaError.UNKNOWN_MEMBER_ID
        owned = ConsumerGroupTopicPartitions(group, [TopicPartition(topic, 0)])
        kept = admin.delete_consumer_group_offsets([owned])[group].result(30).topic_partitions
        assert [each.error for each in kept or ()] == [KafkaError.GROUP_SUBSCRIBED_TO_TOPIC]


def test_many_groups_are_requested_in_one_call(admin: AdminClient, topic: str) -> None:
    groups = [f"{topic}-{number}" for number in range(20)]
    requests = [
        ConsumerGroupTopicPartitions(group, [TopicPartition(topic, 0, number)])
        for number, group in enumerate(groups)
    ]
    for altered in admin.alter_consumer_group_offsets(requests).values():
        altered.result(30)
    requests = [ConsumerGroupTopicPartitions(group) for group in groups]
    results = admin.list_consumer_group_offsets(requests)
    found = [(results[group].result(30).topic_partitions or [])[0].offset for group in groups]
    assert found == list(range(20))


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (None, TypeError),
        ([], ValueError),
        (["a group"], TypeError),
        ([ConsumerGroupTopicPartitions("")], ValueError),
        ([ConsumerGroupTopicPartitions("g", [])], ValueError),
        ([ConsumerGroupTopicPartitions("g", [TopicPartition("t", -2)])], ValueError),
        ([ConsumerGroupTopicPartitions("g", [TopicPartition("t", 0, 5)])], ValueError),
    ],
)
def test_invalid_arguments_are_rejected_at_once(
    admin: AdminClient, request_: list[ConsumerGroupTopicPartitions], error: type[Exception]
) -> None:
    with pytest.raises(error):
        admin.list_consumer_group_offsets(request_)


def test_states_and_types_must_be_sets(admin: AdminClient) -> None:
    with pytest.raises(TypeError, match="set of ConsumerGroupState"):
        admin.list_consumer_groups(states=[ConsumerGroupState.STABLE])
    with pytest.raises(TypeError, match="set of ConsumerGroupType"):
        admin.list_consumer_groups(types={"classic"})
