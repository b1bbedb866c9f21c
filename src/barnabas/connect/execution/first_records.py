"""Reads the first records of topics, without a group and without Spark."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from barnabas.client.consumer.consumer import Consumer
from barnabas.client.errors import KafkaException
from barnabas.client.values import TopicPartition
from barnabas.connect.errors import ConnectError
from barnabas.connect.execution.log_ends import SinkTopics

if TYPE_CHECKING:
    import pyarrow as pa

_TIMEOUT_S = 30.0
_POLL_S = 0.5
_OWN_SETTINGS = (
    "auto.offset.reset",
    "enable.auto.commit",
    "group.id",
    "key.deserializer",
    "value.deserializer",
)


def first_records(
    conf: Mapping[str, str], topics: SinkTopics, count: int
) -> Iterator[pa.RecordBatch]:
    """Yields up to `count` records, in the columns that a pipeline takes.

    Ends at the ends that the partitions have now. Raises KafkaException, and ConnectError if a
    topic does not exist.
    """
    own = {name: text for name, text in conf.items() if name not in _OWN_SETTINGS}
    consumer = Consumer({**own, "group.id": "connect-first-records", "enable.auto.commit": "false"})
    try:
        ends = _ends(consumer, topics)
        consumer.assign([TopicPartition(*key, start) for key, (start, _) in ends.items()])
        left = {key: end for key, (start, end) in ends.items() if start < end}
        while count > 0 and left:
            batch = consumer.consume_arrow(count, _POLL_S)
            for partition in consumer.position(consumer.assignment()):
                key = partition.topic, partition.partition
                if partition.offset >= left.get(key, partition.offset + 1):
                    del left[key]
            if batch.num_rows:
                count -= batch.num_rows
                yield batch
    finally:
        consumer.close()


def _ends(consumer: Consumer, topics: SinkTopics) -> dict[tuple[str, int], tuple[int, int]]:
    """Returns the first offset and the end of all partitions."""
    cluster = consumer.list_topics(timeout=_TIMEOUT_S)
    names, pattern = list(topics.names), topics.pattern
    if pattern is not None:
        names = sorted(name for name in cluster.topics if pattern.fullmatch(name))
    missing = [name for name in names if name not in cluster.topics]
    if missing:
        raise ConnectError(f"There is no topic {', '.join(missing)}.")
    found = {}
    for name in names:
        topic = cluster.topics[name]
        if topic.error is not None:
            raise KafkaException(topic.error)
        for index in sorted(topic.partitions):
            partition = TopicPartition(name, index)
            found[name, index] = consumer.get_watermark_offsets(partition, _TIMEOUT_S)
    return found
