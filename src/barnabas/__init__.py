"""Barnabas: Apache Kafka's system in Python.

The clients have the surface of `confluent_kafka`: changing the import is the whole port. A name is
loaded when it is first used, so that importing the package costs next to nothing.
"""

from typing import TYPE_CHECKING

from barnabas.lazy import lazy_getattr

if TYPE_CHECKING:
    from barnabas.client._message import Message
    from barnabas.client.admin.model import (
        ConsumerGroupState,
        ConsumerGroupTopicPartitions,
        ConsumerGroupType,
        ElectionType,
        IsolationLevel,
        Node,
        TopicCollection,
        TopicPartitionInfo,
        Uuid,
    )
    from barnabas.client.consumer import Consumer
    from barnabas.client.errors import KafkaError, KafkaException
    from barnabas.client.partitioners import consistent, fnv1a, murmur2
    from barnabas.client.producer import Producer
    from barnabas.client.values import (
        OFFSET_BEGINNING,
        OFFSET_END,
        OFFSET_INVALID,
        OFFSET_STORED,
        TIMESTAMP_CREATE_TIME,
        TIMESTAMP_LOG_APPEND_TIME,
        TIMESTAMP_NOT_AVAILABLE,
        ThrottleEvent,
        TopicPartition,
    )
    from barnabas.deserializing_consumer import DeserializingConsumer
    from barnabas.serializing_producer import SerializingProducer
else:
    __getattr__ = lazy_getattr(
        __name__,
        {
            "barnabas.client._message": ("Message",),
            "barnabas.client.admin.model": (
                "ConsumerGroupState",
                "ConsumerGroupTopicPartitions",
                "ConsumerGroupType",
                "ElectionType",
                "IsolationLevel",
                "Node",
                "TopicCollection",
                "TopicPartitionInfo",
                "Uuid",
            ),
            "barnabas.client.consumer": ("Consumer",),
            "barnabas.client.errors": ("KafkaError", "KafkaException"),
            "barnabas.client.producer": ("Producer",),
            "barnabas.client.partitioners": ("consistent", "fnv1a", "murmur2"),
            "barnabas.client.values": (
                "OFFSET_BEGINNING",
                "OFFSET_END",
                "OFFSET_INVALID",
                "OFFSET_STORED",
                "TIMESTAMP_CREATE_TIME",
                "TIMESTAMP_LOG_APPEND_TIME",
                "TIMESTAMP_NOT_AVAILABLE",
                "ThrottleEvent",
                "TopicPartition",
            ),
            "barnabas.deserializing_consumer": ("DeserializingConsumer",),
            "barnabas.serializing_producer": ("SerializingProducer",),
        },
    )

_VERSION = (0, 1, 0)
__version__ = ".".join(map(str, _VERSION))

__all__ = [
    "OFFSET_BEGINNING",
    "OFFSET_END",
    "OFFSET_INVALID",
    "OFFSET_STORED",
    "TIMESTAMP_CREATE_TIME",
    "TIMESTAMP_LOG_APPEND_TIME",
    "TIMESTAMP_NOT_AVAILABLE",
    "Consumer",
    "ConsumerGroupState",
    "ConsumerGroupTopicPartitions",
    "ConsumerGroupType",
    "DeserializingConsumer",
    "ElectionType",
    "IsolationLevel",
    "KafkaError",
    "KafkaException",
    "Message",
    "Node",
    "Producer",
    "SerializingProducer",
    "ThrottleEvent",
    "TopicCollection",
    "TopicPartition",
    "TopicPartitionInfo",
    "Uuid",
    "consistent",
    "fnv1a",
    "libversion",
    "murmur2",
    "version",
]


def version() -> str:
    """Returns the version of this package."""
    return __version__


def libversion() -> tuple[str, int]:
    """Returns the version and its number, like `confluent_kafka` does for librdkafka."""
    major, minor, patch = _VERSION
    return __version__, major << 24 | minor << 16 | patch << 8 | 0xFF


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
