"""kafka-get-offsets: the offsets of partitions at a time, or the earliest and latest."""

import re
import sys
from argparse import Namespace
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from barnabas.cli.kafka.command import kafka_command
from barnabas.cli.kafka.options import FlatParser, connection_from
from barnabas.cli.kafka.output import exit_on_error
from barnabas.cli.operations.errors import CommandError, compile_regex, parse_list_regex

if TYPE_CHECKING:
    from barnabas.client.admin import AioAdminClient
    from barnabas.client.values import PartitionKey

TIMES = {
    "latest": -1,
    "earliest": -2,
    "max-timestamp": -3,
    "earliest-local": -4,
    "latest-tiered": -5,
    "earliest-pending-upload": -6,
}
_PATTERN = re.compile(r"([^:,]*)(?::(?:([0-9]*)|(?:([0-9]*)-([0-9]*))))?")


@kafka_command
def main(arguments: Sequence[str]) -> int:
    parser = _build_parser()
    args = parser.parse(arguments)
    parser.require_options(args, "bootstrap-server")
    if args.topic_partitions and (args.topic or args.partitions):
        parser.usage_error("--topic-partitions cannot be used with --topic or --partitions")
    with exit_on_error(lambda why: print(f"Error occurred: {why}", file=sys.stderr)):
        connection_from(args).run(lambda admin: _print_offsets(admin, args))
    return 0


def _build_parser() -> FlatParser:
    parser = FlatParser(
        "kafka-get-offsets", "An interactive shell for getting topic-partition offsets."
    )
    parser.add_connection_options()
    parser.add_value("--topic", "topic", "The topic, or a regular expression. (default: all)")
    parser.add_value("--partitions", "0,1,...", "Its partitions. (default: all)")
    parser.add_value(
        "--topic-partitions",
        "topic1:1,topic2:0-3,topic3",
        "Topics with partitions: a number, or a range with an exclusive end.",
    )
    parser.add_value(
        "--time",
        "timestamp",
        f"In milliseconds, or one of {', '.join(TIMES)}. (default: latest)",
        default="latest",
    )
    parser.add_flag("--exclude-internal-topics", "Exclude internal topics.")
    return parser


async def _print_offsets(admin: "AioAdminClient", args: Namespace) -> None:
    from barnabas.cli.kafka.output import java_message
    from barnabas.cli.operations.partitions import list_partitions, try_list_offsets
    from barnabas.cli.operations.topics import topic_names
    from barnabas.client.admin.offsets import OffsetSpec

    spec = OffsetSpec(_time(args.time))
    is_selected = _filter(args)
    names = await topic_names(admin, internal=not args.exclude_internal_topics)
    partitions = [
        partition for partition in await list_partitions(admin, names) if is_selected(*partition)
    ]
    if not partitions:
        raise CommandError("Could not match any topic-partitions with the specified filters")
    offsets, failures = await try_list_offsets(admin, partitions, spec)
    for topic, index in sorted(failures, key=_text):
        why = java_message(failures[topic, index])
        print(
            f"Skip getting offsets for topic-partition {topic}-{index} due to error: {why}",
            file=sys.stderr,
        )
    for topic, index in sorted(offsets, key=_text):
        if offsets[topic, index] >= 0:
            print(f"{topic}:{index}:{offsets[topic, index]}")


def _time(text: str) -> int:
    try:
        return TIMES[text] if text in TIMES else int(text)
    except ValueError:
        names = " / ".join(f"{number} or {name}" for name, number in TIMES.items())
        raise CommandError(
            f"Malformed time argument {text}. Please use {names}, or a specified long format "
            "timestamp"
        ) from None


def _filter(args: Namespace) -> Callable[[str, int], bool]:
    if args.topic_partitions:
        filters = [_pattern(pattern) for pattern in args.topic_partitions.split(",")]
        return lambda topic, index: any(matches(topic, index) for matches in filters)
    name = parse_list_regex(args.topic or ".*")
    assert name is not None
    try:
        indexes = [
            int(partition) for partition in (args.partitions or "").split(",") if partition.strip()
        ]
    except ValueError:
        raise CommandError(f"--partitions expects numbers, not {args.partitions}") from None
    return lambda topic, index: bool(name.fullmatch(topic) and (not indexes or index in indexes))


def _pattern(text: str) -> Callable[[str, int], bool]:
    match = _PATTERN.fullmatch(text)
    if match is None:
        raise CommandError(f"Invalid rule specification: {text}")
    topic, one, lower, upper = match.groups()
    name = compile_regex(topic or ".*")

    def is_selected(topic: str, index: int) -> bool:
        if not name.fullmatch(topic):
            return False
        if one:
            return index == int(one)
        return int(lower or 0) <= index and (not upper or index < int(upper))

    return is_selected


def _text(partition: "PartitionKey") -> str:
    return f"{partition[0]}-{partition[1]}"
