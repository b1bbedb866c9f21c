"""A member of a group in a process of its own, which a test kills or stops at any moment.

    python -m tests.cluster.member_process BOOTSTRAP GROUP TOPIC PROTOCOL SLOT JOURNAL

It writes each record down before it commits the position after it, so that what a position has
passed was processed, whenever the process ends. The group has a committed position in every
partition from the start, so that it is never reset.
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
            "log_level": 0,  # that members and brokers die is what the tests are about
            **group_settings(protocol),
        }
    )
    due: dict[int, int] = {}
    """By partition, the position that is not committed yet."""

    def give_up(_: Consumer, places: list[TopicPartition]) -> None:
        for place in places:
            due.pop(place.partition, None)

    consumer.subscribe([topic], on_revoke=give_up, on_lost=give_up)
    with Path(journal).open("ab", buffering=0) as written:
        while True:
            messages = [each for each in consumer.consume(100, timeout=0.1) if not each.error()]
            written.write(
                b"".join(
                    b"%d %d %s\n" % (each.partition(), each.offset(), each.value())
                    for each in messages
                )
            )
            due |= {each.partition(): each.offset() + 1 for each in messages}
            if due:
                before_commit.reach()
                if commit(consumer, topic, due):
                    due.clear()


def group_settings(protocol: str) -> dict[str, Any]:
    """Of the classic protocol with this assignor, or of KIP-848."""
    if protocol == "consumer":
        return {"group.protocol": "consumer"}
    return {
        "partition.assignment.strategy": protocol,
        "session.timeout.ms": SESSION_MS,
        "heartbeat.interval.ms": 100,
    }


def commit(consumer: Consumer, topic: str, positions: dict[int, int]) -> bool:
    """Whether they are committed; if not they are later, or somebody else begins before them."""
    places = [TopicPartition(topic, partition, offset) for partition, offset in positions.items()]
    try:
        consumer.commit(offsets=places, asynchronous=False)
    except KafkaException as refused:
        if refused.args[0].code() not in REBALANCING:
            raise
        return False
    return True


if __name__ == "__main__":
    main(*sys.argv[1:])
