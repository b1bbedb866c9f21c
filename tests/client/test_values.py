"""Offsets, partitions and events have confluent_kafka's shape."""

import copy
import pickle
from typing import Any

import confluent_kafka
import pytest

from barnabas.client import values
from barnabas.client.values import ConsumerGroupMetadata, ThrottleEvent, TopicPartition

CONSTANTS = [name for name in dir(confluent_kafka) if name.startswith(("OFFSET_", "TIMESTAMP_"))]


@pytest.mark.parametrize("name", CONSTANTS)
def test_constants_are_those_of_confluent_kafka(name: str) -> None:
    assert getattr(values, name) == getattr(confluent_kafka, name)


@pytest.mark.parametrize(
    "arguments",
    [("a",), ("a", 1), ("a", 1, 5), ("a", 0, -2), ("a", 0, 3, "note"), ("a", 0, 3, "note", 4)],
)
def test_the_text_of_a_topic_partition_is_confluent_kafkas(arguments: tuple[Any, ...]) -> None:
    ours, theirs = TopicPartition(*arguments), confluent_kafka.TopicPartition(*arguments)
    assert repr(ours) == repr(theirs)
    for name in ("topic", "partition", "offset", "metadata", "leader_epoch", "error"):
        assert getattr(ours, name) == getattr(theirs, name)


def test_partitions_are_equal_whatever_their_offsets() -> None:
    one, other = TopicPartition("a", 1, 5), TopicPartition("a", 1, 6)
    assert one == other
    assert hash(one) == hash(other)
    assert one != TopicPartition("a", 2)
    assert one != ("a", 1)
    assert sorted([TopicPartition("b"), TopicPartition("a", 2), one])[0] is one
    assert one <= other


@pytest.mark.parametrize("arguments", [(), (3,), ("a", "b"), ("a", 0, "x"), ("a", 0, 1.5)])
def test_a_partition_of_wrong_types_is_a_type_error(arguments: tuple[Any, ...]) -> None:
    with pytest.raises(TypeError):
        TopicPartition(*arguments)


def test_partitions_are_copied_and_pickled() -> None:
    one = TopicPartition("a", 1, 5, "note", 3)
    for again in (copy.copy(one), pickle.loads(pickle.dumps(one))):
        assert repr(again) == repr(one)
        assert again.metadata == "note"
    one.offset = 9
    assert one.offset == 9


def test_a_throttle_event_has_a_one_line_text() -> None:
    ours, theirs = ThrottleEvent("b:9092", 1, 0.5), confluent_kafka.ThrottleEvent("b:9092", 1, 0.5)
    assert str(ours) == str(theirs)
    assert (ours.broker_name, ours.broker_id, ours.throttle_time) == ("b:9092", 1, 0.5)


def test_group_metadata_has_its_fields() -> None:
    member = ConsumerGroupMetadata("g", 3, "m", "i")
    assert (member.group_id, member.generation_id) == ("g", 3)
    assert (member.member_id, member.group_instance_id) == ("m", "i")
