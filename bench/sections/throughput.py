"""Throughput: Kafka's own perf tool produces, two kinds of consumers read."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from bench import raw_client
from bench.brokers import BrokerUnderTest, peer_bench
from bench.case import Case, Figures

SIZES = {100: 2_000_000, 1000: 500_000}
STORED = {100: 5_000_000, 1000: 1_000_000}
COMPRESSED = {100: 1_000_000, 1000: 200_000}
CODECS = ("lz4", "zstd", "snappy", "gzip")
BATCHES = {"16K": peer_bench.SMALL_BATCH, "256K": peer_bench.LARGE_BATCH}


def pretouch(broker: BrokerUnderTest, size_bytes: int) -> None:
    """Touch pages of the page cache before the measurement.

    The first access to a page of a virtual machine costs several times a later one, and only the
    first broker would pay for it.
    """
    with tempfile.TemporaryFile(dir=broker.directory) as file:
        chunk = bytes(1_000_000)
        for _ in range(size_bytes // len(chunk) + 1):
            file.write(chunk)
    os.sync()


def produce(
    size: int, records: int, settings: dict[str, Any], broker: BrokerUnderTest, _: Any
) -> Figures:
    count = broker.count(records)
    pretouch(broker, count * size * 2)
    figures: Figures = broker.produce_once(count, size, **settings)
    return figures | {"rss_mb": broker.process.rss_mb()}


def paced(rate: int, acks: str, broker: BrokerUnderTest, _: Any) -> Figures:
    """Latency at a fixed rate, 1000 B, linger 0."""
    settings = {"acks": acks} | peer_bench.SMALL_BATCH
    figures: Figures = broker.produce_once(broker.count(rate * 16), 1000, rate, **settings)
    return figures


@contextmanager
def stored(size: int, records: int, broker: BrokerUnderTest, codec: str = "none") -> Iterator[str]:
    settings = {"compression.type": codec} | peer_bench.LARGE_BATCH
    with broker.topic() as topic:
        broker.perf_produce(topic, broker.count(records), size, **settings)
        yield topic


def consume(size: int, records: int, broker: BrokerUnderTest, topic: str) -> Figures:
    figures: Figures = broker.perf_consume(topic, broker.count(records), size)
    return figures | {"rss_mb": broker.process.rss_mb()}


def consume_raw(size: int, records: int, broker: BrokerUnderTest, topic: str) -> Figures:
    """A consumer of minimal cost, so that the broker is measured."""
    figures: Figures = {}
    count = broker.count(records)
    began_s = peer_bench.time.perf_counter()
    with broker.cpu(figures, count * size):
        raw_client.fetch_everything(broker.address, topic, count)
    seconds = peer_bench.time.perf_counter() - began_s
    return {"mb_per_s": count * size / seconds / 1e6} | figures


PRODUCE = [
    Case(
        f"produce {size} B acks={acks} batch={batch}",
        partial(produce, size, records, {"acks": acks} | settings),
    )
    for size, records in SIZES.items()
    for acks in ("1", "all")
    for batch, settings in BATCHES.items()
]

COMPRESSED_PRODUCE = [
    Case(
        f"compressed produce {codec} {size} B batch={batch}",
        partial(produce, size, records, {"acks": "all", "compression.type": codec} | settings),
    )
    for codec in CODECS
    for size, records in COMPRESSED.items()
    for batch, settings in BATCHES.items()
]

COMPRESSED_CONSUME = [
    Case(
        f"consume compressed {codec} {size} B",
        partial(consume, size, records),
        partial(stored, size, records, codec=codec),
    )
    for codec in CODECS
    for size, records in COMPRESSED.items()
]

PACED = [
    Case(f"paced {rate}/s 1000 B acks={acks}", partial(paced, rate, acks))
    for rate in (200, 5000)
    for acks in ("1", "all")
]

CONSUME = [
    Case(f"{name} {size} B", partial(measure, size, records), partial(stored, size, records))
    for size, records in STORED.items()
    for name, measure in {"consume": consume, "consume (raw)": consume_raw}.items()
]
