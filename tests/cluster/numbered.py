"""A stream of numbered records: what was acknowledged can be compared with what is there."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

DEADLINE_S = 60
NO_LEADER_YET = {KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError._UNKNOWN_PARTITION}


@dataclass(slots=True)
class Acknowledged:
    """By partition, the number that each acknowledged offset must hold."""

    numbers: dict[int, dict[int, int]] = field(default_factory=dict)
    total: int = 0

    def add(self, partition: int, offset: int, number: int) -> None:
        by_offset = self.numbers.setdefault(partition, {})
        assert by_offset.setdefault(offset, number) == number, f"offset {offset} was given twice"
        self.total += 1


class NumberedWriter:
    """Writes 0, 1, 2, ... to every partition with an idempotent producer until it is told to end.

    It runs in a thread of its own, through any number of broker restarts.
    """

    def __init__(
        self,
        bootstrap: str,
        topic: str,
        partitions: int,
        *,
        record_bytes: int,
        pause_s: float = 0,
    ) -> None:
        self.acknowledged = Acknowledged()
        self.failure: str | None = None
        self._topic = topic
        self._partitions = partitions
        self._padding = bytes(record_bytes)
        self._pause_s = pause_s  # from one number to the next
        self._ending = threading.Event()
        self._going = threading.Event()
        self._going.set()
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "linger.ms": 1,
                "batch.size": 16_384,
                "queue.buffering.max.messages": 3_000,
                "delivery.timeout.ms": 10 * 60_000,
                "reconnect.backoff.ms": 20,
                "reconnect.backoff.max.ms": 100,
                "retry.backoff.ms": 20,
                "retry.backoff.max.ms": 100,
                "error_cb": self._on_error,
                "log_level": 0,  # that a broker is killed is what the test is about
            }
        )
        self._thread = threading.Thread(target=self._run)

    def start(self) -> None:
        self._thread.start()

    @contextmanager
    def holding(self) -> Iterator[None]:
        """Take on nothing new meanwhile; what is under way goes on being sent and retried."""
        self._going.clear()
        try:
            yield
        finally:
            self._going.set()

    def stop(self) -> None:
        """End the writing and wait until everything written is acknowledged."""
        self._ending.set()
        self._thread.join()
        assert self.failure is None, self.failure

    def _run(self) -> None:
        number = 0
        while not self._ending.is_set() and self.failure is None:
            if not self._going.is_set():
                self._producer.poll(0.01)
                continue
            for partition in range(self._partitions):
                self._write(partition, number)
            number += 1
            if self._pause_s:
                self._ending.wait(self._pause_s)
        if left := self._producer.flush(DEADLINE_S):
            self.failure = self.failure or f"{left} records were not delivered in {DEADLINE_S} s"

    def _write(self, partition: int, number: int) -> None:
        value = b"%d " % number + self._padding
        while self.failure is None:
            try:
                self._producer.produce(
                    self._topic, value, partition=partition, on_delivery=self._on_delivery
                )
                self._producer.poll(0)
                return
            except BufferError:
                self._producer.poll(0.01)

    def _on_delivery(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.failure = self.failure or f"a record was given up: {error}"
            return
        partition, offset, value = message.partition(), message.offset(), message.value()
        assert partition is not None
        if offset is None:
            return  # a retry of what was written long before: the broker no longer knows where
        self.acknowledged.add(partition, offset, number_in(value))

    def _on_error(self, error: KafkaError) -> None:
        if error.fatal():
            self.failure = self.failure or f"the producer cannot go on: {error}"


def read_numbers(bootstrap: str, topic: str, partition: int) -> list[int]:
    """The number in every record of a partition from its first offset, 0, to its end now."""
    end = end_offset(bootstrap, topic, partition)
    numbers: list[int] = []
    with assigned(bootstrap, topic, partition) as consumer:
        deadline = time.monotonic() + DEADLINE_S
        while len(numbers) < end:
            assert time.monotonic() < deadline, f"{len(numbers)} of {end} records in {DEADLINE_S} s"
            for message in consumer.consume(min(10_000, end - len(numbers)), timeout=0.1):
                assert message.error() is None, message.error()
                assert message.offset() == len(numbers), "an offset is missing or comes twice"
                numbers.append(number_in(message.value()))
    return numbers


def end_offset(bootstrap: str, topic: str, partition: int) -> int:
    """The end of a partition that starts at 0, as soon as it has a leader again."""
    place, deadline = TopicPartition(topic, partition), time.monotonic() + DEADLINE_S
    while True:
        # A new consumer each time: the library keeps to the first metadata it was given.
        with assigned(bootstrap, topic, partition) as consumer:
            try:
                first, end = consumer.get_watermark_offsets(place, timeout=DEADLINE_S)
            except KafkaException as refused:
                if refused.args[0].code() not in NO_LEADER_YET or time.monotonic() > deadline:
                    raise
            else:
                assert first == 0
                return int(end)


@contextmanager
def assigned(bootstrap: str, topic: str, partition: int) -> Iterator[Consumer]:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "not-joined",
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
            "fetch.queue.backoff.ms": 10,
        }
    )
    try:
        consumer.assign([TopicPartition(topic, partition, 0)])
        yield consumer
    finally:
        consumer.close()


def number_in(value: bytes | None) -> int:
    assert value is not None
    return int(value.partition(b" ")[0])
