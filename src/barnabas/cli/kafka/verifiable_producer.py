"""kafka-verifiable-producer: produce numbers, and print a line of JSON per acknowledgement."""

import time
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from barnabas.cli.kafka.clients import (
    BROKERS_MAY_CREATE,
    MissingTopicWarning,
    java_client_settings,
    warn_of_deprecated,
)
from barnabas.cli.kafka.command import kafka_command
from barnabas.cli.kafka.options import PlainParser, int32, int64
from barnabas.cli.kafka.output import emit
from barnabas.cli.operations.console_clients import close_producer
from barnabas.cli.operations.settings import JAVA_PRODUCER_DEFAULTS

PURPOSE = (
    "This tool produces increasing integers to the specified topic and prints JSON metadata to"
    " stdout on each send, making externally visible which messages have been acked and which"
    " have not."
)


@kafka_command
def main(arguments: Sequence[str]) -> int:
    parser = _build_parser()
    args = parser.parse(arguments)
    renamed = {"producer.config": "command-config"}
    warn_of_deprecated(args, renamed, parser.error, "Option --{} has been deprecated")
    return _run(args)


def _build_parser() -> PlainParser:
    parser = PlainParser("verifiable-producer", PURPOSE)
    option = parser.add_argument
    option("--topic", required=True, help="Produce messages to this topic.")
    servers = "The brokers to connect to."
    option("--bootstrap-server", required=True, metavar="HOST:PORT,...", help=servers)
    option("--max-messages", type=int32, default=-1, help="The number of messages; -1: no limit.")
    option(
        "--throughput", type=float, default=-1, help="Maximum messages per second; -1: no limit."
    )
    option("--acks", default="-1", help="Acknowledgements to wait for: 0, 1 or -1.")
    option("--message-create-time", type=int64, default=-1, help="The first timestamp, in ms.")
    option("--value-prefix", type=int32, help="A prefix of each value, followed by a dot.")
    option("--repeating-keys", type=int32, help="Repeat keys from 0 up to this number.")
    option("--command-config", type=Path, metavar="FILE", help="A file of settings.")
    option("--producer.config", dest="producer_config", metavar="FILE", help="The same.")
    return parser


class _Run:
    """Counts sent and acknowledged records."""

    def __init__(self, args: Namespace) -> None:
        self.args = args
        self.sent = 0
        self.acked = 0

    def on_delivery(self, error: Any, message: Any) -> None:
        key, value = _text(message.key()), _text(message.value())
        if error is None:
            self.acked += 1
            emit(
                "producer_send_success",
                key=key,
                value=value,
                offset=-1 if message.offset() is None else message.offset(),
                topic=message.topic(),
                partition=message.partition(),
            )
        else:
            emit(
                "producer_send_error",
                topic=message.topic(),
                key=key,
                value=value,
                exception=error.name(),
                message=error.str(),
            )

    def value(self) -> str:
        prefix = self.args.value_prefix
        return str(self.sent) if prefix is None else f"{prefix}.{self.sent}"

    def key(self) -> str | None:
        keys = self.args.repeating_keys
        return None if keys is None else str(self.sent % keys)

    def timestamp_ms(self, started_s: float) -> int:
        first_ms: int = self.args.message_create_time
        return 0 if first_ms < 0 else first_ms + int((time.monotonic() - started_s) * 1000)


def _run(args: Namespace) -> int:
    from barnabas import Producer

    producer = Producer(_settings(args))
    run = _Run(args)
    emit("startup_complete")
    started_s = time.monotonic()
    warn_if_missing = MissingTopicWarning(producer, args.topic, BROKERS_MAY_CREATE)
    try:
        while args.max_messages < 0 or run.sent < args.max_messages:
            _send(producer, run, started_s)
            warn_if_missing()
            if args.throughput > 0:
                due_s = started_s + run.sent / args.throughput
                while (remaining_s := due_s - time.monotonic()) > 0:
                    producer.poll(remaining_s)
            producer.poll(0)
        producer.flush()
    finally:
        close_producer(producer)
        emit("shutdown_complete")
        emit(
            "tool_data",
            sent=run.sent,
            acked=run.acked,
            target_throughput=int(args.throughput),
            avg_throughput=run.acked / max(time.monotonic() - started_s, 1e-9),
        )
    return 0


def _settings(args: Namespace) -> dict[str, Any]:
    own = {
        "bootstrap.servers": args.bootstrap_server,
        "acks": args.acks,
        "retries": "0",
        "enable.idempotence": "false",
    }
    file = args.command_config or args.producer_config
    return java_client_settings(file, [], {**JAVA_PRODUCER_DEFAULTS, **own})


def _send(producer: Any, run: _Run, started_s: float) -> None:
    while True:
        try:
            producer.produce(
                run.args.topic,
                run.value(),
                run.key(),
                timestamp=run.timestamp_ms(started_s),
                on_delivery=run.on_delivery,
            )
        except BufferError:
            producer.poll(0.1)
        else:
            run.sent += 1
            return


def _text(content: bytes | None) -> str | None:
    return None if content is None else content.decode()
