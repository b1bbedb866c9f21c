"""A group member in its own process, which a test kills or stops at any moment.

    python -m tests.cluster.member_process BOOTSTRAP GROUP TOPIC PROTOCOL SLOT JOURNAL

It writes each record to the journal before it commits the offset after it, so that all records
below a committed offset were processed. The group has a committed offset in every partition from
the start, so that it is never reset.
"""

import sys
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from tests.cluster.stop_point import StopPoint

SESSION_MS = 1_000
REBALANCING = {
    KafkaError.ILLEGAL_GENERATION,
    KafkaError.REBALANCE_IN_PROGRESS,
    KafkaError.UNKNOWN_MEMBER_ID,
    KafkaError.STALE_MEMBER_EPOCH,
    KafkaError.FENCED_MEMBER_EPOCH,
    KafkaError._ASSIGNMENT_LOST,
    KafkaError._NO_OFFSET,
}


def main(bootstrap: str, group: str, topic: str, protocol: str, slot: str, journal: str) -> None:
    before_commit = StopPoint()
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "client.id": slot,
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
            "fetch.wait.max.ms": 50,
            "isolation.level": "read_committed",
            "log_level": 0,  # the tests kill members and brokers
            **group_settings(protocol),
        }
    )
    uncommitted: dict[int, int] = {}
    """The position to commit, by partition."""

    def on_revoked(_: Consumer, topic_partitions: list[TopicPartition]) -> None:
        for topic_partition in topic_partitions:
            uncommitted.pop(topic_partition.partition, None)

    consumer.subscribe([topic], on_revoke=on_revoked, on_lost=on_revoked)
    with Path(journal).open("ab", buffering=0) as written:
        while True:
            messages = [
                message for message in consumer.consume(100, timeout=0.1) if not message.error()
            ]
            written.write(
                b"".join(
                    b"%d %d %s\n" % (message.partition(), message.offset(), message.value())
                    for message in messages
                )
            )
            uncommitted |= {message.partition(): message.offset() + 1 for message in messages}
            if uncommitted:
                before_commit.reach()
                if commit(consumer, topic, uncommitted):
                    uncommitted.clear()


def group_settings(protocol: str) -> dict[str, Any]:
    """Returns the settings of the classic protocol with this assignor, or of KIP-848."""
    if protocol == "consumer":
        return {"group.protocol": "consumer"}
    return {
        "partition.assignment.strategy": protocol,
        "session.timeout.ms": SESSION_MS,
        "heartbeat.interval.ms": 100,
    }


def commit(consumer: Consumer, topic: str, positions: dict[int, int]) -> bool:
    """Commits positions; returns False if that failed because of a rebalance."""
    topic_partitions = [
        TopicPartition(topic, partition, offset) for partition, offset in positions.items()
    ]
    try:
        consumer.commit(offsets=topic_partitions, asynchronous=False)
    except KafkaException as exception:
        if exception.args[0].code() not in REBALANCING:
            raise
        return False
    return True


if __name__ == "__main__":
    main(*sys.argv[1:])
