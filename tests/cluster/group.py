"""A group as one sees it from outside: its members, and every position it has committed."""

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
    """The members' client ids are numbers; all of them read one topic."""

    def __init__(self, bootstrap: str, name: str, topic: str, partitions: int) -> None:
        connection = {
            "bootstrap.servers": bootstrap,
            "reconnect.backoff.ms": 20,
            "reconnect.backoff.max.ms": 200,
            "log_level": 0,  # that brokers are killed is what some tests are about
        }
        self._name = name
        self._topic = topic
        self._places = [TopicPartition(topic, index) for index in range(partitions)]
        self._admin = AdminClient(connection)
        # It looks at what the group has committed, and never joins.
        self._consumer = Consumer(connection | {"group.id": name, "enable.auto.commit": False})

    def close(self) -> None:
        self._consumer.close()

    def commit_beginnings(self) -> None:
        """Give the group its first positions, before it has members.

        Where it has none, librdkafka may look for the beginning twice, and go back to it after it
        has moved on.
        """
        first = [TopicPartition(place.topic, place.partition, 0) for place in self._places]

        def are_committed() -> bool:
            """Kafka may not know the new topic yet, nor who coordinates the group."""
            with suppress(KafkaException):
                self._consumer.commit(offsets=first, asynchronous=False)
            return len(self.committed()) == len(first)

        wait_until(are_committed, f"group {self._name} has its first positions")

    def committed(self) -> dict[int, int]:
        """By partition; nothing while there is no coordinator to ask."""
        try:
            found = self._consumer.committed(self._places, timeout=1)
        except KafkaException:
            return {}
        return {each.partition: each.offset for each in found if each.offset >= 0}

    def members(self) -> set[int]:
        return {int(each.client_id) for each in self._described().members}

    def is_stable(self, members: int) -> bool:
        """Whether so many members share the partitions, each of which has one owner."""
        described = self._described()
        owned = [
            place.partition
            for each in described.members
            for place in each.assignment.topic_partitions
        ]
        return (
            described.state == ConsumerGroupState.STABLE
            and len(described.members) == members
            and sorted(owned) == [place.partition for place in self._places]
        )

    def history(self) -> dict[int, list[int]]:
        """By partition, all positions in the order of the log, as long as it is not compacted."""
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
        known = self._consumer.list_topics(HISTORY, timeout=DEADLINE_S).topics[HISTORY]
        ends = {
            each: self._consumer.get_watermark_offsets(
                TopicPartition(HISTORY, each), timeout=DEADLINE_S
            )[1]
            for each in known.partitions
        }
        return {each: end for each, end in ends.items() if end}

    def _positions(self) -> list[tuple[int, int]]:
        places = self._consumer.position(self._consumer.assignment())
        return [(each.partition, each.offset) for each in places]

    def _described(self) -> ConsumerGroupDescription:
        (described,) = self._admin.describe_consumer_groups([self._name]).values()
        return described.result(DEADLINE_S)
