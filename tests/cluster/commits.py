"""The positions of a group: its first, and every one it ever committed."""

import struct
import time
from contextlib import suppress

from confluent_kafka import Consumer, KafkaException, TopicPartition
from tests.conformance.brokers import wait_until

from barnabas.wire.messages.group_records import OffsetCommitKey

TOPIC = "__consumer_offsets"
COMMIT = struct.pack(">h", OffsetCommitKey.API_KEY)
DEADLINE_S = 30


def commit_beginnings(bootstrap: str, group: str, topic: str, partitions: int) -> None:
    """Give a group its first positions.

    Where it has none, librdkafka may look for the beginning twice, and go back to it after it has
    moved on.
    """
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group})
    places = [TopicPartition(topic, partition, 0) for partition in range(partitions)]

    def is_committed() -> bool:
        """Kafka may not know the new topic yet, nor who coordinates the group."""
        with suppress(KafkaException):
            consumer.commit(offsets=places, asynchronous=False)
        with suppress(KafkaException):
            return all(each.offset == 0 for each in consumer.committed(places, timeout=1))
        return False

    wait_until(is_committed, f"group {group} has its first positions")
    consumer.close()


def commit_history(bootstrap: str, group: str, topic: str) -> dict[int, list[int]]:
    """By partition of the topic, in the order of the log; all of them until it is compacted."""
    history: dict[int, list[int]] = {}
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "not-joined", "enable.auto.commit": False}
    )
    try:
        ends = ends_of(consumer)
        consumer.assign([TopicPartition(TOPIC, partition, 0) for partition in ends])
        deadline = time.monotonic() + DEADLINE_S
        while any(position < ends[partition] for partition, position in positions(consumer)):
            assert time.monotonic() < deadline, f"{TOPIC} was not read in {DEADLINE_S} s"
            for message in consumer.consume(1_000, timeout=0.1):
                assert not message.error(), message.error()
                key, value = message.key(), message.value()
                if value is None or not key.startswith(COMMIT):
                    continue
                commit = OffsetCommitKey.read_exactly(key, 0, len(COMMIT))
                if (commit.group, commit.topic) == (group, topic):
                    (offset,) = struct.unpack_from(">q", value, 2)  # after the value's version
                    history.setdefault(commit.partition, []).append(offset)
    finally:
        consumer.close()
    return history


def ends_of(consumer: Consumer) -> dict[int, int]:
    partitions = consumer.list_topics(TOPIC, timeout=DEADLINE_S).topics[TOPIC].partitions
    places = {each: TopicPartition(TOPIC, each) for each in partitions}
    ends = {
        each: consumer.get_watermark_offsets(place, timeout=DEADLINE_S)[1]
        for each, place in places.items()
    }
    return {each: end for each, end in ends.items() if end}


def positions(consumer: Consumer) -> list[tuple[int, int]]:
    return [(each.partition, each.offset) for each in consumer.position(consumer.assignment())]
