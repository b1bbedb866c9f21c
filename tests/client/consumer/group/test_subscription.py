"""Subscriptions, and the topics that they mean."""

import pytest
from tests.client.consumer.group.stepping import metadata

from barnabas.client.cluster.metadata import BrokerInfo, MetadataSnapshot, PartitionInfo, TopicInfo
from barnabas.client.consumer.group.subscription import (
    Subscription,
    partition_counts,
    topics_with_racks,
)
from barnabas.client.errors import KafkaException
from barnabas.wire.errors import ErrorCode


def test_a_name_that_starts_with_a_caret_is_a_pattern() -> None:
    known = metadata(orders=1, ordinary=1, other=1, named=1)
    sought = Subscription.parse(["named", "^ord"]).resolve(known, with_internal=False)
    assert (sought.names, sought.matching) == ({"named"}, {"orders", "ordinary"})
    assert sought.topics == {"named", "orders", "ordinary"}
    assert sought.pattern == "^ord"


def test_several_patterns_become_one_for_the_coordinator() -> None:
    sought = Subscription.parse(["^a.*", "^b"]).resolve(MetadataSnapshot(), with_internal=False)
    assert sought.pattern == "(^a.*)|(^b)"


def test_an_invalid_pattern_is_rejected() -> None:
    with pytest.raises(KafkaException, match="not a regular expression"):
        Subscription.parse(["^("])


def test_patterns_skip_internal_and_missing_topics() -> None:
    topics = [
        TopicInfo("a-there"),
        TopicInfo("a-internal", is_internal=True),
        TopicInfo("a-gone", error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        TopicInfo("a-forbidden", error=ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        TopicInfo("a-without-leader", error=ErrorCode.LEADER_NOT_AVAILABLE),
    ]
    known = MetadataSnapshot(topics={topic.name: topic for topic in topics})
    pattern = Subscription.parse(["^a-"])
    matching = pattern.resolve(known, with_internal=False).matching
    assert matching == {"a-there", "a-without-leader"}
    assert "a-internal" in pattern.resolve(known, with_internal=True).matching


def test_a_topic_with_a_temporary_error_keeps_its_partition_count() -> None:
    topics = {
        "there": TopicInfo("there", partitions=(PartitionInfo(0), PartitionInfo(1))),
        "unsure": TopicInfo("unsure", error=ErrorCode.LEADER_NOT_AVAILABLE),
        "gone": TopicInfo("gone", error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    }
    before = {"there": 1, "unsure": 3, "gone": 4, "forgotten": 5}
    assert partition_counts(MetadataSnapshot(topics=topics), before, before) == {
        "there": 2,
        "unsure": 3,
        "gone": 0,
        "forgotten": 0,
    }


def test_partitions_are_in_the_racks_of_their_replicas() -> None:
    known = MetadataSnapshot(
        brokers={1: BrokerInfo(1, "h", 1, "x"), 2: BrokerInfo(2, "h", 2, "y")},
        topics={"t": TopicInfo("t", partitions=(PartitionInfo(0, replicas=(1, 2, 3)),))},
    )
    assert topics_with_racks({"t": 1}, known).racks == {("t", 0): {"x", "y"}}
