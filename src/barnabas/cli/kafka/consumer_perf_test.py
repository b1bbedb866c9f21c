"""kafka-consumer-perf-test: consume a number of records, and print how fast it went."""

import random
import time
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from barnabas.cli.kafka.clients import client_settings
from barnabas.cli.kafka.failing import reasons_to_stderr
from barnabas.cli.kafka.options import Flat
from barnabas.cli.kafka.stopping import until_stopped
from barnabas.cli.work.given import JAVA_CONSUMER

_MEBIBYTE = 1 << 20
_AT_ONCE = 10_000
HEADER = (
    "data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec, rebalance.time.ms, "
    "fetch.time.ms, fetch.MB.sec, fetch.nMsg.sec"
)

_RENAMED = {"messages": "num-records", "consumer.config": "command-config"}


@dataclass(slots=True)
class Consumed:
    """What came, and when the group was joined."""

    began_s: float = field(default_factory=time.time)
    ended_s: float = 0.0
    records: int = 0
    size_bytes: int = 0
    joining_ms: float = 0.0

    def cells(self, seconds: float, before: "Consumed | None" = None) -> list[str]:
        """From `before` on, which took so many seconds."""
        records = self.records - (before.records if before else 0)
        mebibytes = (self.size_bytes - (before.size_bytes if before else 0)) / _MEBIBYTE
        joining_ms = self.joining_ms - (before.joining_ms if before else 0)
        fetch_s = max(seconds - joining_ms / 1000, 0.001)
        seconds = max(seconds, 0.001)
        return [
            f"{self.size_bytes / _MEBIBYTE:.4f}",
            f"{mebibytes / seconds:.4f}",
            f"{self.records}",
            f"{records / seconds:.4f}",
            f"{joining_ms:.0f}",
            f"{fetch_s * 1000:.0f}",
            f"{mebibytes / fetch_s:.4f}",
            f"{records / fetch_s:.4f}",
        ]


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

    consumer = Consumer(_settings(chosen))
    if not chosen.hide_header:
        first = "time, threadId" if chosen.show_detailed_stats else "start.time, end.time"
        print(f"{first}, {HEADER}", flush=True)
    consumed = _consume(consumer, chosen)
    if not chosen.show_detailed_stats:
        seconds = consumed.ended_s - consumed.began_s
        stamps = [_stamp(consumed.began_s), _stamp(consumed.ended_s)]
        print(", ".join([*stamps, *consumed.cells(seconds)]))
    metrics = consumer.metrics() if chosen.print_metrics else {}
    consumer.close()
    for name, value in sorted(metrics.items()):
        print(f"{name} : {value:.3f}")
    return 0


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
    own = {
        "bootstrap.servers": chosen.bootstrap_server,
        "group.id": chosen.group,
        "receive.buffer.bytes": chosen.socket_buffer_size,
        "max.partition.fetch.bytes": chosen.fetch_size,
        "auto.offset.reset": "latest" if chosen.from_latest else "earliest",
        "check.crcs": "false",
    }
    pairs = client_settings(chosen.command_config, chosen.command_property, JAVA_CONSUMER)
    return pairs | own


def _consume(consumer: Any, chosen: Namespace) -> Consumed:
    consumed = Consumed()
    joining_s = time.time()

    def joined(*_: Any) -> None:
        consumed.joining_ms += (time.time() - joining_s) * 1000

    def left(*_: Any) -> None:
        nonlocal joining_s
        joining_s = time.time()

    topics = [f"^{chosen.include.lstrip('^')}"] if chosen.include else [chosen.topic]
    consumer.subscribe(topics, on_assign=joined, on_revoke=left)
    last_s = reported_s = consumed.began_s
    before = Consumed(consumed.began_s)
    while consumed.records < chosen.num_records:
        messages = consumer.consume(min(_AT_ONCE, chosen.num_records - consumed.records), 0.1)
        now_s = time.time()
        for message in messages:
            if message.error() is None:
                consumed.size_bytes += len(message.value() or b"") + len(message.key() or b"")
                consumed.records += 1
                last_s = now_s
        if (now_s - last_s) * 1000 > chosen.timeout:
            print(
                f"WARNING: Exiting before consuming the expected number of records: timeout"
                f" ({chosen.timeout} ms) exceeded. You can use the --timeout option to increase"
                f" the timeout."
            )
            break
        if chosen.show_detailed_stats and (now_s - reported_s) * 1000 >= chosen.reporting_interval:
            cells = consumed.cells(now_s - reported_s, before)
            print(", ".join([_stamp(now_s), "0", *cells]), flush=True)
            reported_s = now_s
            before = Consumed(
                now_s, 0.0, consumed.records, consumed.size_bytes, consumed.joining_ms
            )
    consumed.ended_s = time.time()
    return consumed


def _stamp(seconds: float) -> str:
    moment = datetime.fromtimestamp(seconds)
    return f"{moment:%Y-%m-%d %H:%M:%S}:{moment.microsecond // 1000:03}"
