"""kafka-get-offsets: the offsets of partitions at a time, or at the ends of their logs."""

import re
import sys
from argparse import Namespace
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from barnabas.cli.kafka.errors import reasons
from barnabas.cli.kafka.options import Flat, connect
from barnabas.cli.operations.errors import Refused

if TYPE_CHECKING:
    from barnabas.client.admin import AioAdminClient
    from barnabas.client.values import TopicPartitionTuple

TIMES = {
    "latest": -1,
    "earliest": -2,
    "max-timestamp": -3,
    "earliest-local": -4,
    "latest-tiered": -5,
    "earliest-pending-upload": -6,
}
_PATTERN = re.compile(r"([^:,]*)(?::(?:([0-9]*)|(?:([0-9]*)-([0-9]*))))?")


def main(arguments: Sequence[str] | None = None) -> int:
    options = _options()
    chosen = options.parse(arguments)
    options.require(chosen, "bootstrap-server")
    if chosen.topic_partitions and (chosen.topic or chosen.partitions):
        options.refuse("--topic-partitions cannot be used with --topic or --partitions")
    with reasons(lambda why: print(f"Error occurred: {why}", file=sys.stderr)):
        connect(chosen).ask(lambda admin: _print_offsets(admin, chosen))
    return 0


def _options() -> Flat:
    options = Flat("kafka-get-offsets", "An interactive shell for getting topic-partition offsets.")
    options.connection()
    options.value("--topic", "topic", "The topic, or a regular expression. (default: all)")
    options.value("--partitions", "0,1,...", "Its partitions. (default: all)")
    options.value(
        "--topic-partitions",
        "topic1:1,topic2:0-3,topic3",
        "Patterns of topics with partitions: a number, or a range without its end.",
    )
    options.value(
        "--time",
        "timestamp",
        f"In milliseconds, or one of {', '.join(TIMES)}. (default: latest)",
        default="latest",
    )
    options.flag("--exclude-internal-topics", "Leave out internal topics.")
    return options


async def _print_offsets(admin: "AioAdminClient", chosen: Namespace) -> None:
    from barnabas.cli.kafka.errors import java_message
    from barnabas.cli.operations.partitions import partitions_of, try_offsets_at
    from barnabas.cli.operations.topics import topic_names
    from barnabas.client.admin.offsets import OffsetSpec

    spec = OffsetSpec(_time(chosen.time))
    is_meant = _filter(chosen)
    names = await topic_names(admin, internal=not chosen.exclude_internal_topics)
    meant = [each for each in await partitions_of(admin, names) if is_meant(*each)]
    if not meant:
        raise Refused("Could not match any topic-partitions with the specified filters")
    offsets, failures = await try_offsets_at(admin, meant, spec)
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
        raise Refused(
            f"Malformed time argument {text}. Please use {names}, or a specified long format "
            "timestamp"
        ) from None


def _filter(chosen: Namespace) -> Callable[[str, int], bool]:
    from barnabas.cli.operations.topics import java_list_of_patterns

    if chosen.topic_partitions:
        filters = [_pattern(each) for each in chosen.topic_partitions.split(",")]
        return lambda topic, index: any(each(topic, index) for each in filters)
    name = re.compile(java_list_of_patterns(chosen.topic) if chosen.topic else ".*")
    try:
        indexes = [int(each) for each in (chosen.partitions or "").split(",") if each.strip()]
    except ValueError:
        raise Refused(f"--partitions expects numbers, not {chosen.partitions}") from None
    return lambda topic, index: bool(name.fullmatch(topic) and (not indexes or index in indexes))


def _pattern(text: str) -> Callable[[str, int], bool]:
    match = _PATTERN.fullmatch(text)
    if match is None:
        raise Refused(f"Invalid rule specification: {text}")
    topic, one, lower, upper = match.groups()
    name = re.compile(topic or ".*")

    def is_meant(topic: str, index: int) -> bool:
        if not name.fullmatch(topic):
            return False
        if one:
            return index == int(one)
        return int(lower or 0) <= index and (not upper or index < int(upper))

    return is_meant


def _text(partition: "TopicPartitionTuple") -> str:
    return f"{partition[0]}-{partition[1]}"
