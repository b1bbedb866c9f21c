"""What users hand in, checked as `confluent_kafka` checks it."""

from collections.abc import Callable, Mapping
from typing import Any

from barnabas.client._message import Message
from barnabas.client.errors import KafkaError, fail
from barnabas.client.settings import ConsumerSettings, consumer_settings
from barnabas.client.values import TopicPartition

MAX_MESSAGES = 1_000_000
FOREVER_MS = 2**31 - 1


def parse_settings(conf: tuple[Any, ...], more: Mapping[str, Any]) -> ConsumerSettings:
    """The settings in a dictionary, or in keywords, or in both; a consumer has a group."""
    if len(conf) > 1 or (conf and not isinstance(conf[0], dict)) or not (conf or more):
        raise TypeError("expected configuration dict")
    settings = consumer_settings({**(conf[0] if conf else {}), **more})
    if not settings.group_id:
        raise ValueError("Failed to create consumer: group.id must be set")
    return settings


def topic_partitions(given: object) -> list[TopicPartition]:
    if not isinstance(given, list):
        raise TypeError("requires list of TopicPartition")
    return [topic_partition(each) for each in given]


def distinct_topic_partitions(given: object) -> list[TopicPartition]:
    """Partitions to be assigned."""
    places = topic_partitions(given)
    if len(set(places)) < len(places):
        fail(KafkaError._INVALID_ARG, "a partition is named more than once")
    return places


def topic_partition(given: object) -> TopicPartition:
    if not isinstance(given, TopicPartition):
        raise TypeError("expected barnabas.TopicPartition")
    return given


def topics(given: object) -> list[str]:
    if not isinstance(given, list) or not all(isinstance(each, str) for each in given):
        raise TypeError("expected list of topic unicode strings")
    if not given:
        fail(KafkaError._INVALID_ARG, "Failed to set subscription: it names no topic")
    return given


def callback(given: object, name: str) -> Callable[..., Any] | None:
    if given is not None and not callable(given):
        raise TypeError(f"{name} expects a callable")
    return given


def message_count(given: int) -> int:
    if not 0 <= given <= MAX_MESSAGES:
        raise ValueError("num_messages must be between 0 and 1000000 (1M)")
    return given


def timeout_seconds(timeout: float) -> float | None:
    """How long to wait; None is as long as it takes."""
    if not isinstance(timeout, int | float):
        raise TypeError(f"must be real number, not {type(timeout).__name__}")
    return None if timeout < 0 else timeout


def timeout_milliseconds(timeout: float) -> int:
    wait_s = timeout_seconds(timeout)
    return FOREVER_MS if wait_s is None else min(FOREVER_MS, round(wait_s * 1000))


def offsets_to_commit(
    message: Message | None, given: list[TopicPartition] | None, act: str
) -> list[TopicPartition] | None:
    """The offsets that a message stands for, or those given; None if there is neither."""
    if message is not None and given is not None:
        raise ValueError("message and offsets are mutually exclusive")
    if given is not None:
        return topic_partitions(given)
    if message is None:
        return None
    if not isinstance(message, Message):
        raise TypeError("expected barnabas.Message")
    error = message.error()
    if error is not None:
        fail(
            KafkaError._INVALID_ARG,
            f"Cannot {act} offsets for message with error: '{error.str()}'",
        )
    topic, partition, offset = message.topic(), message.partition(), message.offset()
    if topic is None or partition is None or offset is None:
        raise ValueError(f"Cannot {act} offsets for a message without topic, partition and offset")
    return [TopicPartition(topic, partition, offset + 1, leader_epoch=message.leader_epoch())]
