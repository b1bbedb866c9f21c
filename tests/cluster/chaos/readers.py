"""Consumers that remember everything they were shown, and the whole of a log at the end."""

import threading
import time

from confluent_kafka import Consumer, KafkaError, Message, TopicPartition
from tests.cluster.chaos.notes import PARTITIONS, Place, Seen, parsed
from tests.cluster.chaos.writers import CONNECTION

END_S = 60


class Reader(threading.Thread):
    """Reads the topics from their beginning and follows them until it is told to end."""

    def __init__(self, bootstrap: str, topics: list[str], isolation: str) -> None:
        super().__init__(name=f"{isolation} reader", daemon=True)
        self.isolation = isolation
        self.seen: dict[Place, list[Seen]] = {
            (topic, index): [] for topic in topics for index in range(PARTITIONS)
        }
        self.failure: str | None = None
        self._ends: dict[Place, int] | None = None
        self.bootstrap = bootstrap

    def finish(self) -> None:
        """Read on to where the logs end now."""
        self._ends = ends(self.bootstrap, list(self.seen), self.isolation)
        self.join()

    def run(self) -> None:
        consumer = new_consumer(self.bootstrap, self.isolation)
        consumer.assign([TopicPartition(topic, index, 0) for topic, index in self.seen])
        try:
            self._read(consumer)
        except Exception as failure:
            self.failure = repr(failure)
        finally:
            consumer.close()

    def _read(self, consumer: Consumer) -> None:
        deadline_s = None
        while not self._is_at_end(consumer):
            # One by one: consume() may stay away for minutes after leaders have changed.
            message = consumer.poll(0.1)
            if message is not None and (error := message.error()):
                # Whoever was shown a record must never be told that it is beyond the end.
                assert error.code() not in LOST, f"{self.name}: {error}"
            elif message is not None:
                self._note(message)
                continue
            if self._ends is not None:
                deadline_s = deadline_s or time.monotonic() + END_S
                assert time.monotonic() < deadline_s, (
                    f"not at the end {self._ends} in {END_S} s, but at {positions(consumer)}"
                )

    def _note(self, message: Message) -> None:
        topic, index = message.topic(), message.partition()
        offset, value = message.offset(), message.value()
        assert topic is not None
        assert index is not None
        assert offset is not None
        assert value is not None
        self.seen[topic, index].append(parsed(offset, value))

    def _is_at_end(self, consumer: Consumer) -> bool:
        if self._ends is None:
            return False
        at = positions(consumer)
        return all(at[place] >= end for place, end in self._ends.items())


LOST = {KafkaError._AUTO_OFFSET_RESET, KafkaError._LOG_TRUNCATION, KafkaError.OFFSET_OUT_OF_RANGE}


def positions(consumer: Consumer) -> dict[Place, int]:
    at = consumer.position(consumer.assignment())
    return {(each.topic, each.partition): each.offset for each in at}


def read_all(bootstrap: str, topics: list[str], isolation: str) -> dict[Place, list[Seen]]:
    """What is there now."""
    reader = Reader(bootstrap, topics, isolation)
    reader.start()
    reader.finish()
    assert reader.failure is None, reader.failure
    return reader.seen


def ends(bootstrap: str, places: list[Place], isolation: str) -> dict[Place, int]:
    consumer = new_consumer(bootstrap, isolation)
    try:
        return {
            place: consumer.get_watermark_offsets(TopicPartition(*place), timeout=END_S)[1]
            for place in places
        }
    finally:
        consumer.close()


def new_consumer(bootstrap: str, isolation: str) -> Consumer:
    return Consumer(
        CONNECTION
        | {
            "bootstrap.servers": bootstrap,
            "group.id": "not-joined",
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
            "isolation.level": isolation,
            "fetch.wait.max.ms": 100,
            "fetch.error.backoff.ms": 50,
            "fetch.queue.backoff.ms": 10,
        }
    )
