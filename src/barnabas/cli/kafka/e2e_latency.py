"""kafka-e2e-latency: the latency of a record from producer to consumer."""

import sys
from argparse import Namespace
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from barnabas.cli.kafka.clients import java_client_settings, require_brokers
from barnabas.cli.kafka.command import kafka_command
from barnabas.cli.kafka.options import FlatParser, int32, int64
from barnabas.cli.operations.perf import (
    LATENCY_TIMEOUT_S,
    RecordTemplate,
    measure_latency,
    open_clients,
)
from barnabas.cli.operations.settings import JAVA_CONSUMER_DEFAULTS, JAVA_PRODUCER_DEFAULTS

_REQUIRED = ("bootstrap-server", "topic", "num-records", "producer-acks", "record-size")


@kafka_command
def main(arguments: Sequence[str]) -> int:
    parser = _build_parser()
    words = list(arguments)
    if words and not words[0].startswith("-"):
        words = _named(words)
    args = parser.parse(words)
    parser.require_options(args, *_REQUIRED)
    if args.producer_acks not in ("1", "all"):
        parser.usage_error(
            "Invalid value for --producer-acks. Latency testing requires synchronous"
            " acknowledgement. Please use '1' or 'all'."
        )
    for name in "num_records", "record_size":
        if getattr(args, name) <= 0:
            parser.usage_error(f"--{name.replace('_', '-')} must be greater than 0.")
    return _run(args)


def _named(words: list[str]) -> list[str]:
    """Converts the deprecated positional arguments to options."""
    if len(words) not in (5, 6):
        print(
            "Invalid number of arguments. Expected 5 or 6 positional arguments, but got"
            f" {len(words)}. Usage: {' '.join(_REQUIRED)} [optional] command-config",
            file=sys.stderr,
        )
        sys.exit(1)
    names = [f"--{name}" for name in (*_REQUIRED, "command-config")]
    print(
        "WARNING: Positional argument usage is deprecated and will be removed in Apache Kafka 5.0."
        f" Please use named arguments instead: {', '.join(names)}"
    )
    return [part for pair in zip(names, words, strict=False) for part in pair]


def _build_parser() -> FlatParser:
    parser = FlatParser(
        "kafka-e2e-latency",
        "This tool measures end to end latency in Kafka by sending messages and timing their"
        " reception.",
    )
    parser.add_value("--bootstrap-server", "host:port,...", "REQUIRED: The brokers to connect to.")
    parser.add_value("--topic", "topic", "REQUIRED: The topic to use for the test.")
    parser.add_value("--num-records", "count", "REQUIRED: How many records to send.", type=int64)
    parser.add_value("--producer-acks", "acks", "REQUIRED: 1 or all.")
    parser.add_value("--record-size", "bytes", "REQUIRED: The size of each value.", type=int32)
    parser.add_value("--record-key-size", "bytes", "The size of each key.", type=int32, default=0)
    parser.add_value("--num-headers", "count", "How many headers.", type=int32, default=0)
    parser.add_value("--record-header-key-size", "bytes", "Of each header.", type=int32, default=0)
    parser.add_value("--record-header-size", "bytes", "Of each header.", type=int32, default=0)
    parser.add_value("--command-config", "file", "A file of settings.", type=Path)
    return parser


def _run(args: Namespace) -> int:
    shared = {"bootstrap.servers": args.bootstrap_server}
    file = args.command_config
    _create_topic(java_client_settings(file, [], {}) | shared, args.topic)
    header = "h" * args.record_header_key_size, b"x" * args.record_header_size
    sent = RecordTemplate(
        args.topic,
        args.record_size,
        b"k" * args.record_key_size or None,
        (header,) * args.num_headers,
    )
    producing = (
        java_client_settings(file, [], JAVA_PRODUCER_DEFAULTS)
        | shared
        | {"acks": args.producer_acks}
    )
    consuming = java_client_settings(file, [], JAVA_CONSUMER_DEFAULTS) | shared
    with open_clients(producing, consuming, args.topic, _partitions) as ends:
        latencies_ns = measure_latency(ends, sent, args.num_records, _print_every_thousand)
    average_ms = sum(latencies_ns) / len(latencies_ns) / 1e6
    print(f"Avg latency: {average_ms:.4f} ms")
    ordered = sorted(latencies_ns)
    p50, p99, p999 = (int(ordered[int(len(ordered) * at)] / 1e6) for at in (0.5, 0.99, 0.999))
    print(f"Percentiles: 50th = {p50}, 99th = {p99}, 99.9th = {p999}")
    return 0


def _create_topic(settings: dict[str, Any], topic: str) -> None:
    from barnabas.admin import AdminClient, NewTopic

    admin = AdminClient(settings)
    require_brokers(admin)
    if topic not in admin.list_topics(timeout=LATENCY_TIMEOUT_S).topics:
        print(
            f'Topic "{topic}" does not exist. Will create topic with 1 partition(s) and'
            " replication factor = 1"
        )
        for created in admin.create_topics([NewTopic(topic, 1, 1)]).values():
            created.result()


def _partitions(consumer: Any, topic: str) -> Iterable[int]:
    partitions: Iterable[int] = (
        consumer.list_topics(topic, timeout=LATENCY_TIMEOUT_S).topics[topic].partitions
    )
    return partitions


def _print_every_thousand(number: int, took_ns: int) -> None:
    if number % 1000 == 0:
        print(f"{number}\t{took_ns / 1e6}", flush=True)
