"""The cleaner: its speed, CPU and memory, and a producer to another topic meanwhile."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from barnabas.wire.records.compression import Codec
from bench.brokers import BrokerUnderTest
from bench.case import Case, Figures
from bench.keyed_batches import KeyedRecords, build_batches
from bench.log_cleaning import (
    begin_cleaning,
    clean,
    dirty_topic,
    quick_cleaner,
    wait_until_clean,
)
from bench.paced_producer import PacedProducer, times_alone

LOG_BYTES = 2_000_000_000
"""Of keys and values, before compression."""

WARM_UP_PART = 5
"""Which part of the log is cleaned before, so that a JVM has compiled its cleaner."""

RATE = 5_000
ALONE_S = 10


@contextmanager
def keyed_batches(records: KeyedRecords, broker: BrokerUnderTest) -> Iterator[list[bytearray]]:
    """The batches of the log, and a cleaner that has cleaned such a log before."""
    batches = build_batches(records, broker.count(LOG_BYTES) // records.record_bytes)
    with quick_cleaner(broker):
        with dirty_topic(broker, batches[: len(batches) // WARM_UP_PART]) as topic:
            clean(broker, topic)
        yield batches


def clean_log(broker: BrokerUnderTest, batches: list[bytearray]) -> Figures:
    with dirty_topic(broker, batches) as topic:
        figures = clean(broker, topic)
    return {
        "mb_per_s": topic.closed_bytes / figures.seconds / 1e6,
        "cleaner_cpu_s": figures.cpu_s,
        "cleaner_rss_mb": figures.peak_mb,
        "log_mb": topic.closed_bytes / 1e6,
        "clean_s": figures.seconds,
    }


def produce_beside_cleaning(broker: BrokerUnderTest, batches: list[bytearray]) -> Figures:
    with broker.topic() as produced, dirty_topic(broker, batches) as topic:
        with PacedProducer(broker.address, produced, RATE) as alone:
            time.sleep(ALONE_S)
        begin_cleaning(broker, topic)
        with PacedProducer(broker.address, produced, RATE) as beside:
            wait_until_clean(broker, topic.name, 0, topic.end_offset)
    return beside.latencies | times_alone(beside.latencies, alone.latencies)


def speed_case(records: KeyedRecords) -> Case[BrokerUnderTest]:
    return Case(f"clean {records}", clean_log, partial(keyed_batches, records))


SMALL, LARGE = (
    [
        speed_case(KeyedRecords(record_bytes, distinct_percent, codec))
        for codec in (Codec.NONE, Codec.ZSTD)
        for distinct_percent in (10, 90)
    ]
    for record_bytes in (100, 1000)
)

BESIDE = [
    Case(
        f"producer {RATE}/s, beside a cleaning of 2 GB",
        produce_beside_cleaning,
        partial(keyed_batches, KeyedRecords(100, 10, Codec.NONE)),
    )
]
