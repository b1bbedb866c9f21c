"""kafka-console-consumer: records of a topic as lines of standard output."""

import random
import re
import sys
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from barnabas.cli.kafka.clients import client_settings, tell_renamed
from barnabas.cli.kafka.errors import reasons_to_stderr
from barnabas.cli.kafka.options import Flat
from barnabas.cli.operations.console_clients import Late, Until, consume
from barnabas.cli.operations.errors import Refused
from barnabas.cli.operations.lines import Printing, deserializer
from barnabas.cli.operations.settings import JAVA_CONSUMER, given
from barnabas.cli.signals import until_stopped

if TYPE_CHECKING:
    from barnabas.cli.operations.formatters import InternalTopicFormatter

_ENDS = ("earliest", "latest")
_RENAMED = {
    "consumer-property": "command-property",
    "property": "formatter-property",
    "consumer.config": "command-config",
}


def main(arguments: Sequence[str] | None = None) -> int:
    options = _options()
    chosen = options.parse(arguments)
    if (chosen.topic is None) == (chosen.include is None):
        options.refuse("Exactly one of the following arguments is required: [topic], [include]")
    options.require(chosen, "bootstrap-server")
    _check_partition(options, chosen)
    tell_renamed(chosen, _RENAMED, options.refuse, "Option --{} is deprecated")
    with reasons_to_stderr(), until_stopped():
        return _run(chosen)


def _check_partition(options: Flat, chosen: Namespace) -> None:
    if chosen.partition is not None and chosen.topic is None:
        options.refuse("The topic is required when partition is specified.")
    if chosen.offset is not None and chosen.partition is None:
        options.refuse("The partition is required when offset is specified.")
    if chosen.from_beginning and chosen.offset is not None:
        options.refuse("Options from-beginning and offset cannot be specified together.")
    if chosen.group is not None and chosen.partition is not None:
        options.refuse("Options group and partition cannot be specified together.")
    if chosen.offset not in (None, *_ENDS) and not chosen.offset.isdigit():
        options.refuse(
            f"The provided offset value '{chosen.offset}' is incorrect. Valid values are"
            f" 'earliest', 'latest', or a non-negative long."
        )


def _run(chosen: Namespace) -> int:
    from barnabas import Consumer

    printing = _printing(chosen)
    consumer = Consumer(_settings(chosen))
    try:
        _begin(consumer, chosen)
        _print(consumer, chosen, printing)
    finally:
        consumer.close()
    return 0


def _print(consumer: Any, chosen: Namespace, printing: "Printing | InternalTopicFormatter") -> None:
    seen = 0
    sys.stdout.flush()
    out = sys.stdout.buffer
    try:
        for messages in consume(consumer, Until(chosen.max_messages, chosen.timeout_ms)):
            for message in messages:
                seen += _is_written(out, message, chosen, printing)
            out.flush()
    except Late:
        print(f"No record came within {chosen.timeout_ms} ms.", file=sys.stderr)
    finally:
        print(f"Processed a total of {seen} messages", file=sys.stderr)


def _is_written(
    out: BinaryIO, message: Any, chosen: Namespace, printing: "Printing | InternalTopicFormatter"
) -> bool:
    try:
        out.write(printing.line(message))
    except Refused as unreadable:
        if not chosen.skip_message_on_error:
            raise
        print(f"Error processing message, skipping this message: {unreadable}", file=sys.stderr)
        return False
    return True


def _begin(consumer: Any, chosen: Namespace) -> None:
    from barnabas import OFFSET_BEGINNING, OFFSET_END, TopicPartition

    if chosen.partition is None:
        consumer.subscribe([f"^{chosen.include.lstrip('^')}"] if chosen.include else [chosen.topic])
        return
    told = chosen.offset or ("earliest" if chosen.from_beginning else "latest")
    offset = {"earliest": OFFSET_BEGINNING, "latest": OFFSET_END}.get(told) or int(told)
    consumer.assign([TopicPartition(chosen.topic, chosen.partition, offset)])


