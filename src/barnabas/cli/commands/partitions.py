"""Subcommands about partitions: `offsets`, `records`, `leaders` and `log-dirs`."""

import click

from barnabas.cli.display import Display
from barnabas.cli.operations.connection import Connection
from barnabas.cli.operations.errors import raise_for_errors
from barnabas.cli.options import INT32, INT64, CommandGroup, admin_command, confirm, yes_option


@click.command("offsets")
@click.argument("topics", nargs=-1)
@click.option(
    "--at", "timestamp_ms", type=INT64, help="The first offset at or after this timestamp in ms."
)
@admin_command
def offsets(
    connection: Connection, display: Display, topics: tuple[str, ...], timestamp_ms: int | None
) -> None:
    """Show the earliest and latest offsets of partitions. Default: of all topics.

    \b
      barnabas offsets orders
      barnabas offsets orders --at 1763287800000
    """
    from barnabas.cli.operations.partitions import list_offsets, list_partitions
    from barnabas.cli.operations.topics import require_topics, topic_names
    from barnabas.client.admin import AioAdminClient
    from barnabas.client.admin.offsets import OffsetSpec

    async def collect(admin: AioAdminClient) -> list[tuple[object, ...]]:
        await require_topics(admin, topics)
        names = topics or await topic_names(admin, internal=False)
        partitions = await list_partitions(admin, names)
        if timestamp_ms is not None:
            at = await list_offsets(admin, partitions, OffsetSpec.for_timestamp(timestamp_ms))
            return [
                (*partition, at[partition] if at[partition] >= 0 else None)
                for partition in partitions
            ]
        first = await list_offsets(admin, partitions, OffsetSpec.earliest())
        end = await list_offsets(admin, partitions, OffsetSpec.latest())
        return [
            (*partition, first[partition], end[partition], end[partition] - first[partition])
            for partition in partitions
        ]

    head = ["OFFSET"] if timestamp_ms is not None else ["EARLIEST", "LATEST", "COUNT"]
    display.print_table(["TOPIC", "PARTITION", *head], connection.run(collect))


@click.group("records", cls=CommandGroup)
def records() -> None:
    """Delete records."""


@records.command("delete")
@click.argument("targets", nargs=-1, required=True, metavar="TOPIC:PARTITION:OFFSET...")
@yes_option
@admin_command
def delete(connection: Connection, display: Display, targets: tuple[str, ...], yes: bool) -> None:
    """Delete the records of partitions before an offset; `end` deletes all records.

    \b
      barnabas records delete orders:0:1000
      barnabas records delete orders:0:end orders:1:end --yes
    """
    from barnabas.cli.operations.partitions import delete_records

    offsets = dict(map(_parse_offset, targets))
    parts = [
        f"all of {topic}-{index}" if offset < 0 else f"those of {topic}-{index} before {offset}"
        for (topic, index), offset in offsets.items()
    ]
    confirm(f"Delete records: {', '.join(parts)}?", yes=yes)
    deleted, errors = connection.run(lambda admin: delete_records(admin, offsets))
    display.print_table(
        ["TOPIC", "PARTITION", "LOW WATERMARK"],
        [(*partition, first) for partition, first in deleted.items()],
    )
    raise_for_errors(errors)


def _parse_offset(text: str) -> tuple[tuple[str, int], int]:
    topic, _, rest = text.partition(":")
    partition, _, offset = rest.partition(":")
    if not topic or not partition.isdecimal() or not (offset.isdecimal() or offset == "end"):
        raise click.BadParameter(f"{text!r} is not TOPIC:PARTITION:OFFSET")
    return (topic, int(partition)), -1 if offset == "end" else int(offset)


@click.group("leaders", cls=CommandGroup)
def leaders() -> None:
    """Elect leaders of partitions."""


@leaders.command("elect")
@click.argument("partitions", nargs=-1, metavar="[TOPIC:PARTITION]...")
@click.option(
    "--unclean",
    is_flag=True,
    help="Elect a replica that is not in sync if no other is alive: records may be lost.",
)
@yes_option
@admin_command
def elect(
    connection: Connection,
    display: Display,
    partitions: tuple[str, ...],
    unclean: bool,
    yes: bool,
) -> None:
    """Elect the preferred replicas as leaders. Default: of all partitions.

    \b
      barnabas leaders elect
      barnabas leaders elect orders:0 --unclean
    """
    from barnabas.cli.operations.partitions import elect_leaders
    from barnabas.client.admin.model import ElectionType

    kind = ElectionType.UNCLEAN if unclean else ElectionType.PREFERRED
    topic_partitions = [_parse_partition(partition) for partition in partitions] or None
    if unclean:
        where = ", ".join(partitions) or "all partitions"
        confirm(f"Elect leaders that may lose records, of {where}?", yes=yes)
    outcome = connection.run(lambda admin: elect_leaders(admin, kind, topic_partitions))
    rows = [(f"{topic}-{index}", "elected") for topic, index in outcome.elected]
    rows += [(f"{topic}-{index}", "not needed") for topic, index in outcome.not_needed]
    display.print_table(["PARTITION", "RESULT"], rows)
    raise_for_errors(outcome.errors)


def _parse_partition(text: str) -> tuple[str, int]:
    topic, _, partition = text.rpartition(":")
    if not topic or not partition.isdecimal():
        raise click.BadParameter(f"{text!r} is not TOPIC:PARTITION")
    return topic, int(partition)


@click.command("log-dirs")
@click.option("--broker", "brokers", type=INT32, multiple=True, help="Only these brokers.")
@click.option("--topic", "topics", multiple=True, help="Only these topics, by partition.")
@admin_command
def log_dirs(
    connection: Connection, display: Display, brokers: tuple[int, ...], topics: tuple[str, ...]
) -> None:
    """Show the log directories of brokers, or with --topic the replicas of topics in them.

    \b
      barnabas log-dirs
      barnabas log-dirs --broker 1 --topic orders
    """
    from barnabas.cli.operations.cluster import describe_log_dirs, live_broker_ids
    from barnabas.client.admin import AioAdminClient
    from barnabas.client.admin.log_dirs import LogDirDescription

    async def collect(admin: AioAdminClient) -> dict[int, dict[str, LogDirDescription]]:
        return await describe_log_dirs(admin, brokers or await live_broker_ids(admin))

    by_broker = connection.run(collect)
    located = [
        (broker, path, log_dir)
        for broker, of_broker in by_broker.items()
        for path, log_dir in of_broker.items()
    ]
    if topics:
        rows = [
            (
                broker,
                path,
                f"{partition.topic}-{partition.partition}",
                replica.size,
                replica.offset_lag,
            )
            for broker, path, directory in located
            for partition, replica in sorted(directory.replica_infos.items())
            if partition.topic in topics
        ]
        display.print_table(["BROKER", "LOG DIR", "PARTITION", "BYTES", "OFFSET LAG"], rows)
        return
    display.print_table(
        ["BROKER", "LOG DIR", "REPLICAS", "BYTES", "FREE BYTES", "STATE"],
        [
            (
                broker,
                path,
                len(log_dir.replica_infos),
                sum(replica.size for replica in log_dir.replica_infos.values()),
                log_dir.usable_bytes if log_dir.usable_bytes >= 0 else None,
                "online" if log_dir.error is None else log_dir.error.str(),
            )
            for broker, path, log_dir in located
        ],
    )
