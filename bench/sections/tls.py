"""TLS 1.3: throughput of Kafka's own tools, and handshakes beside a connected producer."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from bench.brokers import BrokerUnderTest, peer_bench
from bench.case import Case, Figures
from bench.handshakes import Handshakes
from bench.paced_producer import PacedProducer, times_alone
from bench.sections.throughput import pretouch
from bench.tls_brokers import tls_broker

RECORD_BYTES = 1000
RECORDS = 1_000_000
WARM_UP_RECORDS = 500_000
HANDSHAKES_PER_S = 1_000
PRODUCER_RATE = 1_000
SECONDS = 10


@contextmanager
def warm_broker(broker: BrokerUnderTest) -> Iterator[Any]:
    """A broker with TLS whose JVM, if it has one, has compiled what it uses."""
    with tls_broker(broker) as secure:
        with secure.topic() as topic:
            count = secure.count(WARM_UP_RECORDS)
            secure.perf_produce(topic, count, RECORD_BYTES, **peer_bench.LARGE_BATCH)
            secure.perf_consume(topic, count, RECORD_BYTES)
        yield secure


@contextmanager
def stored(broker: BrokerUnderTest) -> Iterator[tuple[Any, str]]:
    with warm_broker(broker) as secure, secure.topic() as topic:
        count = secure.count(RECORDS)
        secure.perf_produce(topic, count, RECORD_BYTES, **peer_bench.LARGE_BATCH)
        yield secure, topic


def produce(settings: dict[str, Any], _: BrokerUnderTest, secure: Any) -> Figures:
    count = secure.count(RECORDS)
    pretouch(secure, count * RECORD_BYTES * 2)
    figures: Figures = secure.produce_once(count, RECORD_BYTES, acks="1", **settings)
    return figures


def consume(_: BrokerUnderTest, state: tuple[Any, str]) -> Figures:
    secure, topic = state
    figures: Figures = secure.perf_consume(topic, secure.count(RECORDS), RECORD_BYTES)
    return figures


def handshakes_beside_a_producer(_: BrokerUnderTest, secure: Any) -> Figures:
    """The producer is on the plain listener, whose requests the same loop handles."""
    with secure.topic() as topic:
        with PacedProducer(secure.address, topic, PRODUCER_RATE) as alone:
            time.sleep(SECONDS)
        cpu_s = secure.process.cpu_s()
        with (
            PacedProducer(secure.address, topic, PRODUCER_RATE) as beside,
            Handshakes(secure.secure_address, secure.authority_file, HANDSHAKES_PER_S) as made,
        ):
            time.sleep(SECONDS)
        cpu_s = secure.process.cpu_s() - cpu_s
    return {
        "handshakes_per_s": made.per_s,
        "broker_cpu_ms_per_handshake": cpu_s / made.count * 1000,
        **beside.latencies,
        **times_alone(beside.latencies, alone.latencies),
    }


CASES = [
    *(
        Case(f"TLS produce {RECORD_BYTES} B batch={batch}", partial(produce, settings), warm_broker)
        for batch, settings in (("16K", peer_bench.SMALL_BATCH), ("256K", peer_bench.LARGE_BATCH))
    ),
    Case(f"TLS consume {RECORD_BYTES} B", consume, stored),
    Case(
        f"TLS {HANDSHAKES_PER_S} handshakes/s beside a producer of {PRODUCER_RATE}/s",
        handshakes_beside_a_producer,
        warm_broker,
    ),
]
