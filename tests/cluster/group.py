"""A group as an admin client describes it: its members and all its committed offsets."""

import struct
import time
from contextlib import suppress

from confluent_kafka import Consumer, ConsumerGroupState, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, ConsumerGroupDescription
from tests.wait import wait_until

from barnabas.wire.messages.group_records import OffsetCommitKey

DEADLINE_S = 30
HISTORY = "__consumer_offsets"
COMMIT = struct.pack(">h", OffsetCommitKey.API_KEY)


class Group:
    """A group whose members have numbers as client ids and read one topic."""

    def __init__(self, bootstrap: str, name: str, topic: str, partitions: int) -> None:
        connection = {
            "bootstrap.servers": bootstrap,
            "reconnect.backoff.ms": 20,
            "reconnect.backoff.max.ms": 200,
            "log_level": 0,  # some tests kill brokers
        }
        self._name = name
        self._topic = topic
        self._topic_partitions = [TopicPartition(topic, index) for index in range(partitions)]
        self._admin = AdminClient(connection)
        # It reads the committed offsets and never joins.
        self._consumer = Consumer(connection | {"group.id": name, "enable.auto.commit": False})

    def close(self) -> None:
        self._consumer.close()

    def commit_first_positions(self) -> None:
        """Commits the first positions of the group, before it has members.

        Without them librdkafka may reset to the beginning twice, also after consuming records.
        """
        first = [
            TopicPartition(topic_partition.topic, topic_partition.partition, 0)
            for topic_partition in self._topic_partitions
        ]

        def are_committed() -> bool:
            """Kafka may not have the new topic or the coordinator yet."""
            with suppress(KafkaException):
                self._consumer.commit(offsets=first, asynchronous=False)
            return len(self.committed()) == len(first)

        wait_until(are_committed, f"group {self._name} has its first positions")

    def committed(self) -> dict[int, int]:
        """Returns committed offsets by partition; none while there is no coordinator."""
        try:
            committed_offsets = self._consumer.committed(self._topic_partitions, timeout=1)
        except KafkaException:
            return {}
        return {
            committed.partition: committed.offset
            for committed in committed_offsets
            if committed.offset >= 0
        }

    def members(self) -> set[int]:
        return {int(member.client_id) for member in self._described().members}

    def is_stable(self, members: int) -> bool:
        """Whether the group is stable with this number of members and one owner per partition."""
        described = self._described()
        owned = [
            topic_partition.partition
            for member in described.members
            for topic_partition in member.assignment.topic_partitions
        ]
        return (
            described.state == ConsumerGroupState.STABLE
            and len(described.members) == members
            and sorted(owned)
            == [topic_partition.partition for topic_partition in self._topic_partitions]
        )

    def history(self) -> dict[int, list[int]]:
        """Returns all commits by partition in log order, if the log is not compacted."""
        history: dict[int, list[int]] = {}
        ends = self._ends_of_history()
        self._consumer.assign([TopicPartition(HISTORY, partition, 0) for partition in ends])
        deadline = time.monotonic() + DEADLINE_S
        while any(at < ends[partition] for partition, at in self._positions()):
            assert time.monotonic() < deadline, f"{HISTORY} was not read in {DEADLINE_S} s"
            for message in self._consumer.consume(1_000, timeout=0.1):
                assert not message.error(), message.error()
                key, value = message.key(), message.value()
                if value is None or not key.startswith(COMMIT):
                    continue
                commit = OffsetCommitKey.read_exactly(key, 0, len(COMMIT))
                if (commit.group, commit.topic) == (self._name, self._topic):
                    (offset,) = struct.unpack_from(">q", value, 2)  # after the value's version
                    history.setdefault(commit.partition, []).append(offset)
        return history

    def _ends_of_history(self) -> dict[int, int]:
        metadata = self._consumer.list_topics(HISTORY, timeout=DEADLINE_S).topics[HISTORY]
        ends = {
            partition: self._consumer.get_watermark_offsets(
                TopicPartition(HISTORY, partition), timeout=DEADLINE_S
            )[1]
            for partition in metadata.partitions
        }
        return {partition: end for partition, end in ends.items() if end}

    def _positions(self) -> list[tuple[int, int]]:
        topic_partitions = self._consumer.position(self._consumer.assignment())
        return [
            (topic_partition.partition, topic_partition.offset)
            for topic_partition in topic_partitions
        ]

    def _described(self) -> ConsumerGroupDescription:
        (described,) = self._admin.describe_consumer_groups([self._name]).values()
        return described.result(DEADLINE_S)
