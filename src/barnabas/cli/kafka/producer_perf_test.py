"""kafka-producer-perf-test: produce records, and print throughput and latency."""

import sys
import uuid
from argparse import Namespace
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from barnabas.cli.kafka.clients import (
    BROKERS_MAY_CREATE,
    MissingTopicWarning,
    has_value,
    java_client_settings,
    require_brokers,
    warn_of_deprecated,
)
from barnabas.cli.kafka.command import kafka_command
from barnabas.cli.kafka.options import PlainParser, int32, int64
from barnabas.cli.kafka.output import print_metrics
from barnabas.cli.operations.console_clients import close_producer
from barnabas.cli.operations.errors import CommandError
from barnabas.cli.operations.perf import (
    LatencyStats,
    ProduceLoad,
    increasing_numbers,
    measure_produce,
    random_choices,
    random_letters,
    read_payloads,
)
from barnabas.cli.operations.settings import JAVA_PRODUCER_DEFAULTS

PURPOSE = (
    "This tool is used to verify the producer performance. To enable transactions, name a"
    " transactional id (--transactional-id, or transactional.id as a property) or set"
    " --transaction-duration-ms."
)
DEFAULT_TRANSACTION_MS = 3000

_RENAMED = {"producer-props": "command-property", "producer.config": "command-config"}
_BOOTSTRAP_OPTIONS = (
    "bootstrap-server",
    "command-property",
    "producer-props",
    "producer.config",
    "command-config",
)
"""At least one of these sets the bootstrap servers."""


@kafka_command
def main(arguments: Sequence[str]) -> int:
    parser = _build_parser()
    args = parser.parse(arguments)
    _check(parser, args)
    return _run(parser, args)


def _check(parser: PlainParser, args: Namespace) -> None:
    if not any(has_value(args, option) for option in _BOOTSTRAP_OPTIONS):
        *names, last = (f"--{option}" for option in _BOOTSTRAP_OPTIONS)
        parser.error(f"At least one of {', '.join(names)} or {last} must be specified.")
    if args.record_size is not None and args.record_size <= 0:
        parser.error("--record-size should be greater than zero.")
    if args.transaction_duration_ms is not None and args.transaction_duration_ms <= 0:
        parser.error("--transaction-duration-ms should be greater than zero.")
    if args.warmup_records >= args.num_records > 0:
        parser.error(
            "The value for --warmup-records must be strictly fewer than the number of records in"
            " the test, --num-records."
        )


def _run(parser: PlainParser, args: Namespace) -> int:
    from barnabas import Producer

    values = _values(args)
    warn_of_deprecated(args, _RENAMED, parser.error, "Option --{} has been deprecated")
    settings, transaction_ms = _settings(args)
    load = ProduceLoad(
        args.topic,
        args.num_records,
        args.throughput,
        transaction_ms,
        args.warmup_records,
        args.reporting_interval,
    )
    if load.warmup_records:
        print(
            f"Warmup first {load.warmup_records} records. Steady state results will print after"
            " the complete test summary."
        )
    producer = Producer(settings)
    try:
        require_brokers(producer)
        MissingTopicWarning(producer, args.topic, BROKERS_MAY_CREATE)()
        progress = measure_produce(producer, load, values, _print_window)
        print(_total(progress.total))
        if progress.steady_state is not None:
            print(
                _total(progress.steady_state).replace("records sent", "steady state records sent")
            )
        if args.print_metrics:
            print_metrics(producer.metrics())
    finally:
        close_producer(producer)
    if progress.errors:
        print(f"{len(progress.errors)} records failed: {progress.errors[0].str()}", file=sys.stderr)
        return 1
    return 0


def _values(args: Namespace) -> Iterator[bytes]:
    if args.payload_file is not None:
        print(f"Reading payloads from: {args.payload_file.absolute()}")
        lines = read_payloads(args.payload_file, args.payload_delimiter)
        print(f"Number of records read: {len(lines)}")
        return random_choices(lines)
    return increasing_numbers() if args.payload_monotonic else random_letters(args.record_size)


