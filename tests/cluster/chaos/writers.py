"""Producers that retry through all faults and store their acknowledgements."""

import random
import threading
import time
import zlib
from collections.abc import Callable, Mapping

from confluent_kafka import KafkaError, KafkaException, Message, Producer
from tests.cluster.chaos.observations import PARTITIONS, Acknowledgement, Outcome, Transaction

CONNECTION = {
    "reconnect.backoff.ms": 20,
    "reconnect.backoff.max.ms": 250,
    "retry.backoff.ms": 20,
    "retry.backoff.max.ms": 250,
    "socket.timeout.ms": 5_000,
    "metadata.recovery.strategy": "none",  # a broker that is down comes back
    "log_level": 0,  # the tests kill nodes
}
PRODUCER = CONNECTION | {
    "enable.idempotence": True,
    "acks": "all",
    "linger.ms": 2,
    "request.timeout.ms": 5_000,
}
LARGEST_BYTES = 2_000
TOTAL_S = 180
"""The maximum time for records in flight at the end."""


class Writer(threading.Thread):
    """Writes until `stopping` is set; `failure` is an error that cannot be retried."""

    def __init__(
        self, name: str, connection: Mapping[str, str], topic: str, rng: random.Random
    ) -> None:
        super().__init__(name=name, daemon=True)
        self.topic = topic
        self.acknowledged: list[Acknowledgement] = []
        self.transactions: list[Transaction] = []
        self.failure: str | None = None
        self.stopping = threading.Event()
        self.connection = connection
        self.rng = rng

    def run(self) -> None:
        try:
            self.write()
        except Exception as failure:
            self.failure = self.failure or repr(failure)

    def write(self) -> None:
        raise NotImplementedError

    def value(self, *words: object) -> bytes:
        """Returns a value: the name of the writer, numbers, and random bytes."""
        head = " ".join(map(str, (self.name, *words))).encode() + b" "
        return head + self.rng.randbytes(self.rng.randrange(LARGEST_BYTES))

    def add(self, message: Message) -> None:
        partition, offset, value = message.partition(), message.offset(), message.value()
        # A retry of an old batch has no offset, because the broker no longer has it.
        if partition is not None and offset is not None and value is not None:
            self.acknowledged.append(
                Acknowledgement(time.monotonic(), partition, offset, zlib.crc32(value))
            )


class IdempotentWriter(Writer):
    """Writes 0, 1, 2, ... to each partition and never gives up a record."""

    PAUSE_S = 0.01

    written = 0

    def write(self) -> None:
        producer = Producer(
            PRODUCER
            | {
                **self.connection,
                "delivery.timeout.ms": 60 * 60_000,
                "queue.buffering.max.messages": 5_000,
                "error_cb": self._on_error,
            }
        )
        while not self.stopping.wait(self.PAUSE_S) and self.failure is None:
            if len(producer) > PARTITIONS * 500:
                producer.poll(0.05)
                continue
            for partition in range(PARTITIONS):
                producer.produce(
                    self.topic,
                    self.value(self.written),
                    partition=partition,
                    on_delivery=self._on_delivery,
                )
            self.written += 1
            producer.poll(0)
        if self.failure is None and (left := producer.flush(TOTAL_S)):
            self.failure = self.failure or f"{left} records were not delivered in {TOTAL_S} s"

    def _on_delivery(self, error: KafkaError | None, message: Message) -> None:
        if error is None:
            self.add(message)
        else:
            self.failure = self.failure or f"a record was not delivered: {error}"

    def _on_error(self, error: KafkaError) -> None:
        if error.fatal():
            self.failure = self.failure or f"the producer has a fatal error: {error}"


class TransactionalWriter(Writer):
    """Writes transactions to all partitions, and aborts one in four."""

    CALL_S = 5
    ABORTS = 0.25

    def write(self) -> None:
        producer: Producer | None = None
        while not self.stopping.is_set():
            try:
                producer = producer or self._new_producer()
                self._transact(producer)
            except KafkaException as exception:
                error = exception.args[0]
                assert error.fatal() or self._is_after_loss(error), error
                producer = None  # the next one fences it and ends its open transaction

    def _new_producer(self) -> Producer:
        producer = Producer(
            PRODUCER
            | {
                **self.connection,
                "transactional.id": self.name,
                "transaction.timeout.ms": 20_000,
            }
        )
        self._call_with_retries(lambda: producer.init_transactions(self.CALL_S))
        return producer

    def _transact(self, producer: Producer) -> None:
        transaction = Transaction(len(self.transactions), self.rng.randrange(1, 12))
        self.transactions.append(transaction)
        acknowledged: list[Message] = []

        def on_delivery(error: KafkaError | None, message: Message) -> None:
            if error is None:
                acknowledged.append(message)

        try:
            producer.begin_transaction()
            for index in range(transaction.records):
                producer.produce(
                    self.topic,
                    self.value(transaction.number, index, transaction.records),
                    partition=self.rng.randrange(PARTITIONS),
                    on_delivery=on_delivery,
                )
            if self.rng.random() < self.ABORTS:
                producer.flush(self.rng.random())
                self._call_with_retries(lambda: producer.abort_transaction(self.CALL_S))
                transaction.outcome = Outcome.ABORTED
            else:
                self._call_with_retries(lambda: producer.commit_transaction(self.CALL_S))
                transaction.outcome = Outcome.COMMITTED
        except KafkaException as exception:
            if not exception.args[0].txn_requires_abort():
                raise
            self._call_with_retries(lambda: producer.abort_transaction(self.CALL_S))
            transaction.outcome = Outcome.ABORTED
        for message in acknowledged:
            self.add(message)

    def _call_with_retries(self, call: Callable[[], None]) -> None:
        """Repeats a call while its error is retriable."""
        deadline_s = time.monotonic() + TOTAL_S
        while True:
            try:
                return call()
            except KafkaException as exception:
                if not exception.args[0].retriable() or time.monotonic() > deadline_s:
                    raise

    @staticmethod
    def _is_after_loss(error: KafkaError) -> bool:
        return bool(error.code() in (KafkaError._STATE, KafkaError._FENCED))
