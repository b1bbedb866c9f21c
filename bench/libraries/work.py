"""Runs one workload of a client library in this process, and prints its figures as JSON.

    python -m bench.libraries.work confluent_kafka produce 127.0.0.1:9092 topic 1000000

The settings are the same for all: acks=all, 256 KiB batches, 5 ms of linger, 100 B records.
"""

import asyncio
import importlib
import json
import resource
import sys
import time
import uuid
from collections.abc import Callable
from typing import Any

RECORD_BYTES = 100
VALUE = b"x" * RECORD_BYTES
ARROW_ROWS = 100_000


def produce(library: Any, bootstrap: str, topic: str, records: int) -> float:
    """One record a call, as fast as the buffer accepts them."""
    producer = library.Producer(producer_settings(bootstrap))
    began_s = time.perf_counter()
    for _ in range(records):
        while True:
            try:
                producer.produce(topic, VALUE)
                break
            except BufferError:
                producer.poll(0.01)
    producer.flush()
    return time.perf_counter() - began_s


def produce_reported(library: Any, bootstrap: str, topic: str, records: int) -> float:
    """One record a call, with a key and a delivery report for each."""
    producer = library.Producer(producer_settings(bootstrap))
    delivered = 0

    def on_delivery(error: Any, message: Any) -> None:
        nonlocal delivered
        assert error is None, error
        delivered += 1

    began_s = time.perf_counter()
    for number in range(records):
        while True:
            try:
                producer.produce(topic, VALUE, b"key-%d" % number, on_delivery=on_delivery)
                break
            except BufferError:
                producer.poll(0.01)
        if number % 100 == 0:
            producer.poll(0)
    producer.flush()
    assert delivered == records, delivered
    return time.perf_counter() - began_s


def poll(library: Any, bootstrap: str, topic: str, records: int) -> float:
    """One record a call."""
    consumer = subscribed(library, bootstrap, topic)
    while consumer.poll(1.0) is None:
        pass
    seen, began_s = 1, time.perf_counter()
    while seen < records:
        if consumer.poll(1.0) is not None:
            seen += 1
    seconds = time.perf_counter() - began_s
    consumer.close()
    return seconds


def consume(library: Any, bootstrap: str, topic: str, records: int) -> float:
    """Lists of records."""
    consumer = subscribed(library, bootstrap, topic)
    seen, began_s = 0, 0.0
    while seen < records:
        batch = consumer.consume(10_000, 1.0)
        if batch and not began_s:
            began_s = time.perf_counter()
        seen += len(batch)
    seconds = time.perf_counter() - began_s
    consumer.close()
    return seconds


def produce_arrow(library: Any, bootstrap: str, topic: str, records: int) -> float:
    """Columns of values."""
    import pyarrow as pa

    producer = library.Producer(producer_settings(bootstrap))
    rows = pa.record_batch({"value": pa.array([VALUE] * ARROW_ROWS, pa.binary())})
    began_s = time.perf_counter()
    for first in range(0, records, ARROW_ROWS):
        part = rows.slice(0, min(ARROW_ROWS, records - first))
        while True:
            try:
                producer.produce_arrow(topic, part)
                break
            except BufferError:
                producer.poll(0.01)
    producer.flush()
    return time.perf_counter() - began_s


def consume_arrow(library: Any, bootstrap: str, topic: str, records: int) -> float:
    consumer = subscribed(library, bootstrap, topic)
    seen, began_s = 0, 0.0
    while seen < records:
        batch = consumer.consume_arrow(ARROW_ROWS, 1.0)
        if batch.num_rows and not began_s:
            began_s = time.perf_counter()
        seen += batch.num_rows
    seconds = time.perf_counter() - began_s
    consumer.close()
    return seconds


def aio_produce(library: Any, bootstrap: str, topic: str, records: int) -> float:
    work = _aiokafka_produce if library.__name__ == "aiokafka" else _aio_produce
    return asyncio.run(work(library, bootstrap, topic, records))


def aio_consume(library: Any, bootstrap: str, topic: str, records: int) -> float:
    work = _aiokafka_consume if library.__name__ == "aiokafka" else _aio_consume
    return asyncio.run(work(library, bootstrap, topic, records))


def aio_iterate(library: Any, bootstrap: str, topic: str, records: int) -> float:
    """One record an iteration of `async for`."""
    work = _aiokafka_iterate if library.__name__ == "aiokafka" else _aio_iterate
    return asyncio.run(work(library, bootstrap, topic, records))


