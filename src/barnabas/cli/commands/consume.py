"""`barnabas consume`: print the records of a topic."""

import sys
from collections.abc import Callable, Collection
from typing import Any

import click

from barnabas.cli.display import Display
from barnabas.cli.operations.errors import CommandError
from barnabas.cli.operations.formatters import DEFAULT_FORMAT
from barnabas.cli.options import PARTITION, Seconds, client_command, registry_option, require_topic

_ENDS = ("earliest", "latest")


def _check_offset(
    _context: click.Context, _parameter: click.Parameter, text: str | None
) -> str | None:
    if text is None or text in _ENDS or text.removeprefix("-").isdecimal():
        return text
    raise click.BadParameter(f"{text!r} is neither earliest, latest nor a number")


@click.command("consume")
@click.argument("topic")
@click.option("--count", "-n", type=click.IntRange(1), help="Stop after this many records.")
@click.option("--from-beginning", is_flag=True, help="The same as --offset earliest.")
@click.option(
    "--offset",
    "-o",
    metavar="WHERE",
    callback=_check_offset,
    help="Where to start: earliest, latest, an offset, or -N for the last N of each partition."
    "  [default: latest; earliest with --exit]",
)
@click.option("--partition", "-p", type=PARTITION, help="Read this partition only.")
@click.option("--exit", "-e", "stops_at_end", is_flag=True, help="Stop at the end of the topic.")
@click.option("--timeout", type=Seconds(), help="Stop after this many seconds without records.")
@click.option("--group", "-g", help="Join this consumer group and commit offsets.")
@click.option("--committed", is_flag=True, help="Read committed transactions only.")
@click.option(
    "--format",
    "-f",
    "layout",
    default=DEFAULT_FORMAT,
    show_default=True,
    help="%k key, %v value, %o offset, %p partition, %t topic, %T time in ms, %h headers,"
    " %K and %S sizes.",
)
@registry_option()
@client_command
def command(
    settings: dict[str, Any],
    display: Display,
    topic: str,
    count: int | None,
    from_beginning: bool,
    offset: str | None,
    partition: int | None,
    stops_at_end: bool,
    timeout: float | None,
    group: str | None,
    committed: bool,
    layout: str,
    registry: str | None,
    registry_config: str | None,
) -> None:
    """Print the records of TOPIC as they arrive.

    With --registry, keys and values that were written with a schema are printed as JSON.

    \b
      barnabas consume orders -n 10 --from-beginning
      barnabas consume orders -e -o -5 -f '%p/%o %k=%v\\n'
      barnabas consume orders -e --registry http://localhost:8081
    """
    from barnabas import Consumer
    from barnabas.cli.operations.console_clients import ConsumeTimeout, StopCondition, consume

    formatter = _formatter(None if display.as_json else layout, registry, registry_config)
    if from_beginning or (offset is None and stops_at_end):
        offset = "earliest"
    if group and (partition is not None or offset not in (None, *_ENDS)):
        raise click.UsageError(
            "--group assigns partitions and offsets itself: leave out --partition and --offset."
        )
    own = {
        "group.id": group or "barnabas-consume",
        "enable.auto.commit": group is not None,
        "auto.offset.reset": offset if offset in _ENDS else "latest",
        "isolation.level": "read_committed" if committed else "read_uncommitted",
        "enable.partition.eof": stops_at_end,
    }
    consumer = Consumer(own | settings)
    try:
        partitions = require_topic(consumer, topic)
        if group:
            consumer.subscribe([topic])
        else:
            _assign(
                consumer,
                topic,
                _select_partitions(topic, partitions, partition),
                offset or "latest",
            )
        until = StopCondition(count, None if timeout is None else int(timeout * 1000), stops_at_end)
        for messages in consume(consumer, until):
            sys.stdout.buffer.writelines(map(formatter, messages))
            sys.stdout.buffer.flush()
    except ConsumeTimeout:
        pass
    finally:
        consumer.close()


def _formatter(
    layout: str | None, registry: str | None, registry_config: str | None
) -> Callable[[Any], bytes]:
    from barnabas.cli.operations.formatters import (
        SchemaFormatter,
        format_as_json,
        format_string_formatter,
    )

    if registry:
        from barnabas.cli.operations.schema_records import RecordDecoder
        from barnabas.cli.operations.schemas import open_registry

        decoder = RecordDecoder(
            open_registry(registry, registry_config),
            lambda problem: click.echo(f"Note: {problem}.", err=True),
        )
        return SchemaFormatter(decoder, layout).line
    return format_as_json if layout is None else format_string_formatter(layout)


def _select_partitions(topic: str, partitions: Collection[int], one: int | None) -> Collection[int]:
    if one is not None and one not in partitions:
        raise CommandError(f"{topic} has no partition {one}; it has {len(partitions)}.")
    return partitions if one is None else [one]


def _assign(consumer: Any, topic: str, partitions: Collection[int], offset: str) -> None:
    """Assign partitions from an offset, without joining a group."""
    from barnabas import OFFSET_BEGINNING, OFFSET_END, TopicPartition

    topic_partitions = [TopicPartition(topic, partition) for partition in partitions]
    for topic_partition in topic_partitions:
        if offset in _ENDS:
            topic_partition.offset = OFFSET_BEGINNING if offset == "earliest" else OFFSET_END
        elif offset.startswith("-"):
            first, end = consumer.get_watermark_offsets(topic_partition)
            topic_partition.offset = max(first, end + int(offset))
        else:
            topic_partition.offset = int(offset)
    consumer.assign(topic_partitions)
