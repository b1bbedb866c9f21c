"""Numbered records written and read through trouble, and what has to hold for them."""

import random
import threading
import time
from collections import Counter
from typing import Any

from tests.client.faults.storm import HURRIED

from barnabas import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

DEADLINE_S = 30.0
"""For anything: what takes longer hangs."""

TopicPartitionKey = tuple[str, int]


def write(
    servers: str, topic: str, partitions: int, seed: int, **settings: Any
) -> dict[int, list[bytes]]:
    """Write numbers to every partition, in a way that depends on the seed; what there must be.

    Every record is reported once, in the order of its partition, at the offset that it has.
    """
    dice = random.Random(f"{seed} write")
    producer = Producer(
        {
            "bootstrap.servers": servers,
            "linger.ms": dice.choice([0, 1, 5]),
            "batch.size": dice.choice([200, 2_000, 1_000_000]),
            "compression.type": dice.choice(["none", "gzip", "snappy", "lz4", "zstd"]),
            "max.in.flight": dice.choice([1, 2, 5]),
            **HURRIED,
            **settings,
        }
    )
    count = dice.choice([20, 200, 2_000])
    padding = b"x" * dice.choice([0, 100, 3_000])
    written: dict[int, list[bytes]] = {partition: [] for partition in range(partitions)}
    reported: dict[int, list[tuple[int, bytes]]] = {
        partition: [] for partition in range(partitions)
    }

    def report(error: KafkaError | None, message: Message) -> None:
        assert error is None, f"seed {seed}: {error}"
        value = message.value()
        reported[message.partition()].append((message.offset(), value))

    deadline = time.monotonic() + DEADLINE_S
    for number in range(count):
        partition = dice.randrange(partitions)
        value = b"%d %s" % (number, padding)
        while True:
            try:
                producer.produce(topic, value, partition=partition, on_delivery=report)
                break
            except BufferError:
                assert time.monotonic() < deadline
                producer.poll(0.1)
        written[partition].append(value)
        if dice.random() < 0.02:
            producer.poll(dice.choice([0, 0.01]))
    left = producer.flush(deadline - time.monotonic())
    assert left == 0, f"seed {seed}: {left} records have no report after {DEADLINE_S} s"
    assert producer.close(5)
    for partition, values in written.items():
        reports = reported[partition]
        assert reports == list(enumerate(values)), f"seed {seed}: reports of partition {partition}"
    return written


def read_all(servers: str, topic: str, partitions: int, **settings: Any) -> dict[int, list[bytes]]:
    """What is in a topic by now, read without a group."""
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "any-group",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            **HURRIED,
            **settings,
        }
    )
    found: dict[int, list[bytes]] = {partition: [] for partition in range(partitions)}
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(partitions)])
    ended: set[int] = set()
    deadline = time.monotonic() + DEADLINE_S
    while len(ended) < partitions:
        assert time.monotonic() < deadline, f"{topic}: only partitions {ended} came to their end"
        for message in consumer.consume(1000, 0.2):
            if message.error() is None:
                found[message.partition()].append(message.value())
            elif message.error().code() == KafkaError._PARTITION_EOF:
                ended.add(message.partition())
    consumer.close()
    return found


class Member(threading.Thread):
    """Reads as a member of a group until it is stopped, and keeps what it saw in order.

    Between being assigned and being revoked it must see each offset of a partition once, without
    a gap; that is looked at here.
    """

    def __init__(self, servers: str, group: str, topic: str, **settings: Any) -> None:
        super().__init__(name=f"member of {group}", daemon=True)
        self.seen: Counter[tuple[int, int]] = Counter()
        self.values: dict[tuple[int, int], bytes] = {}
        self.starts: list[tuple[int, int]] = []
        self.failure: BaseException | None = None
        self.errors: list[KafkaError] = []
        self.ending = threading.Event()
        self._next: dict[int, int] = {}
        self._topic = topic
        self._settings = {
            "bootstrap.servers": servers,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "auto.commit.interval.ms": 50,
            **HURRIED,
            **settings,
        }

    def run(self) -> None:
        try:
            consumer = Consumer(self._settings, error_cb=self.errors.append)
            consumer.subscribe([self._topic], on_revoke=self._revoked, on_lost=self._revoked)
            while not self.ending.is_set():
                message = consumer.poll(0.05)
                if message is not None:
                    self._take(message)
            consumer.close()
        except BaseException as failure:
            self.failure = failure

    def _take(self, message: Message) -> None:
        if message.error() is not None:
            raise KafkaException(message.error())
        partition, offset = message.partition(), message.offset()
        assert partition is not None
        assert offset is not None
        awaited = self._next.get(partition)
        if awaited is None:
            self.starts.append((partition, offset))
        else:
            assert offset == awaited, f"partition {partition}: {offset} came instead of {awaited}"
        self._next[partition] = offset + 1
        self.seen[partition, offset] += 1
        self.values[partition, offset] = message.value() or b""

    def _revoked(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        for each in partitions:
            self._next.pop(each.partition, None)
