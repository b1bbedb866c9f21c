"""Producers that go on through everything and remember what they were told."""

import random
import threading
import time
import zlib
from collections.abc import Callable

from confluent_kafka import KafkaError, KafkaException, Message, Producer
from tests.cluster.chaos.notes import PARTITIONS, Acknowledgement, Outcome, Transaction

CONNECTION = {
    "reconnect.backoff.ms": 20,
    "reconnect.backoff.max.ms": 250,
    "retry.backoff.ms": 20,
    "retry.backoff.max.ms": 250,
    "socket.timeout.ms": 5_000,
    "metadata.recovery.strategy": "none",  # a broker that is down comes back
    "log_level": 0,  # that nodes die is what this is about
}
PRODUCER = CONNECTION | {
    "enable.idempotence": True,
    "acks": "all",
    "linger.ms": 2,
    "request.timeout.ms": 5_000,
}
LARGEST_BYTES = 2_000
TOTAL_S = 180
"""How long what is under way at the end may take."""


class Writer(threading.Thread):
    """Writes until it is told to end; what went wrong for good is its `failure`."""

    def __init__(self, name: str, bootstrap: str, topic: str, moments: random.Random) -> None:
        super().__init__(name=name, daemon=True)
        self.topic = topic
        self.acknowledged: list[Acknowledgement] = []
        self.transactions: list[Transaction] = []
        self.failure: str | None = None
        self.ending = threading.Event()
        self.bootstrap = bootstrap
        self.moments = moments

    def run(self) -> None:
        try:
            self.write()
        except Exception as failure:
            self.failure = self.failure or repr(failure)

    def write(self) -> None:
        raise NotImplementedError

    def value(self, *words: object) -> bytes:
        """Who wrote it and the number of it, and then anything."""
        head = " ".join(map(str, (self.name, *words))).encode() + b" "
        return head + self.moments.randbytes(self.moments.randrange(LARGEST_BYTES))

    def note(self, message: Message) -> None:
        partition, offset, value = message.partition(), message.offset(), message.value()
        # Without an offset it is a retry of what was written before: the broker forgot where.
        if partition is not None and offset is not None and value is not None:
            self.acknowledged.append(
                Acknowledgement(time.monotonic(), partition, offset, zlib.crc32(value))
            )


class IdempotentWriter(Writer):
    """0, 1, 2, ... to each partition; none is ever given up."""

    PAUSE_S = 0.01

    written = 0

    def write(self) -> None:
        producer = Producer(
            PRODUCER
            | {
                "bootstrap.servers": self.bootstrap,
                "delivery.timeout.ms": 60 * 60_000,
                "queue.buffering.max.messages": 5_000,
                "error_cb": self._on_error,
            }
        )
        while not self.ending.wait(self.PAUSE_S) and self.failure is None:
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
            self.note(message)
        else:
            self.failure = self.failure or f"a record was given up: {error}"

    def _on_error(self, error: KafkaError) -> None:
        if error.fatal():
            self.failure = self.failure or f"the producer cannot go on: {error}"


class TransactionalWriter(Writer):
    """Transactions over all partitions, one in four of which it aborts itself."""

    CALL_S = 5
    ABORTS = 0.25

    def write(self) -> None:
        producer: Producer | None = None
        while not self.ending.is_set():
            try:
                producer = producer or self._new_producer()
                self._transact(producer)
            except KafkaException as lost:
                error = lost.args[0]
                assert error.fatal() or self._is_after_loss(error), error
                producer = None  # the next one fences it and ends what it left open

    def _new_producer(self) -> Producer:
        producer = Producer(
            PRODUCER
            | {
                "bootstrap.servers": self.bootstrap,
                "transactional.id": self.name,
                "transaction.timeout.ms": 20_000,
            }
        )
        self._until_done(lambda: producer.init_transactions(self.CALL_S))
        return producer

    def _transact(self, producer: Producer) -> None:
        transaction = Transaction(len(self.transactions), self.moments.randrange(1, 12))
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
                    partition=self.moments.randrange(PARTITIONS),
                    on_delivery=on_delivery,
                )
            if self.moments.random() < self.ABORTS:
                producer.flush(self.moments.random())
                self._until_done(lambda: producer.abort_transaction(self.CALL_S))
                transaction.outcome = Outcome.ABORTED
            else:
                self._until_done(lambda: producer.commit_transaction(self.CALL_S))
                transaction.outcome = Outcome.COMMITTED
        except KafkaException as failed:
            if not failed.args[0].txn_requires_abort():
                raise
            self._until_done(lambda: producer.abort_transaction(self.CALL_S))
            transaction.outcome = Outcome.ABORTED
        for message in acknowledged:
            self.note(message)

    def _until_done(self, call: Callable[[], None]) -> None:
        """Repeat a call of a transaction as long as it may be repeated."""
        deadline_s = time.monotonic() + TOTAL_S
        while True:
            try:
                return call()
            except KafkaException as failed:
                if not failed.args[0].retriable() or time.monotonic() > deadline_s:
                    raise

    @staticmethod
    def _is_after_loss(error: KafkaError) -> bool:
        return bool(error.code() in (KafkaError._STATE, KafkaError._FENCED))
