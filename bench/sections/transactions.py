"""Transactions by a stock producer: records written, and records read, processed and written."""

import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from confluent_kafka import Consumer, Producer

from bench.brokers import BrokerUnderTest
from bench.case import Case, Figures

TRANSACTIONS = {1: 2_000, 100: 1_000}
"""How many, by the records in each."""

VALUE = bytes(100)
MAX_SECONDS = 10
WARM_UP = 5
"""So many times fewer transactions before those that count."""


def write(records: int, transactions: int, broker: BrokerUnderTest, _: object) -> Figures:
    producer = transactional_producer(broker)

    def fill(topic: str) -> None:
        for _ in range(records):
            producer.produce(topic, VALUE)

    with broker.topic() as topic:
        return commit_each(lambda: fill(topic), producer, transactions, broker)


@contextmanager
def input_topic(records: int, transactions: int, broker: BrokerUnderTest) -> Iterator[str]:
    """Something to process, enough for one run."""
    producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 5})
    with broker.topic() as topic:
        for count in range(records * broker.scaled_count(transactions) * 2):
            producer.produce(topic, VALUE)
            if count % 10_000 == 0:
                producer.flush()
        producer.flush()
        yield topic


def process(records: int, transactions: int, broker: BrokerUnderTest, source: str) -> Figures:
    """Read, write as much, and commit what was read with what was written."""
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
        some = consumer.consume(missing, 10.0)
        if not some:
            raise TimeoutError("nothing to process in 10 s")
        missing -= len(some)
        yield from some


def commit_each(
    fill: Callable[[], None], producer: Producer, transactions: int, broker: BrokerUnderTest
) -> Figures:
    """Transactions one after the other, each begun, filled and committed."""
    most = broker.scaled_count(transactions)
    commit_many(fill, producer, max(most // WARM_UP, 1))
    cpu_s, began_s = broker.process.cpu_s(), time.perf_counter()
    times_ms = sorted(commit_many(fill, producer, most))
    seconds, count = time.perf_counter() - began_s, len(times_ms)
    return {
        "transactions_per_s": count / seconds,
        "commit_p50_ms": times_ms[count // 2],
        "commit_p99_ms": times_ms[count * 99 // 100],
        "cpu_us_per_transaction": (broker.process.cpu_s() - cpu_s) / count * 1e6,
    }


def commit_many(fill: Callable[[], None], producer: Producer, most: int) -> list[float]:
    """So many, or fewer if they take too long; the milliseconds of each commit."""
    times_ms: list[float] = []
    began_s = time.perf_counter()
    while len(times_ms) < most and time.perf_counter() - began_s < MAX_SECONDS:
        times_ms.append(commit_once(fill, producer))
    return times_ms


def commit_once(fill: Callable[[], None], producer: Producer) -> float:
    """The milliseconds that the commit took, with what was not sent before."""
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
