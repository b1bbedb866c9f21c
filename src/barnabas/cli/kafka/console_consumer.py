"""kafka-console-consumer: print the records of a topic as lines."""

import random
import re
import sys
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from barnabas.cli.kafka.clients import (
    CONSUMER_WAITS,
    MissingTopicWarning,
    java_client_settings,
    subscription,
    warn_of_deprecated,
)
from barnabas.cli.kafka.command import kafka_command
from barnabas.cli.kafka.options import FlatParser, int32
from barnabas.cli.operations.console_clients import ConsumeTimeout, StopCondition, consume
from barnabas.cli.operations.errors import CommandError
from barnabas.cli.operations.lines import LineFormatter, deserializer
from barnabas.cli.operations.settings import JAVA_CONSUMER_DEFAULTS, client_settings

if TYPE_CHECKING:
    from barnabas.cli.operations.formatters import InternalTopicFormatter

_ENDS = ("earliest", "latest")
_RENAMED = {
    "consumer-property": "command-property",
    "property": "formatter-property",
    "consumer.config": "command-config",
}


@kafka_command
def main(arguments: Sequence[str]) -> int:
    parser = _build_parser()
    args = parser.parse(arguments)
    if (args.topic is None) == (args.include is None):
        parser.usage_error("Exactly one of the following arguments is required: [topic], [include]")
    parser.require_options(args, "bootstrap-server")
    _check_partition(parser, args)
    warn_of_deprecated(args, _RENAMED, parser.usage_error, "Option --{} is deprecated")
    return _run(args)


def _check_partition(parser: FlatParser, args: Namespace) -> None:
    if args.partition is not None and args.topic is None:
        parser.usage_error("The topic is required when partition is specified.")
    if args.offset is not None and args.partition is None:
        parser.usage_error("The partition is required when offset is specified.")
    if args.from_beginning and args.offset is not None:
        parser.usage_error("Options from-beginning and offset cannot be specified together.")
    if args.group is not None and args.partition is not None:
        parser.usage_error("Options group and partition cannot be specified together.")
    if args.offset not in (None, *_ENDS) and not args.offset.isdigit():
        parser.usage_error(
            f"The provided offset value '{args.offset}' is incorrect. Valid values are"
            f" 'earliest', 'latest', or a non-negative long."
        )


def _run(args: Namespace) -> int:
    from barnabas import Consumer

    formatter = _make_formatter(args)
    consumer = Consumer(_settings(args))
    try:
        _start(consumer, args)
        _print(consumer, args, formatter)
    finally:
        consumer.close()
    return 0


def _print(
    consumer: Any, args: Namespace, formatter: "LineFormatter | InternalTopicFormatter"
) -> None:
    seen = 0
    sys.stdout.flush()
    out = sys.stdout.buffer
    until = StopCondition(args.max_messages, args.timeout_ms)
    warn_if_missing = MissingTopicWarning(consumer, args.topic, CONSUMER_WAITS)
    try:
        for messages in consume(consumer, until, warn_if_missing):
            for message in messages:
                seen += _write_message(out, message, args, formatter)
            out.flush()
    except ConsumeTimeout:
        print(f"No record came within {args.timeout_ms} ms.", file=sys.stderr)
    finally:
        print(f"Processed a total of {seen} messages", file=sys.stderr)


def _write_message(
    out: BinaryIO,
    message: Any,
    args: Namespace,
    formatter: "LineFormatter | InternalTopicFormatter",
) -> bool:
    try:
        out.write(formatter.line(message))
    except CommandError as unreadable:
        if not args.skip_message_on_error:
            raise
        print(f"Error processing message, skipping this message: {unreadable}", file=sys.stderr)
        return False
    return True


def _start(consumer: Any, args: Namespace) -> None:
    from barnabas import OFFSET_BEGINNING, OFFSET_END, TopicPartition

    if args.partition is None:
        consumer.subscribe([subscription(args.topic, args.include)])
        return
    start = args.offset or ("earliest" if args.from_beginning else "latest")
    offset = {"earliest": OFFSET_BEGINNING, "latest": OFFSET_END}.get(start) or int(start)
    consumer.assign([TopicPartition(args.topic, args.partition, offset)])


