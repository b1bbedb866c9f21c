"""Random writes to the keys of a compacted topic, and checks of what is left of them."""

import random
from pathlib import Path

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    Message,
    Producer,
    TopicPartition,
)
from tests.wait import wait_until

FAST_CLEANING = {
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": "0.0",
    "delete.retention.ms": "1",
    "internal.segment.bytes": "20000",
}
"""Topic configs with which a few hundred records are cleaned, and tombstones soon go."""

KEYS = 50
DEADLINE_S = 60

Pair = tuple[bytes, bytes | None]


class KeyedWriter:
    """Writes values and tombstones of some keys to partition 0, some in aborted transactions."""

    def __init__(self, topic: str, seed: int = 1) -> None:
        self.topic = topic
        self.committed: dict[int, Pair] = {}
        """Key and value by offset, without those of aborted transactions."""
        self._random = random.Random(seed)
        self._number = 0

    def write(self, bootstrap: str, count: int) -> None:
        """Writes about so many records, and waits until they are acknowledged."""
        settings = {"bootstrap.servers": bootstrap, "linger.ms": 1, "log_level": 0}
        plain = Producer({**settings, "enable.idempotence": True})
        transactional = Producer({**settings, "transactional.id": self.topic})
        transactional.init_transactions(DEADLINE_S)
        for _ in range(count // 20):
            self.committed |= self._send(plain, 10)
            transactional.begin_transaction()
            sent = self._send(transactional, 10)
            if self._random.random() < 0.7:
                transactional.commit_transaction(DEADLINE_S)
                self.committed |= sent
            else:
                transactional.abort_transaction(DEADLINE_S)

    def check(self, bootstrap: str) -> int:
        """The last value of each key is there; each record has its old offset.

        Returns how many records are left.
        """
        left = read(bootstrap, self.topic)
        assert left.items() <= self.committed.items()
        values, committed = last_values(left), last_values(self.committed)
        assert values.keys() >= committed.keys(), f"lost: {committed.keys() - values.keys()}"
        assert values.keys() <= committed.keys(), f"deleted: {values.keys() - committed.keys()}"
        assert values == committed
        return len(left)

    def _send(self, producer: Producer, count: int) -> dict[int, Pair]:
        sent: dict[int, Pair] = {}
        failures: list[KafkaError] = []

        def on_delivery(error: KafkaError | None, message: Message) -> None:
            offset, key = message.offset(), message.key()
            if error is not None or offset is None or key is None:
                failures.extend(filter(None, [error]))
            else:
                sent[offset] = key, message.value()

        for _ in range(count):
            key, value = b"k%d" % self._random.randrange(KEYS), b"%d " % self._number + bytes(100)
            is_tombstone = self._random.random() < 0.1
            producer.produce(
                self.topic, None if is_tombstone else value, key, 0, on_delivery=on_delivery
            )
            self._number += 1
        assert producer.flush(DEADLINE_S) == 0
        assert not failures, failures
        assert len(sent) == count
        return sent


def read(bootstrap: str, topic: str, partition: int = 0) -> dict[int, Pair]:
    """Returns key and value of all committed records of a partition, by offset."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "not-joined",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
            "auto.offset.reset": "error",
        }
    )
    consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING)])
    records: dict[int, Pair] = {}

    def is_at_end() -> bool:
        for message in consumer.consume(10_000, timeout=0.2):
            error, offset, key = message.error(), message.offset(), message.key()
            if error and error.code() == KafkaError._PARTITION_EOF:
                return True
            if offset is not None and key is not None:
                records[offset] = key, message.value()
        return False

    wait_until(is_at_end, f"{topic} is read", DEADLINE_S)
    consumer.close()
    return records


def last_values(records: dict[int, Pair]) -> dict[bytes, bytes]:
    """Returns the value of each key that is not deleted."""
    values = {key: value for _, (key, value) in sorted(records.items())}
    return {key: value for key, value in values.items() if value is not None}


def is_cleaned(log_dir: Path, topic: str) -> bool:
    """Whether all closed segments of partition 0 are cleaned."""
    active = max((log_dir / f"{topic}-0").glob("*.log"))
    return cleaner_offset(log_dir, topic) == int(active.stem)


def cleaner_offset(log_dir: Path, topic: str) -> int:
    """Returns the first dirty offset of partition 0, 0 if it was never cleaned."""
    checkpoint = log_dir / "cleaner-offset-checkpoint"
    lines = checkpoint.read_text().splitlines()[2:] if checkpoint.exists() else []
    offsets = [line.split()[2] for line in lines if line.split()[:2] == [topic, "0"]]
    return int(offsets[0]) if offsets else 0
