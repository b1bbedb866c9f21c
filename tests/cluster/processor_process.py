"""Read, process, write in transactions: a process which a test kills or stops at any moment.

    python -m tests.cluster.processor_process BOOTSTRAP SOURCE TARGET PROTOCOL SLOT JOURNAL

Each number of a partition of SOURCE is written to the same partition of TARGET, together with the
position after it. The group is named for the source, the transactional id for the group and slot.
The group has a committed position in every partition from the start, so that it is never reset.
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
        # Else librdkafka forgets a broker that is down, and its transactions with it.
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
        until_done(lambda: producer.init_transactions(CALL_S))
        Path(journal).write_bytes(READY)
        consumer.subscribe([source])
        while True:
            if messages := taken(consumer):
                process(messages, target, consumer, producer, before_commit)
    except KafkaException as failed:
        print(failed, flush=True)
        # At once: librdkafka may not come to an end with a consumer that was not closed.
        os._exit(FENCED_STATUS if failed.args[0].code() == KafkaError._FENCED else 1)


def taken(consumer: Consumer) -> list[Message]:
    messages = consumer.consume(50, timeout=0.1)
    for each in messages:
        error = each.error()
        if error and error.code() == KafkaError._AUTO_OFFSET_RESET:
            raise KafkaException(error)
    return [each for each in messages if not each.error()]


def process(
    messages: list[Message],
    target: str,
    consumer: Consumer,
    producer: Producer,
    before_commit: StopPoint,
) -> None:
    positions = {each.partition(): each.offset() + 1 for each in messages}
    source = messages[0].topic()
    places = [TopicPartition(source, partition, at) for partition, at in positions.items()]
    try:
        producer.begin_transaction()
        for each in messages:
            producer.produce(target, each.value(), partition=each.partition())
        until_done(
            lambda: producer.send_offsets_to_transaction(
                places, consumer.consumer_group_metadata(), CALL_S
            )
        )
        before_commit.reach()
        until_done(lambda: producer.commit_transaction(CALL_S))
    except KafkaException as failed:
        if not failed.args[0].txn_requires_abort():
            raise
        until_done(lambda: producer.abort_transaction(CALL_S))
        rewind(consumer)


def until_done(call: Callable[[], None]) -> None:
    """Repeat a call of a transaction that may be repeated."""
    for attempt in range(ATTEMPTS):
        try:
            call()
        except KafkaException as failed:
            if not failed.args[0].retriable() or attempt == ATTEMPTS - 1:
                raise
        else:
            return


def rewind(consumer: Consumer) -> None:
    """Take again what was not committed."""
    for place in consumer.committed(consumer.assignment(), timeout=ATTEMPTS * CALL_S):
        if place.error:
            raise KafkaException(place.error)
        consumer.seek(place)


if __name__ == "__main__":
    main(*sys.argv[1:])
