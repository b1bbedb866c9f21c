"""kafka-producer-perf-test: produce at a rate, and print how fast and how late it went."""

import sys
import uuid
from argparse import Namespace
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from barnabas.cli.kafka.clients import client_settings, is_told, reach, tell_renamed
from barnabas.cli.kafka.errors import reasons_to_stderr
from barnabas.cli.kafka.options import Plain
from barnabas.cli.kafka.output import print_metrics
from barnabas.cli.operations.console_clients import close
from barnabas.cli.operations.errors import Refused
from barnabas.cli.operations.produce_perf import (
    Latencies,
    Load,
    letters,
    numbers,
    picked,
    produce,
    read_payloads,
)
from barnabas.cli.operations.settings import JAVA_PRODUCER
from barnabas.cli.signals import until_stopped

PURPOSE = (
    "This tool is used to verify the producer performance. To enable transactions, name a"
    " transactional id (--transactional-id, or transactional.id as a property) or set"
    " --transaction-duration-ms."
)
DEFAULT_TRANSACTION_MS = 3000

_RENAMED = {"producer-props": "command-property", "producer.config": "command-config"}
_TELL_WHERE = (
    "bootstrap-server",
    "command-property",
    "producer-props",
    "producer.config",
    "command-config",
)
"""Any of these may say where the brokers are."""


def main(arguments: Sequence[str] | None = None) -> int:
    options = _options()
    chosen = options.parse(arguments)
    _check(options, chosen)
    with reasons_to_stderr(), until_stopped():
        return _run(options, chosen)


def _check(options: Plain, chosen: Namespace) -> None:
    if not any(is_told(chosen, each) for each in _TELL_WHERE):
        *names, last = (f"--{each}" for each in _TELL_WHERE)
        options.error(f"At least one of {', '.join(names)} or {last} must be specified.")
    if chosen.record_size is not None and chosen.record_size <= 0:
        options.error("--record-size should be greater than zero.")
    if chosen.transaction_duration_ms is not None and chosen.transaction_duration_ms <= 0:
        options.error("--transaction-duration-ms should be greater than zero.")
    if chosen.warmup_records >= chosen.num_records > 0:
        options.error(
            "The value for --warmup-records must be strictly fewer than the number of records in"
            " the test, --num-records."
        )


def _run(options: Plain, chosen: Namespace) -> int:
    from barnabas import Producer

    values = _values(chosen)
    tell_renamed(chosen, _RENAMED, options.error, "Option --{} has been deprecated")
    settings, transaction_ms = _settings(chosen)
    load = Load(
        chosen.topic,
        chosen.num_records,
        chosen.throughput,
        transaction_ms,
        chosen.warmup_records,
        chosen.reporting_interval,
    )
    if load.warmup_records:
        print(
            f"Warmup first {load.warmup_records} records. Steady state results will print after"
            " the complete test summary."
        )
    producer = Producer(settings)
    try:
        reach(producer)
        progress = produce(producer, load, values, _print_window)
        print(_total(progress.whole))
        if progress.steady is not None:
            print(_total(progress.steady).replace("records sent", "steady state records sent"))
        if chosen.print_metrics:
            print_metrics(producer.metrics())
    finally:
        close(producer)
    if progress.errors:
        print(f"{len(progress.errors)} records failed: {progress.errors[0].str()}", file=sys.stderr)
        return 1
    return 0


def _values(chosen: Namespace) -> Iterator[bytes]:
    if chosen.payload_file is not None:
        print(f"Reading payloads from: {chosen.payload_file.absolute()}")
        lines = read_payloads(chosen.payload_file, chosen.payload_delimiter)
        print(f"Number of records read: {len(lines)}")
        return picked(lines)
    return numbers() if chosen.payload_monotonic else letters(chosen.record_size)


def _options() -> Plain:
    options = Plain("kafka-producer-perf-test", PURPOSE)
    option = options.add_argument
    option("--bootstrap-server", metavar="HOST:PORT,...", help="The brokers to connect to.")
    option("--topic", required=True, help="Produce records to this topic.")
    option("--num-records", required=True, type=int, help="Number of records to produce.")
    option(
        "--throughput", required=True, type=float, help="Records a second at most; -1: no limit."
    )
    for name in "--command-property", "--producer-props":
        option(
            name,
            nargs="+",
            action="extend",
            default=[],
            metavar="NAME=VALUE",
            help="Settings of the producer, over those of the file.",
        )
    option("--command-config", type=Path, metavar="FILE", help="A file of settings.")
    option("--producer.config", dest="producer_config", type=Path, metavar="FILE", help="The same.")
    option("--print-metrics", action="store_true", help="Print the producer's metrics at the end.")
    option("--transactional-id", help="Produce in transactions, by this id.")
    option(
        "--transaction-duration-ms",
        type=int,
        metavar="MS",
        help="How long each transaction is kept open (3000).",
    )
    option("--warmup-records", type=int, default=0, help="Not counted in a second summary line.")
    option(
        "--reporting-interval", type=int, default=5000, metavar="MS", help="Between progress lines."
    )
    payload = options.add_mutually_exclusive_group(required=True)
    payload.add_argument("--record-size", type=int, help="Record size in bytes.")
    payload.add_argument("--payload-file", type=Path, help="Lines of this file, picked at random.")
    payload.add_argument(
        "--payload-monotonic", action="store_true", help="Increasing numbers, as text."
    )
    option("--payload-delimiter", default="\n", help="Between the payloads of a file (new line).")
    return options


def _settings(chosen: Namespace) -> tuple[dict[str, Any], int | None]:
    """The producer's settings, and how long its transactions are."""
    settings = client_settings(
        chosen.command_config or chosen.producer_config,
        [*chosen.producer_props, *chosen.command_property],
        {**JAVA_PRODUCER, "client.id": "perf-producer-client"},
    )
    if chosen.bootstrap_server:
        settings["bootstrap.servers"] = chosen.bootstrap_server
    if not settings.get("bootstrap.servers"):
        raise Refused("No bootstrap.servers, neither as an option nor in the settings.")
    if chosen.transactional_id:
        settings["transactional.id"] = chosen.transactional_id
    duration_ms = chosen.transaction_duration_ms
    if duration_ms is not None and "transactional.id" not in settings:
        settings["transactional.id"] = f"performance-producer-{uuid.uuid4()}"
    if "transactional.id" in settings:
        return settings, duration_ms or DEFAULT_TRANSACTION_MS
    return settings, None


def _print_window(window: Latencies) -> None:
    records, mebibytes = window.speed()
    print(
        f"{window.count} records sent, {records:.1f} records/sec ({mebibytes:.2f} MB/sec),"
        f" {window.average_ms:.1f} ms avg latency, {window.max_ms:.1f} ms max latency.",
        flush=True,
    )


def _total(whole: Latencies) -> str:
    records, mebibytes = whole.speed()
    p50, p95, p99, p999 = whole.percentiles(0.5, 0.95, 0.99, 0.999)
    return (
        f"{whole.count} records sent, {records:f} records/sec ({mebibytes:.2f} MB/sec),"
        f" {whole.average_ms:.2f} ms avg latency, {whole.max_ms:.2f} ms max latency,"
        f" {p50} ms 50th, {p95} ms 95th, {p99} ms 99th, {p999} ms 99.9th."
    )