async def _aio_produce(library: Any, bootstrap: str, topic: str, records: int) -> float:
    async with library.Producer(producer_settings(bootstrap)) as producer:
        began_s = time.perf_counter()
        for _ in range(records):
            await producer.produce(topic, VALUE)
        await producer.flush()
        return time.perf_counter() - began_s


async def _aio_consume(library: Any, bootstrap: str, topic: str, records: int) -> float:
    async with library.Consumer(consumer_settings(bootstrap)) as consumer:
        await consumer.subscribe([topic])
        seen, began_s = 0, 0.0
        while seen < records:
            batch = await consumer.consume(10_000, 1.0)
            if batch and not began_s:
                began_s = time.perf_counter()
            seen += len(batch)
        return time.perf_counter() - began_s


async def _aio_iterate(library: Any, bootstrap: str, topic: str, records: int) -> float:
    async with library.Consumer(consumer_settings(bootstrap)) as consumer:
        await consumer.subscribe([topic])
        return await _count(consumer, records)


async def _aiokafka_produce(library: Any, bootstrap: str, topic: str, records: int) -> float:
    settings = {"linger_ms": 5, "max_batch_size": 262_144, "acks": "all"}
    async with library.AIOKafkaProducer(bootstrap_servers=bootstrap, **settings) as producer:
        began_s = time.perf_counter()
        for _ in range(records):
            await producer.send(topic, VALUE)
        await producer.flush()
        return time.perf_counter() - began_s


async def _aiokafka_consume(library: Any, bootstrap: str, topic: str, records: int) -> float:
    async with _aiokafka_consumer(library, bootstrap, topic) as consumer:
        seen, began_s = 0, 0.0
        while seen < records:
            batches = await consumer.getmany(timeout_ms=1000)
            if batches and not began_s:
                began_s = time.perf_counter()
            seen += sum(map(len, batches.values()))
        return time.perf_counter() - began_s


async def _aiokafka_iterate(library: Any, bootstrap: str, topic: str, records: int) -> float:
    async with _aiokafka_consumer(library, bootstrap, topic) as consumer:
        return await _count(consumer, records)


def _aiokafka_consumer(library: Any, bootstrap: str, topic: str) -> Any:
    settings = {"auto_offset_reset": "earliest", "enable_auto_commit": False}
    return library.AIOKafkaConsumer(topic, bootstrap_servers=bootstrap, **settings)


async def _count(messages: Any, records: int) -> float:
    """Returns the time from the first record to the last."""
    seen, began_s = 0, 0.0
    async for _ in messages:
        if not seen:
            began_s = time.perf_counter()
        seen += 1
        if seen == records:
            break
    return time.perf_counter() - began_s


def producer_settings(bootstrap: str) -> dict[str, Any]:
    return {
        "bootstrap.servers": bootstrap,
        "acks": "all",
        "linger.ms": 5,
        "batch.size": 262_144,
        "queue.buffering.max.messages": 500_000,
    }


def consumer_settings(bootstrap: str) -> dict[str, Any]:
    return {
        "bootstrap.servers": bootstrap,
        "group.id": f"bench-{uuid.uuid4().hex[:8]}",
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "fetch.queue.backoff.ms": 10,  # librdkafka's default of 1 s stalls a fast consumer
    }


def subscribed(library: Any, bootstrap: str, topic: str) -> Any:
    consumer = library.Consumer(consumer_settings(bootstrap))
    consumer.subscribe([topic])
    return consumer


WORK: dict[str, Callable[[Any, str, str, int], float]] = {
    work.__name__: work
    for work in (
        produce,
        produce_reported,
        poll,
        consume,
        produce_arrow,
        consume_arrow,
        aio_produce,
        aio_consume,
        aio_iterate,
    )
}


def main() -> None:
    library, work, bootstrap, topic, records = sys.argv[1:]
    seconds = WORK[work](importlib.import_module(library), bootstrap, topic, int(records))
    used = resource.getrusage(resource.RUSAGE_SELF)
    gigabytes = int(records) * RECORD_BYTES / 1e9
    figures = {
        "records_per_s": int(records) / seconds,
        "client_cpu_s_per_gb": (used.ru_utime + used.ru_stime) / gigabytes,
        "peak_rss_mb": used.ru_maxrss / 1024,
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
