"""Topics that are created, grow and are deleted: which groups check them, and their hash."""

import pytest
from tests.coordinator.consumer.harness import INTERVAL_MS, ConsumerHarness, Member, assigned

from barnabas.coordinator.groups.consumer.topics import metadata_hash
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.states import (
    BrokerRegistration,
    DirectoryId,
    PartitionRegistration,
    TopicImage,
)
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.uuid import from_text


@pytest.fixture
def harness() -> ConsumerHarness:
    return ConsumerHarness()


def test_partitions_that_are_added_are_assigned(harness: ConsumerHarness) -> None:
    epoch = harness.stable("m", partitions=2)
    topic_id = harness.topic("t", 3)
    assert harness.group.epoch == epoch
    harness.advance(INTERVAL_MS)
    response = harness.heartbeat("m", epoch)
    assert response.member_epoch == epoch + 1
    assert assigned(response) == {(topic_id, index) for index in range(3)}


def test_a_topic_may_be_created_after_it_is_subscribed_to(harness: ConsumerHarness) -> None:
    response = harness.join("m", "t")
    assert assigned(response) == set()
    assert harness.group.metadata_hash == 0
    topic_id = harness.topic("t", 1)
    harness.advance(INTERVAL_MS)
    assert assigned(harness.heartbeat("m", response.member_epoch)) == {(topic_id, 0)}


def test_a_deleted_topic_is_revoked_from_its_owner(harness: ConsumerHarness) -> None:
    harness.topic("t", 2)
    harness.topic("u", 1)
    member = Member(harness, "m")
    member.join("t", "u")
    harness.environment.delete_topic("t")
    harness.advance(INTERVAL_MS)
    member.heartbeat()
    assert {topic_id for topic_id, _ in member.owned} == {harness.topic("u", 1)}
    member.heartbeat()
    assert harness.group.state_name == "Stable"


def test_a_topic_that_is_created_again_is_another_topic(harness: ConsumerHarness) -> None:
    epoch = harness.stable("m")
    harness.environment.delete_topic("t")
    harness.environment.create_topic("t", 4, bytes(15) + b"\7")
    harness.heartbeat("m", epoch)
    assert harness.group.epoch == epoch + 1


def test_only_subscribers_of_a_topic_check_it_again(harness: ConsumerHarness) -> None:
    harness.topic("t", 1)
    harness.topic("u", 1)
    harness.join("m", "t")
    harness.join("n", "u", group="h")
    harness.topic("u", 2)
    assert not harness.group.has_new_topics
    assert harness.groups.by_id["h"].has_new_topics  # type: ignore[attr-defined]


def test_a_metadata_change_without_effect_on_the_topic_bumps_no_epoch(
    harness: ConsumerHarness,
) -> None:
    epoch = harness.stable("m", partitions=2)
    harness.topic("t", 2)
    assert harness.group.has_new_topics
    harness.heartbeat("m", epoch)
    assert harness.group.epoch == epoch


def test_new_topics_are_checked_again_after_a_failed_write(harness: ConsumerHarness) -> None:
    epoch = harness.stable("m", partitions=2)
    harness.topic("t", 3)
    harness.environment.log.append_error = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS, "")
    assert harness.code("m", epoch) == ErrorCode.COORDINATOR_NOT_AVAILABLE
    harness.environment.log.append_error = None
    harness.heartbeat("m", epoch)
    assert harness.group.epoch == epoch + 1


def test_after_a_failover_topics_are_checked_again(harness: ConsumerHarness) -> None:
    epoch = harness.stable("m", partitions=2)
    harness.environment.runtime.close()
    harness.environment.create_topic("t", 3)
    harness.lead()
    harness.heartbeat("m", epoch)
    assert harness.group.epoch == epoch + 1


# Hashes that Kafka 4.3.1 wrote for topics that it had.


def image(*topics: tuple[str, str, int], rack: str | None = None) -> MetadataImage:
    """A cluster of one broker, maybe in a rack."""
    known = MetadataImage()
    known.brokers[1] = BrokerRegistration(1, 0, bytes(16), (), {}, rack, False, False, ())
    partition = PartitionRegistration((1,), (1,), 1, 0, 0, (DirectoryId.UNASSIGNED,))
    for name, topic_id, count in topics:
        partitions = dict.fromkeys(range(count), partition)
        known.topics.add(TopicImage(name, from_text(topic_id), partitions))
    return known


FOO = ("foo", "3drAg9ClQKiFCSeC2M7-Dg", 4)


def test_topics_are_hashed_as_kafka_hashes_them() -> None:
    assert metadata_hash(["foo"], image(FOO)) == 2067050948056496224
    zeta = ("zeta221143", "PHgbs3oQTDyJfRqIUnNZUw", 3)
    alpha = ("alpha-e221143", "x3C0MpntRrG4Gy7BOIPUVw", 2)
    assert metadata_hash([zeta[0], alpha[0]], image(zeta, alpha)) == 8558863459440830336


def test_racks_are_hashed_as_kafka_hashes_them() -> None:
    zeta = ("zeta919873", "aQm4aldyRxG-AKpmN-W5mg", 3)
    alpha = ("alpha-e919873", "vQOnPrhATfiepFg-uMvwGg", 2)
    known = image(zeta, alpha, rack="rack-a")
    assert metadata_hash([zeta[0], alpha[0]], known) == 2583310666413916317


def test_topics_that_do_not_exist_are_not_hashed() -> None:
    assert metadata_hash(["foo", "bar"], image(FOO)) == metadata_hash(["foo"], image(FOO))
    assert metadata_hash(["bar"], image(FOO)) == 0
