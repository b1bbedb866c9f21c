"""kafka-e2e-latency: how long one record takes from a producer to a consumer."""

import sys
import time
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from barnabas.cli.kafka.clients import client_settings, close, reach
from barnabas.cli.kafka.failing import reasons_to_stderr
from barnabas.cli.kafka.options import Flat
from barnabas.cli.kafka.stopping import until_stopped
from barnabas.cli.work.given import JAVA_CONSUMER, JAVA_PRODUCER
from barnabas.cli.work.refused import Refused

TIMEOUT_S = 60
_REQUIRED = ("bootstrap-server", "topic", "num-records", "producer-acks", "record-size")


def main(arguments: Sequence[str] | None = None) -> int:
    options = _options()
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words and not words[0].startswith("-"):
        words = _named(words)
    chosen = options.parse(words)
    options.require(chosen, *_REQUIRED)
    if chosen.producer_acks not in ("1", "all"):
        options.refuse(
            "Invalid value for --producer-acks. Latency testing requires synchronous"
            " acknowledgement. Please use '1' or 'all'."
        )
    for name in "num_records", "record_size":
        if getattr(chosen, name) <= 0:
            options.refuse(f"--{name.replace('_', '-')} must be greater than 0.")
    with reasons_to_stderr(), until_stopped():
        return _run(chosen)


def _named(words: list[str]) -> list[str]:
    """The five or six bare words of old, as options."""
    if len(words) not in (5, 6):
        sys.exit(
            "Invalid number of arguments. Expected 5 or 6 positional arguments, but got"
            f" {len(words)}. Usage: {' '.join(_REQUIRED)} [optional] command-config"
        )
    names = [f"--{name}" for name in (*_REQUIRED, "command-config")]
    print(
        "WARNING: Positional argument usage is deprecated and will be removed in Apache Kafka 5.0."
        f" Please use named arguments instead: {', '.join(names)}"
    )
    return [part for pair in zip(names, words, strict=False) for part in pair]


def _options() -> Flat:
    options = Flat(
        "kafka-e2e-latency",
        "This tool measures end to end latency in Kafka by sending messages and timing their"
        " reception.",
    )
    options.value("--bootstrap-server", "host:port,...", "REQUIRED: The brokers to connect to.")
    options.value("--topic", "topic", "REQUIRED: The topic to use for the test.")
    options.value("--num-records", "count", "REQUIRED: How many records to send.", type=int)
    options.value("--producer-acks", "acks", "REQUIRED: 1 or all.")
    options.value("--record-size", "bytes", "REQUIRED: The size of each value.", type=int)
    options.value("--record-key-size", "bytes", "The size of each key.", type=int, default=0)
    options.value("--num-headers", "count", "How many headers.", type=int, default=0)
    options.value("--record-header-key-size", "bytes", "Of each header.", type=int, default=0)
    options.value("--record-header-size", "bytes", "Of each header.", type=int, default=0)
    options.value("--command-config", "file", "A file of settings.", type=Path)
    return options


def _run(chosen: Namespace) -> int:
    from barnabas import OFFSET_END, Consumer, Producer, TopicPartition
    from barnabas.admin import AdminClient, NewTopic

    shared = {"bootstrap.servers": chosen.bootstrap_server}
    file = chosen.command_config
    admin = AdminClient(client_settings(file, [], {}) | shared)
    reach(admin)
    if chosen.topic not in admin.list_topics(timeout=TIMEOUT_S).topics:
        print(
            f'Topic "{chosen.topic}" does not exist. Will create topic with 1 partition(s) and'
            " replication factor = 1"
        )
        for created in admin.create_topics([NewTopic(chosen.topic, 1, 1)]).values():
            created.result()
    alone = {"group.id": f"test-group-{int(time.time() * 1000)}", "enable.auto.commit": "false"}
    consumer = Consumer(
        client_settings(file, [], JAVA_CONSUMER) | shared | alone | {"fetch.max.wait.ms": "0"}
    )
    acks = {"acks": chosen.producer_acks, "linger.ms": "0", "max.block.ms": str(2**31 - 1)}
    producer = Producer(client_settings(file, [], JAVA_PRODUCER) | shared | acks)
    try:
        partitions = consumer.list_topics(chosen.topic).topics[chosen.topic].partitions
        ends = [TopicPartition(chosen.topic, each, OFFSET_END) for each in partitions]
        consumer.assign(ends)
        for place in ends:  # where the end is has to be known before the first record is sent
            _, high = consumer.get_watermark_offsets(place)
            place.offset = high
        consumer.assign(ends)
        _measure(chosen, producer, consumer)
    finally:
        consumer.close()
        close(producer)
    return 0


def _measure(chosen: Namespace, producer: Any, consumer: Any) -> None:
    latencies_ns: list[int] = []
    key = b"k" * chosen.record_key_size or None
    name, content = "h" * chosen.record_header_key_size, b"x" * chosen.record_header_size
    headers = [(name, content) for _ in range(chosen.num_headers)]
    for number in range(chosen.num_records):
        value = str(number).encode().ljust(chosen.record_size, b".")[: chosen.record_size]
        began_ns = time.perf_counter_ns()
        producer.produce(chosen.topic, value, key, headers=headers)
        producer.flush()
        message = consumer.poll(TIMEOUT_S)
        took_ns = time.perf_counter_ns() - began_ns
        if message is None:
            raise Refused(f"poll() timed out before finding a result (timeout:[{TIMEOUT_S}s])")
        if message.error() is not None:
            raise Refused(message.error().str())
        if message.value() != value:
            raise Refused(f"The record read {message.value()!r} did not match the one sent")
        latencies_ns.append(took_ns)
        if number % 1000 == 0:
            print(f"{number}\t{took_ns / 1e6}")
    average_ms = sum(latencies_ns) / len(latencies_ns) / 1e6
    print(f"Avg latency: {average_ms:.4f} ms")
    ordered = sorted(latencies_ns)
    p50, p99, p999 = (int(ordered[int(len(ordered) * at)] / 1e6) for at in (0.5, 0.99, 0.999))
    print(f"Percentiles: 50th = {p50}, 99th = {p99}, 99.9th = {p999}")
