"""The cost of three replicas: acks=all, min.insync.replicas=2, an idempotent producer."""

import statistics
import time
from functools import partial
from typing import Any

from confluent_kafka import Message, Producer

from bench.brokers import peer_bench
from bench.case import Case, Figures
from bench.clusters import ClusterUnderTest
from bench.sections.throughput import pretouch

SIZES = {100: 2_000_000, 1000: 500_000}
RATE = 5_000
PACED_S = 20
WARM_UP_S = 4
VALUE_BYTES = 1000


def produce(size: int, records: int, cluster: ClusterUnderTest, _: Any) -> Figures:
    count = cluster.count(records)
    pretouch(cluster, count * size * 6)
    settings = {"acks": "all", "enable.idempotence": "true"} | peer_bench.SMALL_BATCH
    with cluster.topic() as topic:
        figures: Figures = cluster.perf_produce(topic, count, size, **settings)
    return figures | {"rss_mb": cluster.process.rss_mb()}


def paced(cluster: ClusterUnderTest, _: Any) -> Figures:
    """Measures from `produce` to the acknowledgement, by the client's latency of each record."""
    producer = Producer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "acks": "all",
            "enable.idempotence": True,
            "linger.ms": 0,
        }
    )
    latencies_ms: list[float] = []

    def on_delivery(error: object, message: Message) -> None:
        assert error is None, error
        latency_s = message.latency()
        assert latency_s is not None
        latencies_ms.append(latency_s * 1000)

    figures: Figures = {}
    value = bytes(VALUE_BYTES)
    with cluster.topic() as topic:
        send = partial(producer.produce, topic, value, on_delivery=on_delivery)
        _at_rate(cluster.count(RATE * WARM_UP_S), producer, send)
        latencies_ms.clear()
        count = cluster.count(RATE * PACED_S)
        with cluster.cpu(figures, count * VALUE_BYTES):
            _at_rate(count, producer, send)
    percentiles = statistics.quantiles(latencies_ms, n=100, method="inclusive")
    return {"median_ms": percentiles[49], "p99_ms": percentiles[98]} | figures


def _at_rate(count: int, producer: Producer, send: partial[None]) -> None:
    began_s, sent = time.perf_counter(), 0
    while sent < count:
        due = min(int((time.perf_counter() - began_s) * RATE) + 1, count)
        while sent < due:
            send()
            sent += 1
        producer.poll(0)
        time.sleep(0.001)
    producer.flush()


CASES = [
    *(
        Case(f"3 copies: produce {size} B acks=all batch=16K", partial(produce, size, records))
        for size, records in SIZES.items()
    ),
    Case(f"3 copies: paced {RATE}/s {VALUE_BYTES} B acks=all", paced),
]
