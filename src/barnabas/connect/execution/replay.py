"""Sends the records of a dead letter queue back to the topics that they came from.

    for progress in replay(conf, "orders-dlq"): ...

Progress is committed to a consumer group, together with the records and in one transaction, so each
dead letter is sent back once, however often the replay is started or interrupted. A dead letter
needs the header `__connect.errors.topic`, which a connector writes if
`errors.deadletterqueue.context.headers.enable` is true; others are counted and left.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from barnabas.client.consumer.consumer import Consumer
from barnabas.client.errors import KafkaException
from barnabas.client.producer import Producer
from barnabas.client.values import TopicPartition
from barnabas.connect.execution.dead_letters import CONNECTOR, TOPIC, without_context_headers

BATCH_RECORDS = 500
_TIMEOUT_S = 60.0
_POLL_S = 0.2


@dataclass(slots=True, frozen=True)
class ReplayProgress:
    """What was done so far. With `is_dry_run`, what would be done."""

    read: int = 0
    replayed: int = 0
    without_origin: int = 0
    """Dead letters without the header of their topic."""
    of_others: int = 0
    """Dead letters of other connectors."""
    topics: Mapping[str, int] | None = None
    """Records by the topic that they were sent to."""
    total: int = 0
    """The offsets to read, as of the start. Some of them may have no record."""


def replay_group(topic: str, connector: str | None) -> str:
    """Returns the consumer group that has the progress."""
    return f"replay-{topic}" if connector is None else f"replay-{topic}-{connector}"


def replay(
    conf: Mapping[str, str],
    topic: str,
    *,
    connector: str | None = None,
    group: str | None = None,
    is_dry_run: bool = False,
) -> Iterator[ReplayProgress]:
    """Reads to the current end of the topic, and yields the progress after each batch.

    With `connector`, only dead letters of that connector are sent, and progress is separate. Raises
    KafkaException.
    """
    group = group or replay_group(topic, connector)
    consumer = Consumer(
        {
            **conf,
            "group.id": group,
            "enable.auto.commit": "false",
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
        }
    )
    producer = None
    try:
        if not is_dry_run:
            # The id fences another replay of this group before the committed offsets are read.
            producer = Producer({**conf, "transactional.id": group})
            producer.init_transactions(_TIMEOUT_S)
        ends, total = _assign(consumer, topic)
        yield from _replay(consumer, producer, ends, connector, total)
    finally:
        if producer is not None:
            producer.close(0)
        consumer.close()


def _assign(consumer: Consumer, topic: str) -> tuple[dict[int, int], int]:
    """Assigns all partitions from their committed offsets on.

    Returns the ends, and the number of offsets before them.
    """
    metadata = consumer.list_topics(topic, _TIMEOUT_S).topics[topic]
    if metadata.error is not None:
        raise KafkaException(metadata.error)
    committed = consumer.committed(
        [TopicPartition(topic, index) for index in sorted(metadata.partitions)], _TIMEOUT_S
    )
    ends, total = {}, 0
    for partition in committed:
        start, end = consumer.get_watermark_offsets(partition, _TIMEOUT_S)
        partition.offset = max(partition.offset, start)
        if partition.offset < end:
            ends[partition.partition] = end
            total += end - partition.offset
    consumer.assign([each for each in committed if each.partition in ends])
    return ends, total


def _replay(
    consumer: Consumer,
    producer: Producer | None,
    ends: dict[int, int],
    connector: str | None,
    total: int,
) -> Iterator[ReplayProgress]:
    counts = {"total": total, "read": 0, "replayed": 0, "without_origin": 0, "of_others": 0}
    topics: dict[str, int] = {}
    while ends:
        messages = consumer.consume(BATCH_RECORDS, _POLL_S)
        if producer is not None:
            producer.begin_transaction()
        for message in messages:
            if message.error() is not None:
                raise KafkaException(message.error())
            partition, offset = message.partition(), message.offset()
            if partition is None or offset is None or offset >= ends.get(partition, 0):
                continue
            counts["read"] += 1
            headers = list(message.headers() or ())
            described = dict(headers)
            origin = described.get(TOPIC)
            if connector is not None and described.get(CONNECTOR) != connector.encode():
                counts["of_others"] += 1
            elif origin is None:
                counts["without_origin"] += 1
            else:
                target = origin.decode()
                counts["replayed"] += 1
                topics[target] = topics.get(target, 0) + 1
                if producer is not None:
                    _, timestamp_ms = message.timestamp()
                    producer.produce(
                        target,
                        value=message.value(),
                        key=message.key(),
                        timestamp=max(timestamp_ms, 0),
                        headers=without_context_headers(headers),
                    )
        positions = [
            TopicPartition(each.topic, each.partition, min(each.offset, ends[each.partition]))
            for each in consumer.position(consumer.assignment())
            if each.partition in ends and each.offset >= 0
        ]
        if producer is not None:
            if positions:
                metadata = consumer.consumer_group_metadata()
                producer.send_offsets_to_transaction(positions, metadata, _TIMEOUT_S)
            producer.commit_transaction(_TIMEOUT_S)
        done = [each for each in positions if each.offset >= ends[each.partition]]
        for each in done:
            del ends[each.partition]
        if done:
            consumer.incremental_unassign(done)
        yield ReplayProgress(**counts, topics=dict(topics))