def _build_parser() -> PlainParser:
    parser = PlainParser("kafka-producer-perf-test", PURPOSE)
    option = parser.add_argument
    option("--bootstrap-server", metavar="HOST:PORT,...", help="The brokers to connect to.")
    option("--topic", required=True, help="Produce records to this topic.")
    option("--num-records", required=True, type=int64, help="Number of records to produce.")
    option(
        "--throughput", required=True, type=float, help="Maximum records per second; -1: no limit."
    )
    for name in "--command-property", "--producer-props":
        option(
            name,
            nargs="+",
            action="extend",
            default=[],
            metavar="NAME=VALUE",
            help="Producer settings, which override the file.",
        )
    option("--command-config", type=Path, metavar="FILE", help="A file of settings.")
    option("--producer.config", dest="producer_config", type=Path, metavar="FILE", help="The same.")
    option("--print-metrics", action="store_true", help="Print the producer's metrics at the end.")
    option("--transactional-id", help="Produce in transactions with this id.")
    option(
        "--transaction-duration-ms",
        type=int64,
        metavar="MS",
        help="The duration of a transaction (3000).",
    )
    option(
        "--warmup-records", type=int64, default=0, help="Records before the steady state summary."
    )
    option(
        "--reporting-interval",
        type=int64,
        default=5000,
        metavar="MS",
        help="The interval of progress lines.",
    )
    payload = parser.add_mutually_exclusive_group(required=True)
    payload.add_argument("--record-size", type=int32, help="Record size in bytes.")
    payload.add_argument("--payload-file", type=Path, help="Use random lines of this file.")
    payload.add_argument(
        "--payload-monotonic", action="store_true", help="Increasing numbers, as text."
    )
    option(
        "--payload-delimiter",
        default="\n",
        help="The delimiter of payloads in the file (new line).",
    )
    return parser


def _settings(args: Namespace) -> tuple[dict[str, Any], int | None]:
    """Returns the settings of the producer, and the duration of transactions."""
    settings = java_client_settings(
        args.command_config or args.producer_config,
        [*args.producer_props, *args.command_property],
        {**JAVA_PRODUCER_DEFAULTS, "client.id": "perf-producer-client"},
    )
    if args.bootstrap_server:
        settings["bootstrap.servers"] = args.bootstrap_server
    if not settings.get("bootstrap.servers"):
        raise CommandError("No bootstrap.servers, neither as an option nor in the settings.")
    if args.transactional_id:
        settings["transactional.id"] = args.transactional_id
    duration_ms = args.transaction_duration_ms
    if duration_ms is not None and "transactional.id" not in settings:
        settings["transactional.id"] = f"performance-producer-{uuid.uuid4()}"
    if "transactional.id" in settings:
        return settings, duration_ms or DEFAULT_TRANSACTION_MS
    return settings, None


def _print_window(window: LatencyStats) -> None:
    records, mebibytes = window.throughput()
    print(
        f"{window.count} records sent, {records:.1f} records/sec ({mebibytes:.2f} MB/sec),"
        f" {window.average_ms:.1f} ms avg latency, {window.max_ms:.1f} ms max latency.",
        flush=True,
    )


def _total(whole: LatencyStats) -> str:
    records, mebibytes = whole.throughput()
    p50, p95, p99, p999 = whole.percentiles(0.5, 0.95, 0.99, 0.999)
    return (
        f"{whole.count} records sent, {records:f} records/sec ({mebibytes:.2f} MB/sec),"
        f" {whole.average_ms:.2f} ms avg latency, {whole.max_ms:.2f} ms max latency,"
        f" {p50} ms 50th, {p95} ms 95th, {p99} ms 99th, {p999} ms 99.9th."
    )
