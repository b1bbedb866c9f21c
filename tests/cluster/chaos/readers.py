"""Consumers that store every record that they read."""

import threading
import time
from collections.abc import Mapping

from confluent_kafka import Consumer, KafkaError, Message, TopicPartition
from tests.cluster.chaos.observations import (
    PARTITIONS,
    ObservedRecord,
    PartitionKey,
    parse_record,
)
from tests.cluster.chaos.writers import CONNECTION

TIMEOUT_S = 60


class Reader(threading.Thread):
    """Reads the topics from the beginning until `finish`."""

    def __init__(self, connection: Mapping[str, str], topics: list[str], isolation: str) -> None:
        super().__init__(name=f"{isolation} reader", daemon=True)
        self.isolation = isolation
        self.observed: dict[PartitionKey, list[ObservedRecord]] = {
            (topic, index): [] for topic in topics for index in range(PARTITIONS)
        }
        self.failure: str | None = None
        self._ends: dict[PartitionKey, int] | None = None
        self.connection = connection

    def finish(self) -> None:
        """Reads up to the current ends of the logs and stops."""
        self._ends = ends(self.connection, list(self.observed), self.isolation)
        self.join()

    def run(self) -> None:
        consumer = new_consumer(self.connection, self.isolation)
        consumer.assign([TopicPartition(topic, index, 0) for topic, index in self.observed])
        try:
            self._read(consumer)
        except Exception as failure:
            self.failure = repr(failure)
        finally:
            consumer.close()

    def _read(self, consumer: Consumer) -> None:
        deadline_s = None
        while not self._is_at_end(consumer):
            # Not consume(), which can block for minutes after leaders have changed.
            message = consumer.poll(0.1)
            if message is not None and (error := message.error()):
                # An offset that was read must never be out of range.
                assert error.code() not in LOST, f"{self.name}: {error}"
            elif message is not None:
                self._add(message)
                continue
            if self._ends is not None:
                deadline_s = deadline_s or time.monotonic() + TIMEOUT_S
                assert time.monotonic() < deadline_s, (
                    f"not at the end {self._ends} in {TIMEOUT_S} s, but at {positions(consumer)}"
                )

    def _add(self, message: Message) -> None:
        topic, index = message.topic(), message.partition()
        offset, value = message.offset(), message.value()
        assert topic is not None
        assert index is not None
        assert offset is not None
        assert value is not None
        self.observed[topic, index].append(parse_record(offset, value))

    def _is_at_end(self, consumer: Consumer) -> bool:
        if self._ends is None:
            return False
        at = positions(consumer)
        return all(at[topic_partition] >= end for topic_partition, end in self._ends.items())


LOST = {KafkaError._AUTO_OFFSET_RESET, KafkaError._LOG_TRUNCATION, KafkaError.OFFSET_OUT_OF_RANGE}


def positions(consumer: Consumer) -> dict[PartitionKey, int]:
    at = consumer.position(consumer.assignment())
    return {(position.topic, position.partition): position.offset for position in at}


def read_all(
    connection: Mapping[str, str], topics: list[str], isolation: str
) -> dict[PartitionKey, list[ObservedRecord]]:
    """Returns all records of the topics."""
    reader = Reader(connection, topics, isolation)
    reader.start()
    reader.finish()
    assert reader.failure is None, reader.failure
    return reader.observed


def ends(
    connection: Mapping[str, str], topic_partitions: list[PartitionKey], isolation: str
) -> dict[PartitionKey, int]:
    consumer = new_consumer(connection, isolation)
    try:
        return {
            topic_partition: consumer.get_watermark_offsets(
                TopicPartition(*topic_partition), timeout=TIMEOUT_S
            )[1]
            for topic_partition in topic_partitions
        }
    finally:
        consumer.close()


def new_consumer(connection: Mapping[str, str], isolation: str) -> Consumer:
    return Consumer(
        CONNECTION
        | {
            **connection,
            "group.id": "not-joined",
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
            "isolation.level": isolation,
            "fetch.wait.max.ms": 100,
            "fetch.error.backoff.ms": 50,
            "fetch.queue.backoff.ms": 10,
        }
    )
