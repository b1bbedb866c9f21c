"""kafka-consumer-perf-test: consume a number of records, and print how fast it went."""

import random
from argparse import Namespace
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from barnabas.cli.kafka.clients import client_settings, reach
from barnabas.cli.kafka.errors import reasons_to_stderr
from barnabas.cli.kafka.options import Flat
from barnabas.cli.kafka.output import print_metrics
from barnabas.cli.operations.consume_perf import MEBIBYTE, Intake, take_in
from barnabas.cli.operations.settings import JAVA_CONSUMER
from barnabas.cli.signals import until_stopped

HEADER = (
    "data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec, rebalance.time.ms, "
    "fetch.time.ms, fetch.MB.sec, fetch.nMsg.sec"
)

_RENAMED = {"messages": "num-records", "consumer.config": "command-config"}


def main(arguments: Sequence[str] | None = None) -> int:
    options = _options()
    chosen = options.parse(arguments)
    options.require(chosen, "bootstrap-server")
    for one, other in ("messages", "num-records"), ("topic", "include"):
        if options.one_of(chosen, one, other) is None:
            options.refuse(
                f"Exactly one of the following arguments is required: [{one}], [{other}]"
            )
    for old, new in _RENAMED.items():
        if (value := getattr(chosen, old.replace(".", "_"))) is not None:
            print(f"Warning: --{old} is deprecated. Use --{new} instead.")
            setattr(chosen, new.replace("-", "_"), value)
    with reasons_to_stderr(), until_stopped():
        return _run(chosen)


def _run(chosen: Namespace) -> int:
    from barnabas import Consumer

    def report(intake: Intake, before: Intake) -> None:
        if chosen.show_detailed_stats:
            cells = _cells(intake, intake.since(before))
            print(", ".join([_stamp(intake.ended_s), "0", *cells]), flush=True)

    consumer = Consumer(_settings(chosen))
    try:
        reach(consumer)
        if not chosen.hide_header:
            first = "time, threadId" if chosen.show_detailed_stats else "start.time, end.time"
            print(f"{first}, {HEADER}", flush=True)
        intake = take_in(
            consumer,
            f"^{chosen.include.lstrip('^')}" if chosen.include else chosen.topic,
            chosen.num_records,
            timeout_ms=chosen.timeout,
            interval_ms=chosen.reporting_interval,
            report=report,
        )
        if intake.is_late:
            print(
                "WARNING: Exiting before consuming the expected number of records: timeout"
                f" ({chosen.timeout} ms) exceeded. You can use the --timeout option to increase"
                " the timeout."
            )
        if not chosen.show_detailed_stats:
            stamps = [_stamp(intake.began_s), _stamp(intake.ended_s)]
            print(", ".join([*stamps, *_cells(intake, intake)]))
        if chosen.print_metrics:
            print_metrics(consumer.metrics())
    finally:
        consumer.close()
    return 0


def _cells(whole: Intake, part: Intake) -> list[str]:
    """How much there is of the whole, and how fast the part was."""
    mebibytes = part.size_bytes / MEBIBYTE
    return [
        f"{whole.size_bytes / MEBIBYTE:.4f}",
        f"{mebibytes / part.seconds:.4f}",
        f"{whole.records}",
        f"{part.records / part.seconds:.4f}",
        f"{part.joining_ms:.0f}",
        f"{part.fetching_s * 1000:.0f}",
        f"{mebibytes / part.fetching_s:.4f}",
        f"{part.records / part.fetching_s:.4f}",
    ]


def _options() -> Flat:
    options = Flat("kafka-consumer-perf-test", "This tool is used to verify consumer performance.")
    options.value("--bootstrap-server", "host:port,...", "REQUIRED: The brokers to connect to.")
    options.value("--topic", "topic", "The topic to consume from.")
    options.value("--include", "regex", "Consume from all topics that match.")
    options.value("--num-records", "count", "REQUIRED: How many records to consume.", type=int)
    options.value("--messages", "count", "(DEPRECATED) The same.", type=int)
    group = f"perf-consumer-{random.randrange(100_000)}"
    options.value("--group", "gid", "The group to consume in.", default=group)
    options.value("--command-config", "file", "A file of settings.", type=Path)
    options.value("--consumer.config", "file", "(DEPRECATED) The same.", dest="consumer_config")
    pairs = "A setting over those of the file; may be given many times."
    options.value("--command-property", "name=value", pairs, action="append", default=[])
    options.value("--fetch-size", "bytes", "The most to fetch of a partition.", default="1048576")
    options.value("--socket-buffer-size", "bytes", "What TCP may buffer.", default="2097152")
    options.flag("--from-latest", "Start at the end where no offset is committed.")
    timeout = "The most ms between records before it gives up."
    options.value("--timeout", "ms", timeout, type=int, default=10_000)
    options.flag("--show-detailed-stats", "Print a line every reporting interval.")
    options.value("--reporting-interval", "ms", "Between those lines.", type=int, default=5000)
    options.flag("--hide-header", "Leave out the header line.")
    options.flag("--print-metrics", "Print the consumer's metrics at the end.")
    options.value("--date-format", "format", "Accepted, and of no effect.")
    return options


def _settings(chosen: Namespace) -> dict[str, Any]:
    defaults = {**JAVA_CONSUMER, "client.id": "perf-consumer-client"}
    own = {
        "bootstrap.servers": chosen.bootstrap_server,
        "group.id": chosen.group,
        "receive.buffer.bytes": chosen.socket_buffer_size,
        "max.partition.fetch.bytes": chosen.fetch_size,
        "auto.offset.reset": "latest" if chosen.from_latest else "earliest",
        "check.crcs": "false",
    }
    pairs = client_settings(chosen.command_config, chosen.command_property, defaults)
    return pairs | own


def _stamp(seconds: float) -> str:
    moment = datetime.fromtimestamp(seconds)
    return f"{moment:%Y-%m-%d %H:%M:%S}:{moment.microsecond // 1000:03}"
