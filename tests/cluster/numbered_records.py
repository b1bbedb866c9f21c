"""A stream of numbered records, to compare acknowledged records with those in the log."""

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

DEADLINE_S = 60
NO_LEADER_YET = {KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError._UNKNOWN_PARTITION}


@dataclass(slots=True)
class Acknowledged:
    """The number of the record at each acknowledged offset, by partition."""

    numbers: dict[int, dict[int, int]] = field(default_factory=dict)
    total: int = 0

    def add(self, partition: int, offset: int, number: int) -> None:
        by_offset = self.numbers.setdefault(partition, {})
        assert by_offset.setdefault(offset, number) == number, (
            f"offset {offset} was acknowledged twice"
        )
        self.total += 1


class NumberedWriter:
    """Writes 0, 1, 2, ... to every partition with an idempotent producer until `stop`.

    It runs in its own thread, through any number of broker restarts. With `keys`, each number has
    the key of its remainder.
    """

    def __init__(
        self,
        bootstrap: str,
        topic: str,
        partitions: int,
        *,
        record_bytes: int,
        pause_s: float = 0,
        keys: int | None = None,
        settings: Mapping[str, str | int] | None = None,
    ) -> None:
        """`settings` of the producer replace those of this class."""
        self.acknowledged = Acknowledged()
        self.failure: str | None = None
        self._topic = topic
        self._partitions = partitions
        self._padding = bytes(record_bytes)
        self._pause_s = pause_s  # from one number to the next
        self._keys = keys
        self._is_stopping = threading.Event()
        self._is_running = threading.Event()
        self._is_running.set()
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
                "log_level": 0,  # the tests kill brokers
                **(settings or {}),
            }
        )
        self._thread = threading.Thread(target=self._run)

    def start(self) -> None:
        self._thread.start()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Produces nothing new in the block; records in flight are still sent and retried."""
        self._is_running.clear()
        try:
            yield
        finally:
            self._is_running.set()

    def stop(self) -> None:
        """Stops producing and waits until all records are acknowledged."""
        self._is_stopping.set()
        self._thread.join()
        assert self.failure is None, self.failure

    def _run(self) -> None:
        number = 0
        while not self._is_stopping.is_set() and self.failure is None:
            if not self._is_running.is_set():
                self._producer.poll(0.01)
                continue
            for partition in range(self._partitions):
                self._write(partition, number)
            number += 1
            if self._pause_s:
                self._is_stopping.wait(self._pause_s)
        if left := self._producer.flush(DEADLINE_S):
            self.failure = self.failure or f"{left} records were not delivered in {DEADLINE_S} s"

    def _write(self, partition: int, number: int) -> None:
        value = b"%d " % number + self._padding
        key = None if self._keys is None else b"%d" % (number % self._keys)
        while self.failure is None:
            try:
                self._producer.produce(
                    self._topic, value, key, partition, on_delivery=self._on_delivery
                )
                self._producer.poll(0)
                return
            except BufferError:
                self._producer.poll(0.01)

    def _on_delivery(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.failure = self.failure or f"a record was not delivered: {error}"
            return
        partition, offset, value = message.partition(), message.offset(), message.value()
        assert partition is not None
        if offset is None:
            return  # a retry of an old batch, whose offset the broker no longer has
        self.acknowledged.add(partition, offset, parse_number(value))

    def _on_error(self, error: KafkaError) -> None:
        if error.fatal():
            self.failure = self.failure or f"the producer has a fatal error: {error}"


def read_numbers(
    bootstrap: str, topic: str, partition: int, settings: Mapping[str, str] | None = None
) -> list[int]:
    """Returns the numbers of all records of a partition, from offset 0 to its end."""
    end = end_offset(bootstrap, topic, partition, settings)
    numbers: list[int] = []
    with assigned(bootstrap, topic, partition, settings) as consumer:
        deadline = time.monotonic() + DEADLINE_S
        while len(numbers) < end:
            assert time.monotonic() < deadline, f"{len(numbers)} of {end} records in {DEADLINE_S} s"
            for message in consumer.consume(min(10_000, end - len(numbers)), timeout=0.1):
                assert message.error() is None, message.error()
                assert message.offset() == len(numbers), "an offset is missing or comes twice"
                numbers.append(parse_number(message.value()))
    return numbers


def end_offset(
    bootstrap: str, topic: str, partition: int, settings: Mapping[str, str] | None = None
) -> int:
    """Returns the end offset of a partition that starts at 0, when it has a leader."""
    topic_partition, deadline = TopicPartition(topic, partition), time.monotonic() + DEADLINE_S
    while True:
        # A new consumer each time, because the library keeps its first metadata.
        with assigned(bootstrap, topic, partition, settings) as consumer:
            try:
                first, end = consumer.get_watermark_offsets(topic_partition, timeout=DEADLINE_S)
            except KafkaException as exception:
                if exception.args[0].code() not in NO_LEADER_YET or time.monotonic() > deadline:
                    raise
            else:
                assert first == 0
                return int(end)


@contextmanager
def assigned(
    bootstrap: str, topic: str, partition: int, settings: Mapping[str, str] | None = None
) -> Iterator[Consumer]:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "not-joined",
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
            "fetch.queue.backoff.ms": 10,
            **(settings or {}),
        }
    )
    try:
        consumer.assign([TopicPartition(topic, partition, 0)])
        yield consumer
    finally:
        consumer.close()


def parse_number(value: bytes | None) -> int:
    assert value is not None
    return int(value.partition(b" ")[0])
