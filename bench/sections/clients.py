"""Measurements of other tools: Kafka's e2e-latency, and the clients of $PEERS/bench-broker."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from bench.brokers import BrokerUnderTest, peer_bench
from bench.case import Case, Figures

LATENCY_RECORDS = 10_000
ROUND_TRIPS = 3_000
RECORD_BYTES = 100

Work = Callable[[Any, str, int], float]
"""Processes that many records of a topic, and returns the seconds it took."""


@contextmanager
def empty_topic(broker: BrokerUnderTest) -> Iterator[str]:
    with broker.topic() as topic:
        yield topic


@contextmanager
def full_topic(records: int, broker: BrokerUnderTest) -> Iterator[str]:
    with broker.topic() as topic:
        settings = peer_bench.LARGE_BATCH
        broker.perf_produce(topic, broker.count(records), RECORD_BYTES, **settings)
        yield topic


def e2e_latency(broker: BrokerUnderTest, topic: str) -> Figures:
    figures: Figures = broker.perf_latency(topic, broker.count(LATENCY_RECORDS))
    return figures


def round_trip(broker: BrokerUnderTest, topic: str) -> Figures:
    figures: Figures = broker.round_trips(topic, broker.count(ROUND_TRIPS))
    return {"p50_us": figures["p50_ms"] * 1000, "p99_ms": figures["p99_ms"]}


def work(do: Work, records: int, broker: BrokerUnderTest, topic: str) -> Figures:
    figures: Figures = broker.client(do, topic, broker.count(records))
    figures["mb_per_s"] = figures["records_per_s"] * RECORD_BYTES / 1e6
    return figures


LATENCY = [
    Case("e2e-latency 100 B acks=all", e2e_latency, empty_topic),
    Case("round trip 100 B acks=all, confluent-kafka", round_trip, empty_topic),
]
CLIENTS = [
    case
    for name, (produce, consume, records) in peer_bench.CLIENTS.items()
    for case in (
        Case(f"{name} produces 100 B", partial(work, produce, records), empty_topic),
        Case(
            f"{name} consumes 100 B", partial(work, consume, records), partial(full_topic, records)
        ),
    )
]
