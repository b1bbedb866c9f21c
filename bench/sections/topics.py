"""Thousands of topics: creation one by one, restart, and metadata requests."""

import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from confluent_kafka.admin import NewTopic

from bench import raw_client
from bench.brokers import BrokerUnderTest, peer_bench
from bench.case import Case, Figures

TOPICS = 1000
PARTITIONS_EACH = 10
CREATED_AT_ONCE = 100
LATENCY_REQUESTS = 20
RECORD_BYTES = 100


def create_one_by_one(broker: BrokerUnderTest, _: Any) -> Figures:
    admin = broker.admin()
    names = [f"single-{index}" for index in range(broker.count(TOPICS))]
    began_s = time.perf_counter()
    for name in names:
        admin.create_topics([NewTopic(name, 1, 1)])[name].result()
    seconds = time.perf_counter() - began_s
    broker.delete(names)
    return {"ms_per_topic": seconds / len(names) * 1000}


@contextmanager
def many_topics(partitions: int, broker: BrokerUnderTest) -> Iterator[float]:
    """A broker with only these topics; yields the seconds to create them."""
    broker.start_empty()
    names = [f"many-{index}" for index in range(broker.count(TOPICS))]
    began_s = time.perf_counter()
    create(broker, names, partitions)
    seconds = time.perf_counter() - began_s
    while peer_bench.metadata(broker.address) < len(names) * partitions:
        time.sleep(0.1)
    yield seconds
    broker.start_empty()


def create(broker: BrokerUnderTest, names: list[str], partitions: int) -> None:
    admin = broker.admin()
    for first in range(0, len(names), CREATED_AT_ONCE):
        new_topics = [
            NewTopic(name, partitions, 1) for name in names[first : first + CREATED_AT_ONCE]
        ]
        for created in admin.create_topics(new_topics, operation_timeout=120).values():
            created.result()


def restart(broker: BrokerUnderTest, _: Any) -> Figures:
    """Restart the broker, until all partitions have leaders."""
    partitions, began_s = peer_bench.metadata(broker.address), time.perf_counter()
    broker.stop()
    stop_s = time.perf_counter() - began_s
    return {"start_s": broker.start(partitions), "stop_s": stop_s}


def recover(broker: BrokerUnderTest, _: Any) -> Figures:
    """Kill the broker after a record for each partition, and start it until all have leaders."""
    topics = broker.count(TOPICS)
    connection = raw_client.RawConnection(broker.address)
    for index in range(topics):
        connection.send(raw_client.produce_frame(f"many-{index}", 1, RECORD_BYTES))
    connection.close()
    partitions = peer_bench.metadata(broker.address)
    broker.kill()
    start_s = broker.start(partitions)
    return {"start_s": start_s, "ms_per_partition": start_s / partitions * 1000}


def restart_and_request(broker: BrokerUnderTest, create_s: float) -> Figures:
    figures = {"create_s": create_s} | restart(broker, None)
    one, everything = raw_client.metadata_frame(["many-0"]), raw_client.metadata_frame(None)
    return figures | {
        "metadata_one_ms": request_latency_ms(broker, one),
        "metadata_all_ms": request_latency_ms(broker, everything),
        "rss_mb": broker.process.rss_mb(),
    }


def request_latency_ms(broker: BrokerUnderTest, frame: bytes) -> float:
    connection = raw_client.RawConnection(broker.address)
    times_ms = []
    for _ in range(LATENCY_REQUESTS):
        began_s = time.perf_counter()
        connection.send(frame)
        times_ms.append((time.perf_counter() - began_s) * 1000)
    connection.close()
    return statistics.median(times_ms)


CREATE = [Case("create topics one by one", create_one_by_one)]
RESTART = [
    Case(f"restart, {TOPICS} topics", restart, lambda broker: many_topics(1, broker)),
]
RECOVERY = [
    Case(f"kill -9, {TOPICS} topics", recover, lambda broker: many_topics(1, broker)),
]
MANY = [
    Case(
        f"{TOPICS} topics, {TOPICS * PARTITIONS_EACH} partitions",
        restart_and_request,
        lambda broker: many_topics(PARTITIONS_EACH, broker),
        repeat=1,
    )
]
