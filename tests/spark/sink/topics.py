"""Topics to write to, and their committed records."""

import uuid
from dataclasses import dataclass
from typing import Any

from barnabas import Consumer, TopicPartition
from barnabas.admin import AdminClient, NewTopic


@dataclass(slots=True, frozen=True)
class Record:
    key: bytes | None
    value: bytes | None
    partition: int
    timestamp_ms: int
    headers: list[tuple[str, bytes | None]]


@dataclass(slots=True, frozen=True)
class Topic:
    bootstrap_servers: str
    name: str
    partitions: int

    @classmethod
    def create(cls, bootstrap_servers: str, partitions: int = 2) -> "Topic":
        topic = cls(bootstrap_servers, f"sink-{uuid.uuid4().hex[:8]}", partitions)
        with AdminClient({"bootstrap.servers": bootstrap_servers}) as admin:
            admin.create_topics([NewTopic(topic.name, partitions, 1)])[topic.name].result(20)
        return topic

    @property
    def options(self) -> dict[str, str]:
        return {"kafka.bootstrap.servers": self.bootstrap_servers, "topic": self.name}

    def records(self) -> list[Record]:
        """Returns all committed records; waits for open transactions, up to a timeout."""
        conf: dict[str, Any] = {
            "bootstrap.servers": self.bootstrap_servers,
            "group.id": "reader",
            "isolation.level": "read_committed",
        }
        with Consumer(conf) as consumer:
            ends = self._ends()
            consumer.assign([TopicPartition(self.name, p, 0) for p in range(self.partitions)])
            records = []
            while any(max(0, p.offset) < ends[p.partition] for p in _positions(consumer, self)):
                message = consumer.poll(0.2)
                if message is None:
                    continue
                assert message.error() is None, message.error()
                records.append(
                    Record(
                        message.key(),
                        message.value(),
                        message.partition(),
                        message.timestamp()[1],
                        message.headers() or [],
                    )
                )
            return records

    def values(self) -> list[str]:
        return sorted(record.value.decode() for record in self.records() if record.value)

    def _ends(self) -> dict[int, int]:
        conf = {"bootstrap.servers": self.bootstrap_servers, "group.id": "ends"}
        with Consumer(conf) as consumer:
            return {
                p: consumer.get_watermark_offsets(TopicPartition(self.name, p), 20)[1]
                for p in range(self.partitions)
            }


def _positions(consumer: Consumer, topic: Topic) -> list[TopicPartition]:
    return consumer.position([TopicPartition(topic.name, p) for p in range(topic.partitions)])
