"""Transactions of confluent-kafka: writing, and reading, processing and writing."""

import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from confluent_kafka import Consumer, Producer

from bench.brokers import BrokerUnderTest
from bench.case import Case, Figures

TRANSACTIONS = {1: 2_000, 100: 1_000}
"""The number of transactions, by the records of each."""

VALUE = bytes(100)
MAX_SECONDS = 10
WARM_UP = 5
"""The warm-up has this many times fewer transactions."""


def write(records: int, transactions: int, broker: BrokerUnderTest, _: object) -> Figures:
    producer = transactional_producer(broker)

    def fill(topic: str) -> None:
        for _ in range(records):
            producer.produce(topic, VALUE)

    with broker.topic() as topic:
        return commit_each(lambda: fill(topic), producer, transactions, broker)


@contextmanager
def input_topic(records: int, transactions: int, broker: BrokerUnderTest) -> Iterator[str]:
    """A topic with enough records for one run."""
    producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 5})
    with broker.topic() as topic:
        for count in range(records * broker.count(transactions) * 2):
            producer.produce(topic, VALUE)
            if count % 10_000 == 0:
                producer.flush()
        producer.flush()
        yield topic


def process(records: int, transactions: int, broker: BrokerUnderTest, source: str) -> Figures:
    """Read records, write as many, and commit the offsets in the same transaction."""
    producer, consumer = transactional_producer(broker), broker.consumer(source, "earliest")

    def fill(topic: str) -> None:
        for _ in consume(consumer, records):
            producer.produce(topic, VALUE)
        producer.send_offsets_to_transaction(
            consumer.position(consumer.assignment()), consumer.consumer_group_metadata()
        )

    with broker.topic() as topic:
        figures = commit_each(lambda: fill(topic), producer, transactions, broker)
    consumer.close()
    return figures


def consume(consumer: Consumer, records: int) -> Iterator[object]:
    missing = records
    while missing:
        batch = consumer.consume(missing, 10.0)
        if not batch:
            raise TimeoutError("nothing to process in 10 s")
        missing -= len(batch)
        yield from batch


def commit_each(
    fill: Callable[[], None], producer: Producer, transactions: int, broker: BrokerUnderTest
) -> Figures:
    """Measure transactions one after the other."""
    max_transactions = broker.count(transactions)
    commit_many(fill, producer, max(max_transactions // WARM_UP, 1))
    cpu_s, began_s = broker.process.cpu_s(), time.perf_counter()
    times_ms = sorted(commit_many(fill, producer, max_transactions))
    seconds, count = time.perf_counter() - began_s, len(times_ms)
    return {
        "transactions_per_s": count / seconds,
        "commit_p50_ms": times_ms[count // 2],
        "commit_p99_ms": times_ms[count * 99 // 100],
        "cpu_us_per_transaction": (broker.process.cpu_s() - cpu_s) / count * 1e6,
    }


def commit_many(fill: Callable[[], None], producer: Producer, max_transactions: int) -> list[float]:
    """Run up to `max_transactions` in MAX_SECONDS; returns the milliseconds of each commit."""
    times_ms: list[float] = []
    began_s = time.perf_counter()
    while len(times_ms) < max_transactions and time.perf_counter() - began_s < MAX_SECONDS:
        times_ms.append(commit_once(fill, producer))
    return times_ms


def commit_once(fill: Callable[[], None], producer: Producer) -> float:
    """Returns the milliseconds of the commit, which includes sending the last records."""
    producer.begin_transaction()
    fill()
    began_s = time.perf_counter()
    producer.commit_transaction()
    return (time.perf_counter() - began_s) * 1000


def transactional_producer(broker: BrokerUnderTest) -> Producer:
    producer = Producer(
        {
            "bootstrap.servers": broker.bootstrap,
            "transactional.id": f"bench-{uuid.uuid4().hex[:8]}",
            "linger.ms": 0,
        }
    )
    producer.init_transactions()
    return producer


CASES = [
    *(
        Case(f"transactions of {records}, written", partial(write, records, transactions))
        for records, transactions in TRANSACTIONS.items()
    ),
    *(
        Case(
            f"transactions of {records}, read and written",
            partial(process, records, transactions),
            partial(input_topic, records, transactions),
        )
        for records, transactions in TRANSACTIONS.items()
    ),
]
