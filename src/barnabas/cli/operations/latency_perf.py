"""Measuring the latency from producer to consumer, as kafka-e2e-latency does."""

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from barnabas.cli.operations.console_clients import close_producer
from barnabas.cli.operations.errors import CommandError

TIMEOUT_S = 60


@dataclass(slots=True, frozen=True)
class RecordTemplate:
    """What every record contains."""

    topic: str
    size: int
    key: bytes | None = None
    headers: tuple[tuple[str, bytes], ...] = ()


@contextmanager
def open_clients(
    producing: dict[str, Any],
    consuming: dict[str, Any],
    topic: str,
    partitions_of: Callable[[Any, str], Iterable[int]],
) -> Iterator[tuple[Any, Any]]:
    """Yields a producer, and a consumer at the end of all partitions of the topic."""
    from barnabas import Consumer, Producer, TopicPartition

    own_group = {"group.id": f"test-group-{int(time.time() * 1000)}", "enable.auto.commit": "false"}
    consumer = Consumer(consuming | own_group | {"fetch.max.wait.ms": "0"})
    producer = Producer(producing | {"linger.ms": "0", "max.block.ms": str(2**31 - 1)})
    try:
        topic_partitions = [
            TopicPartition(topic, partition) for partition in partitions_of(consumer, topic)
        ]
        for topic_partition in topic_partitions:  # before the first record is sent
            _, topic_partition.offset = consumer.get_watermark_offsets(topic_partition)
        consumer.assign(topic_partitions)
        yield producer, consumer
    finally:
        consumer.close()
        close_producer(producer)


def measure_latency(
    ends: tuple[Any, Any], sent: RecordTemplate, records: int, report: Callable[[int, int], None]
) -> list[int]:
    """Returns the latency of each record in ns. Calls `report` with its number and latency."""
    latencies_ns = []
    for number in range(records):
        took_ns = _round_trip(*ends, sent, number)
        latencies_ns.append(took_ns)
        report(number, took_ns)
    return latencies_ns


def _round_trip(producer: Any, consumer: Any, sent: RecordTemplate, number: int) -> int:
    value = str(number).encode().ljust(sent.size, b".")[: sent.size]
    began_ns = time.perf_counter_ns()
    producer.produce(sent.topic, value, sent.key, headers=list(sent.headers))
    producer.flush()
    message = consumer.poll(TIMEOUT_S)
    took_ns = time.perf_counter_ns() - began_ns
    if message is None:
        raise CommandError(f"poll() timed out before finding a result (timeout:[{TIMEOUT_S}s])")
    if message.error() is not None:
        raise CommandError(message.error().str())
    if message.value() != value:
        raise CommandError(f"The record read {message.value()!r} did not match the one sent")
    return took_ns