def _build_parser() -> FlatParser:
    parser = FlatParser(
        "kafka-console-consumer",
        "This tool helps to read data from Kafka topics and outputs it to standard output.",
    )
    parser.add_value("--bootstrap-server", "host:port,...", "REQUIRED: The brokers to connect to.")
    parser.add_value("--topic", "topic", "The topic to consume from.")
    parser.add_value("--include", "regex", "Consume from all topics that match.")
    parser.add_value("--partition", "partition", "The partition to consume from.", type=int32)
    offset = "The offset to start at: a number, earliest, or latest (the default)."
    parser.add_value("--offset", "offset", offset)
    parser.add_value("--group", "id", "The group to consume in.")
    parser.add_flag("--from-beginning", "Start at the earliest offset if none is committed.")
    parser.add_value(
        "--max-messages", "count", "The number of messages to print before exiting.", type=int32
    )
    parser.add_value("--timeout-ms", "ms", "Exit if no message arrives for this long.", type=int32)
    parser.add_flag(
        "--skip-message-on-error", "Skip a message that cannot be printed instead of exiting."
    )
    parser.add_value("--isolation-level", "level", "read_uncommitted (default) or read_committed.")
    parser.add_value("--command-config", "file", "A file of settings.", type=Path)
    parser.add_value("--consumer.config", "file", "(DEPRECATED) The same.", dest="consumer_config")
    pairs = "A consumer setting, which overrides the file; can be repeated."
    parser.add_value("--command-property", "name=value", pairs, action="append", default=[])
    old = "(DEPRECATED) The same."
    parser.add_value("--consumer-property", "name=value", old, action="append", default=[])
    formatter = (
        "How records are printed: print.timestamp, print.key, print.offset, print.epoch,"
        " print.partition, print.headers, print.value, key.separator, line.separator,"
        " headers.separator, null.literal, key.deserializer, value.deserializer,"
        " header.deserializer."
    )
    parser.add_value("--formatter-property", "name=value", formatter, action="append", default=[])
    parser.add_value("--property", "name=value", old, action="append", default=[])
    parser.add_value("--formatter-config", "file", "A file of such properties.", type=Path)
    classes = "DefaultMessageFormatter, NoOpMessageFormatter, or a formatter of an internal topic."
    parser.add_value("--formatter", "class", classes)
    for part in "key", "value":
        parser.add_value(f"--{part}-deserializer", "class", f"The deserializer of {part}s.")
    parser.add_flag("--enable-systest-events", "Ignored.")
    return parser


def _settings(args: Namespace) -> dict[str, Any]:
    settings = java_client_settings(
        args.command_config or args.consumer_config,
        [*args.consumer_property, *args.command_property],
        {**JAVA_CONSUMER_DEFAULTS, "client.id": "console-consumer"},
    )
    settings["bootstrap.servers"] = args.bootstrap_server
    if args.isolation_level:
        settings["isolation.level"] = args.isolation_level
    if args.from_beginning:
        if settings.get("auto.offset.reset", "earliest") not in ("earliest", "smallest"):
            raise CommandError(
                "Can't simultaneously specify --from-beginning and 'auto.offset.reset="
                f"{settings['auto.offset.reset']}', please remove one option"
            )
        settings["auto.offset.reset"] = "earliest"
    if args.group:
        if settings.get("group.id", args.group) != args.group:
            raise CommandError(
                "The group ids provided in different places (directly using '--group', via"
                " '--consumer-property', or via '--consumer.config') do not match. Detected group"
                f" ids: '{args.group}', '{settings['group.id']}'"
            )
        settings["group.id"] = args.group
    elif "group.id" not in settings:
        settings["group.id"] = f"console-consumer-{random.randrange(100_000)}"
        settings.setdefault("enable.auto.commit", "false")
    return settings


def _make_formatter(args: Namespace) -> "LineFormatter | InternalTopicFormatter":
    formatter = re.split(r"[.$]", args.formatter or "DefaultMessageFormatter")[-1]
    if formatter == "NoOpMessageFormatter":
        return LineFormatter(value=False, line_separator="")
    if formatter not in ("DefaultMessageFormatter", "LoggingMessageFormatter"):
        from barnabas.cli.operations.formatters import INTERNAL_TOPIC_FORMATTERS

        if formatter not in INTERNAL_TOPIC_FORMATTERS:
            names = "DefaultMessageFormatter", "NoOpMessageFormatter", *INTERNAL_TOPIC_FORMATTERS
            raise CommandError(
                f"There is no formatter {formatter} here; there are {', '.join(names)}."
            )
        return INTERNAL_TOPIC_FORMATTERS[formatter]
    properties = client_settings(args.formatter_config, [*args.property, *args.formatter_property])
    for part in "key", "value":
        if name := getattr(args, f"{part}_deserializer"):
            deserializer(name)
            properties[f"{part}.deserializer"] = name
    return LineFormatter.from_properties(properties)
