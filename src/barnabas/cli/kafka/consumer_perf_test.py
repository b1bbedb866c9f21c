"""kafka-consumer-perf-test: consume records, and print the throughput."""

import random
from argparse import Namespace
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from barnabas.cli.kafka.clients import (
    CONSUMER_WAITS,
    MissingTopicWarning,
    java_client_settings,
    require_brokers,
    subscription,
)
from barnabas.cli.kafka.command import kafka_command
from barnabas.cli.kafka.options import FlatParser, int32, int64
from barnabas.cli.kafka.output import print_metrics
from barnabas.cli.operations.perf import MEBIBYTE, ConsumeStats, measure_consume
from barnabas.cli.operations.settings import JAVA_CONSUMER_DEFAULTS

HEADER = (
    "data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec, rebalance.time.ms, "
    "fetch.time.ms, fetch.MB.sec, fetch.nMsg.sec"
)

_RENAMED = {"messages": "num-records", "consumer.config": "command-config"}


@kafka_command
def main(arguments: Sequence[str]) -> int:
    parser = _build_parser()
    args = parser.parse(arguments)
    parser.require_options(args, "bootstrap-server")
    for one, other in ("messages", "num-records"), ("topic", "include"):
        if parser.only_one_of(args, one, other) is None:
            parser.usage_error(
                f"Exactly one of the following arguments is required: [{one}], [{other}]"
            )
    for old, new in _RENAMED.items():
        if (value := getattr(args, old.replace(".", "_"))) is not None:
            print(f"Warning: --{old} is deprecated. Use --{new} instead.")
            setattr(args, new.replace("-", "_"), value)
    return _run(args)


def _run(args: Namespace) -> int:
    from barnabas import Consumer

    def report(stats: ConsumeStats, before: ConsumeStats) -> None:
        if args.show_detailed_stats:
            cells = _cells(stats, stats.since(before))
            print(", ".join([_stamp(stats.ended_s), "0", *cells]), flush=True)

    consumer = Consumer(_settings(args))
    try:
        require_brokers(consumer)
        MissingTopicWarning(consumer, args.topic, CONSUMER_WAITS)()
        if not args.hide_header:
            first = "time, threadId" if args.show_detailed_stats else "start.time, end.time"
            print(f"{first}, {HEADER}", flush=True)
        stats = measure_consume(
            consumer,
            subscription(args.topic, args.include),
            args.num_records,
            timeout_ms=args.timeout,
            interval_ms=args.reporting_interval,
            report=report,
        )
        if stats.has_timed_out:
            print(
                "WARNING: Exiting before consuming the expected number of records: timeout"
                f" ({args.timeout} ms) exceeded. You can use the --timeout option to increase"
                " the timeout."
            )
        if not args.show_detailed_stats:
            stamps = [_stamp(stats.started_s), _stamp(stats.ended_s)]
            print(", ".join([*stamps, *_cells(stats, stats)]))
        if args.print_metrics:
            print_metrics(consumer.metrics())
    finally:
        consumer.close()
    return 0


def _cells(whole: ConsumeStats, part: ConsumeStats) -> list[str]:
    """Returns the totals of `whole` and the rates of `part`."""
    mebibytes = part.size_bytes / MEBIBYTE
    return [
        f"{whole.size_bytes / MEBIBYTE:.4f}",
        f"{mebibytes / part.seconds:.4f}",
        f"{whole.records}",
        f"{part.records / part.seconds:.4f}",
        f"{part.rebalance_ms:.0f}",
        f"{part.fetch_s * 1000:.0f}",
        f"{mebibytes / part.fetch_s:.4f}",
        f"{part.records / part.fetch_s:.4f}",
    ]


def _build_parser() -> FlatParser:
    parser = FlatParser(
        "kafka-consumer-perf-test", "This tool is used to verify consumer performance."
    )
    parser.add_value("--bootstrap-server", "host:port,...", "REQUIRED: The brokers to connect to.")
    parser.add_value("--topic", "topic", "The topic to consume from.")
    parser.add_value("--include", "regex", "Consume from all topics that match.")
    parser.add_value("--num-records", "count", "REQUIRED: How many records to consume.", type=int64)
    parser.add_value("--messages", "count", "(DEPRECATED) The same.", type=int32)
    group = f"perf-consumer-{random.randrange(100_000)}"
    parser.add_value("--group", "gid", "The group to consume in.", default=group)
    parser.add_value("--command-config", "file", "A file of settings.", type=Path)
    parser.add_value("--consumer.config", "file", "(DEPRECATED) The same.", dest="consumer_config")
    pairs = "A consumer setting, which overrides the file; can be repeated."
    parser.add_value("--command-property", "name=value", pairs, action="append", default=[])
    parser.add_value(
        "--fetch-size", "bytes", "The maximum bytes to fetch of a partition.", default="1048576"
    )
    parser.add_value("--socket-buffer-size", "bytes", "The TCP receive buffer.", default="2097152")
    parser.add_flag("--from-latest", "Start at the latest offset if none is committed.")
    timeout = "The maximum time between records before exiting."
    parser.add_value("--timeout", "ms", timeout, type=int64, default=10_000)
    parser.add_flag("--show-detailed-stats", "Print a line every reporting interval.")
    parser.add_value(
        "--reporting-interval", "ms", "The interval of those lines.", type=int64, default=5000
    )
    parser.add_flag("--hide-header", "Do not print the header line.")
    parser.add_flag("--print-metrics", "Print the consumer's metrics at the end.")
    parser.add_value("--date-format", "format", "Ignored.")
    return parser


def _settings(args: Namespace) -> dict[str, Any]:
    defaults = {**JAVA_CONSUMER_DEFAULTS, "client.id": "perf-consumer-client"}
    own = {
        "bootstrap.servers": args.bootstrap_server,
        "group.id": args.group,
        "receive.buffer.bytes": args.socket_buffer_size,
        "max.partition.fetch.bytes": args.fetch_size,
        "auto.offset.reset": "latest" if args.from_latest else "earliest",
        "check.crcs": "false",
    }
    pairs = java_client_settings(args.command_config, args.command_property, defaults)
    return pairs | own


def _stamp(seconds: float) -> str:
    moment = datetime.fromtimestamp(seconds)
    return f"{moment:%Y-%m-%d %H:%M:%S}:{moment.microsecond // 1000:03}"
