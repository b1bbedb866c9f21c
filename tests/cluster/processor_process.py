"""A consume-process-produce loop with transactions, in a process that a test kills or stops.

    python -m tests.cluster.processor_process BOOTSTRAP SOURCE TARGET PROTOCOL SLOT JOURNAL

Each number of a partition of SOURCE is written to the same partition of TARGET, in one transaction
with the offset after it. The group has the name of the source, the transactional id that of the
group and slot. The group has committed offsets from the start, so that it is never reset.
"""

import os
import sys
from collections.abc import Callable
from pathlib import Path

from confluent_kafka import (
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)
from tests.cluster.member_process import group_settings
from tests.cluster.stop_point import StopPoint

READY = b"ready\n"
FENCED_STATUS = 3
CALL_S = 5
ATTEMPTS = 12


def main(bootstrap: str, source: str, target: str, protocol: str, slot: str, journal: str) -> None:
    before_commit = StopPoint()
    connection = {
        "bootstrap.servers": bootstrap,
        "client.id": slot,
        "reconnect.backoff.ms": 20,
        "reconnect.backoff.max.ms": 200,
        # Otherwise librdkafka forgets a broker that is down, and its transactions.
        "metadata.recovery.strategy": "none",
        "log_level": 0,
    }
    consumer = Consumer(
        connection
        | {
            "group.id": source,
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
            "isolation.level": "read_committed",
            "fetch.wait.max.ms": 50,
        }
        | group_settings(protocol)
    )
    producer = Producer(
        connection
        | {
            "transactional.id": f"{source}-{slot}",
            "transaction.timeout.ms": 20_000,
            "retry.backoff.max.ms": 200,
            "linger.ms": 1,
        }
    )
    try:
        call_with_retries(lambda: producer.init_transactions(CALL_S))
        Path(journal).write_bytes(READY)
        consumer.subscribe([source])
        while True:
            if messages := consume(consumer):
                process(messages, target, consumer, producer, before_commit)
    except KafkaException as exception:
        print(exception, flush=True)
        # Immediately, because librdkafka may hang with a consumer that is not closed.
        os._exit(FENCED_STATUS if exception.args[0].code() == KafkaError._FENCED else 1)


def consume(consumer: Consumer) -> list[Message]:
    messages = consumer.consume(50, timeout=0.1)
    for message in messages:
        error = message.error()
        if error and error.code() == KafkaError._AUTO_OFFSET_RESET:
            raise KafkaException(error)
    return [message for message in messages if not message.error()]


def process(
    messages: list[Message],
    target: str,
    consumer: Consumer,
    producer: Producer,
    before_commit: StopPoint,
) -> None:
    positions = {message.partition(): message.offset() + 1 for message in messages}
    source = messages[0].topic()
    topic_partitions = [
        TopicPartition(source, partition, at) for partition, at in positions.items()
    ]
    try:
        producer.begin_transaction()
        for message in messages:
            producer.produce(target, message.value(), partition=message.partition())
        call_with_retries(
            lambda: producer.send_offsets_to_transaction(
                topic_partitions, consumer.consumer_group_metadata(), CALL_S
            )
        )
        before_commit.reach()
        call_with_retries(lambda: producer.commit_transaction(CALL_S))
    except KafkaException as exception:
        if not exception.args[0].txn_requires_abort():
            raise
        call_with_retries(lambda: producer.abort_transaction(CALL_S))
        rewind(consumer)


def call_with_retries(call: Callable[[], None]) -> None:
    """Repeats a call while its error is retriable."""
    for attempt in range(ATTEMPTS):
        try:
            call()
        except KafkaException as exception:
            if not exception.args[0].retriable() or attempt == ATTEMPTS - 1:
                raise
        else:
            return


def rewind(consumer: Consumer) -> None:
    """Seeks to the committed offsets."""
    for topic_partition in consumer.committed(consumer.assignment(), timeout=ATTEMPTS * CALL_S):
        if topic_partition.error:
            raise KafkaException(topic_partition.error)
        consumer.seek(topic_partition)


if __name__ == "__main__":
    main(*sys.argv[1:])
