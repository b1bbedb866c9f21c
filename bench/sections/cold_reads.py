"""A producer at a fixed rate, alone and while a consumer reads a log that is not in memory."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from itertools import repeat
from typing import NamedTuple

from bench import raw_client
from bench.brokers import BrokerUnderTest
from bench.case import Case, Figures
from bench.paced_producer import PacedProducer, times_alone
from bench.page_cache import flush

RATE = 5_000
STORED_RECORDS = 5_000_000
RECORD_BYTES = 1_000
BATCH_RECORDS = 250
ALONE_S = 10


class StoredTopics(NamedTuple):
    produced: str
    stored: str
    end_offset: int


@contextmanager
def stored_topics(broker: BrokerUnderTest) -> Iterator[StoredTopics]:
    """An empty topic to produce to, and one with 5 GB to read."""
    with broker.topic() as produced, broker.topic() as stored:
        frame = raw_client.produce_frame(stored, 1, RECORD_BYTES, records=BATCH_RECORDS)
        batches = broker.count(STORED_RECORDS) // BATCH_RECORDS
        raw_client.wait_until_led(broker.address, stored)
        connection = raw_client.RawConnection(broker.address)
        connection.send_pipelined(repeat(frame, batches), in_flight=4)
        connection.close()
        flush(broker.data / f"{stored}-0")
        yield StoredTopics(produced, stored, batches * BATCH_RECORDS)


def beside_reader(is_cold: bool, broker: BrokerUnderTest, topics: StoredTopics) -> Figures:
    folder = broker.data / f"{topics.stored}-0"
    with PacedProducer(broker.address, topics.produced, RATE) as alone:
        time.sleep(ALONE_S)
    if is_cold:
        flush(folder, evict=True)
    else:
        raw_client.fetch_everything(broker.address, topics.stored, topics.end_offset)
    figures: Figures = {}
    with PacedProducer(broker.address, topics.produced, RATE) as producer:
        began_s = time.perf_counter()
        with broker.cpu(figures, topics.end_offset * RECORD_BYTES):
            raw_client.fetch_everything(broker.address, topics.stored, topics.end_offset)
        seconds = time.perf_counter() - began_s
    read = {"read_mb_per_s": topics.end_offset * RECORD_BYTES / seconds / 1e6}
    return producer.latencies | times_alone(producer.latencies, alone.latencies) | read | figures


CASES = [
    Case(f"producer {RATE}/s, beside a reader of 5 GB {source}", measure, stored_topics)
    for source, measure in {
        "in memory": partial(beside_reader, False),
        "on disk": partial(beside_reader, True),
    }.items()
]