def _options() -> Flat:
    options = Flat(
        "kafka-console-consumer",
        "This tool helps to read data from Kafka topics and outputs it to standard output.",
    )
    options.value("--bootstrap-server", "host:port,...", "REQUIRED: The brokers to connect to.")
    options.value("--topic", "topic", "The topic to consume from.")
    options.value("--include", "regex", "Consume from all topics that match.")
    options.value("--partition", "partition", "The partition to consume from.", type=int)
    offset = "Where to begin in it: a number, earliest, or latest (the default)."
    options.value("--offset", "offset", offset)
    options.value("--group", "id", "The group to consume in.")
    options.flag("--from-beginning", "Begin with the earliest record where no offset is committed.")
    options.value("--max-messages", "count", "How many to print before exiting.", type=int)
    options.value("--timeout-ms", "ms", "Exit when none has come for so long.", type=int)
    options.flag("--skip-message-on-error", "Skip what cannot be printed instead of halting.")
    options.value("--isolation-level", "level", "read_uncommitted (default) or read_committed.")
    options.value("--command-config", "file", "A file of settings.", type=Path)
    options.value("--consumer.config", "file", "(DEPRECATED) The same.", dest="consumer_config")
    pairs = "A setting over those of the file; may be given many times."
    options.value("--command-property", "name=value", pairs, action="append", default=[])
    old = "(DEPRECATED) The same."
    options.value("--consumer-property", "name=value", old, action="append", default=[])
    formatter = (
        "How records are printed: print.timestamp, print.key, print.offset, print.epoch,"
        " print.partition, print.headers, print.value, key.separator, line.separator,"
        " headers.separator, null.literal, key.deserializer, value.deserializer,"
        " header.deserializer."
    )
    options.value("--formatter-property", "name=value", formatter, action="append", default=[])
    options.value("--property", "name=value", old, action="append", default=[])
    options.value("--formatter-config", "file", "A file of such properties.", type=Path)
    classes = "DefaultMessageFormatter, NoOpMessageFormatter, or one for the cluster's own topics."
    options.value("--formatter", "class", classes)
    for part in "key", "value":
        options.value(f"--{part}-deserializer", "class", f"How {part}s are read.")
    options.flag("--enable-systest-events", "Accepted, and of no effect.")
    return options


def _settings(chosen: Namespace) -> dict[str, Any]:
    settings = client_settings(
        chosen.command_config or chosen.consumer_config,
        [*chosen.consumer_property, *chosen.command_property],
        {**JAVA_CONSUMER, "client.id": "console-consumer"},
    )
    settings["bootstrap.servers"] = chosen.bootstrap_server
    if chosen.isolation_level:
        settings["isolation.level"] = chosen.isolation_level
    if chosen.from_beginning:
        if settings.get("auto.offset.reset", "earliest") not in ("earliest", "smallest"):
            raise Refused(
                "Can't simultaneously specify --from-beginning and 'auto.offset.reset="
                f"{settings['auto.offset.reset']}', please remove one option"
            )
        settings["auto.offset.reset"] = "earliest"
    if chosen.group:
        if settings.get("group.id", chosen.group) != chosen.group:
            raise Refused(
                "The group ids provided in different places (directly using '--group', via"
                " '--consumer-property', or via '--consumer.config') do not match. Detected group"
                f" ids: '{chosen.group}', '{settings['group.id']}'"
            )
        settings["group.id"] = chosen.group
    elif "group.id" not in settings:
        settings["group.id"] = f"console-consumer-{random.randrange(100_000)}"
        settings.setdefault("enable.auto.commit", "false")
    return settings


def _printing(chosen: Namespace) -> "Printing | InternalTopicFormatter":
    formatter = re.split(r"[.$]", chosen.formatter or "DefaultMessageFormatter")[-1]
    if formatter == "NoOpMessageFormatter":
        return Printing(value=False, line_separator="")
    if formatter not in ("DefaultMessageFormatter", "LoggingMessageFormatter"):
        from barnabas.cli.operations.formatters import INTERNAL_TOPIC_FORMATTERS

        if formatter not in INTERNAL_TOPIC_FORMATTERS:
            known = "DefaultMessageFormatter", "NoOpMessageFormatter", *INTERNAL_TOPIC_FORMATTERS
            raise Refused(f"There is no formatter {formatter} here; there are {', '.join(known)}.")
        return INTERNAL_TOPIC_FORMATTERS[formatter]
    properties = given(chosen.formatter_config, [*chosen.property, *chosen.formatter_property])
    for part in "key", "value":
        if name := getattr(chosen, f"{part}_deserializer"):
            deserializer(name)
            properties[f"{part}.deserializer"] = name
    return Printing.of(properties)
