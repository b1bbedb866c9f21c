"""Checks of users' arguments, as `confluent_kafka` checks them."""

import time
from collections.abc import Callable, Mapping
from typing import Any

from barnabas.client._message import Message
from barnabas.client.consumer.user_events import RebalanceType
from barnabas.client.errors import KafkaError, fail
from barnabas.client.settings import EXPECTED_SETTINGS, ConsumerSettings, consumer_settings
from barnabas.client.values import TopicPartition

MAX_MESSAGES = 1_000_000
FOREVER_MS = 2**31 - 1


def parse_settings(conf: tuple[Any, ...], more: Mapping[str, Any]) -> ConsumerSettings:
    """Returns the settings of a dict, of keywords, or of both. Requires a group.id."""
    if len(conf) > 1 or (conf and not isinstance(conf[0], dict)) or not (conf or more):
        raise TypeError(EXPECTED_SETTINGS)
    settings = consumer_settings({**(conf[0] if conf else {}), **more})
    if not settings.group_id:
        raise ValueError("Failed to create consumer: group.id must be set")
    return settings


def topic_partitions(value: object) -> list[TopicPartition]:
    if not isinstance(value, list):
        raise TypeError(f"requires list of TopicPartition, not {type(value).__name__}")
    return [topic_partition(item) for item in value]


def distinct_topic_partitions(value: object) -> list[TopicPartition]:
    """Returns partitions to assign. Raises _INVALID_ARG for duplicates."""
    partitions = topic_partitions(value)
    if len(set(partitions)) < len(partitions):
        fail(KafkaError._INVALID_ARG, "a partition is named more than once")
    return partitions


def topic_partition(value: object) -> TopicPartition:
    if not isinstance(value, TopicPartition):
        raise TypeError(f"expected barnabas.TopicPartition, not {type(value).__name__}")
    return value


def topics(value: object) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise TypeError('expected list of topic unicode strings, such as ["orders"]')
    if not value:
        fail(KafkaError._INVALID_ARG, "Failed to set subscription: it names no topic")
    return value


def _callback(value: object, name: str) -> Callable[..., Any] | None:
    if value is not None and not callable(value):
        raise TypeError(f"{name} expects a callable")
    return value


def rebalance_callbacks(
    on_assign: object, on_revoke: object, on_lost: object
) -> dict[RebalanceType, Callable[..., Any] | None]:
    """Returns the callbacks of `subscribe`; `on_lost` defaults to `on_revoke`."""
    revoked = _callback(on_revoke, "on_revoke")
    return {
        RebalanceType.ASSIGNED: _callback(on_assign, "on_assign"),
        RebalanceType.REVOKED: revoked,
        RebalanceType.LOST: _callback(on_lost, "on_lost") or revoked,
    }


def message_count(value: int) -> int:
    if not 0 <= value <= MAX_MESSAGES:
        raise ValueError("num_messages must be between 0 and 1000000 (1M)")
    return value


def timeout_seconds(timeout: float) -> float | None:
    """Returns the timeout in seconds; None to wait as long as it takes."""
    if not isinstance(timeout, int | float):
        raise TypeError(f"must be real number, not {type(timeout).__name__}")
    return None if timeout < 0 else timeout


def timeout_milliseconds(timeout: float) -> int:
    wait_s = timeout_seconds(timeout)
    return FOREVER_MS if wait_s is None else min(FOREVER_MS, round(wait_s * 1000))


def deadline_s(timeout: float) -> float | None:
    """Returns when a wait of `timeout` seconds from now ends; None for one that does not."""
    timeout_s = timeout_seconds(timeout)
    return None if timeout_s is None else time.monotonic() + timeout_s


def offsets_to_commit(
    message: Message | None, value: list[TopicPartition] | None, act: str
) -> list[TopicPartition] | None:
    """Returns the offset after a message, or the given offsets; None if there is neither."""
    if message is not None and value is not None:
        raise ValueError("message and offsets are mutually exclusive")
    if value is not None:
        return topic_partitions(value)
    if message is None:
        return None
    if not isinstance(message, Message):
        raise TypeError(f"expected barnabas.Message, not {type(message).__name__}")
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
