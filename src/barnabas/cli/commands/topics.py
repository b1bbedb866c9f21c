"""`barnabas topics`: create, list, describe, grow and delete topics."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from barnabas.cli.display import Display
from barnabas.cli.operations.connection import Connection
from barnabas.cli.options import (
    POSITIVE_INT32,
    CommandGroup,
    admin_command,
    confirm,
    parse_pair_options,
    parse_regex,
    yes_option,
)

if TYPE_CHECKING:
    from barnabas.cli.operations.topics import Compaction, PartitionDetails


@click.group("topics", cls=CommandGroup)
def command() -> None:
    """Create, list, describe, grow and delete topics."""


@command.command("list")
@click.argument("pattern", required=False)
@click.option("--no-internal", is_flag=True, help="Exclude internal topics.")
@admin_command
def list_(connection: Connection, display: Display, pattern: str | None, no_internal: bool) -> None:
    """List topics, or those that fully match the regular expression PATTERN.

    \b
      barnabas topics list
      barnabas topics list 'orders.*'
    """
    from barnabas.cli.operations.topics import describe_topics, topic_names
    from barnabas.client.admin import AioAdminClient

    regex = parse_regex(pattern)

    async def collect(admin: AioAdminClient) -> list[tuple[object, ...]]:
        names = await topic_names(admin, regex, internal=not no_internal)
        return [
            (
                topic.name,
                len(topic.partitions),
                topic.partitions[0].replication_factor,
                sum(partition.is_under_replicated for partition in topic.partitions),
                sum(partition.is_offline for partition in topic.partitions),
            )
            for topic in await describe_topics(admin, names)
        ]

    head = ["TOPIC", "PARTITIONS", "REPLICATION FACTOR", "UNDER-REPLICATED", "OFFLINE"]
    display.print_table(head, connection.run(collect))


@command.command("create")
@click.argument("name")
@click.option(
    "--partitions",
    "-p",
    type=POSITIVE_INT32,
    help="Number of partitions.  [default: num.partitions]",
)
@click.option(
    "--replication-factor",
    "--copies",
    "-r",
    type=click.IntRange(1, 32767),
    help="Replication factor.  [default: default.replication.factor]",
)
@click.option("--assign", metavar="ID:ID,...", help="The replicas of each partition.")
@click.option(
    "--config", "-c", "configs", metavar="KEY=VALUE", multiple=True, help="A topic config."
)
@click.option("--dry-run", is_flag=True, help="Validate only.")
@admin_command
def create(
    connection: Connection,
    display: Display,
    name: str,
    partitions: int | None,
    replication_factor: int | None,
    assign: str | None,
    configs: tuple[str, ...],
    dry_run: bool,
) -> None:
    """Create a topic.

    \b
      barnabas topics create orders --partitions 12
      barnabas topics create users -p 3 -c cleanup.policy=compact
    """
    from barnabas.cli.operations.topics import TopicSpec, create_topic, parse_assignment

    assignment = parse_assignment(assign) if assign else ()
    spec = TopicSpec(name, partitions, replication_factor, assignment, parse_pair_options(configs))
    connection.run(lambda admin: create_topic(admin, spec, dry_run=dry_run))
    done = "can be created" if dry_run else "is created"
    display.print_result(f"{name} {done}.", topic=name, created=not dry_run)


@command.command("describe")
@click.argument("names", nargs=-1)
@click.option(
    "--troubled", is_flag=True, help="Only partitions that are offline or under-replicated."
)
@admin_command
def describe(
    connection: Connection, display: Display, names: tuple[str, ...], troubled: bool
) -> None:
    """Show the partitions of topics. Default: of all topics.

    For compacted topics, also shows how much of the leader's log is not
    compacted yet, and when it was last cleaned.

    \b
      barnabas topics describe orders
      barnabas topics describe --troubled
    """
    from barnabas.cli.operations.topics import (
        Compaction,
        TopicDetails,
        describe_compaction,
        describe_topics,
        require_topics,
        topic_names,
    )
    from barnabas.client.admin import AioAdminClient

    async def collect(admin: AioAdminClient) -> tuple[list[TopicDetails], Compaction]:
        await require_topics(admin, names)
        topics = await describe_topics(admin, names or await topic_names(admin))
        return topics, await describe_compaction(admin, topics)

    topics, compaction = connection.run(collect)
    partitions = [
        partition
        for topic in topics
        for partition in topic.partitions
        if not troubled or partition.is_offline or partition.is_under_replicated
    ]
    head = ["TOPIC", "PARTITION", "LEADER", "REPLICAS", "IN SYNC", *_compaction_head(compaction)]
    rows = [
        (
            partition.topic,
            partition.state.id,
            None if partition.state.leader is None else partition.state.leader.id,
            ",".join(str(node.id) for node in partition.state.replicas),
            ",".join(str(node.id) for node in partition.state.isr),
            *_compaction_cells(compaction, partition),
        )
        for partition in partitions
    ]
    display.print_table(head, rows)


def _compaction_head(compaction: "Compaction") -> list[str]:
    """Returns the columns for what the leaders report: none for other brokers than ours."""
    if not compaction:
        return []
    is_uncleanable = any(replica.uncleanable_reason for replica in compaction.values())
    return ["DIRTY RATIO", "LAST CLEANED", *(["UNCLEANABLE"] if is_uncleanable else [])]


def _compaction_cells(compaction: "Compaction", partition: "PartitionDetails") -> Sequence[object]:
    from datetime import UTC, datetime

    width = len(_compaction_head(compaction))
    replica = compaction.get((partition.topic, partition.state.id))
    if replica is None:
        return [None] * width
    ratio, cleaned_ms = replica.dirty_ratio, replica.last_cleaned
    cleaned = None if cleaned_ms is None else datetime.fromtimestamp(cleaned_ms // 1000, UTC)
    return [
        None if ratio is None else round(ratio, 2),
        None if cleaned is None else f"{cleaned:%Y-%m-%dT%H:%M:%SZ}",
        replica.uncleanable_reason,
    ][:width]


@command.command("grow")
@click.argument("name")
@click.argument("total", type=POSITIVE_INT32)
@admin_command
def grow(connection: Connection, display: Display, name: str, total: int) -> None:
    """Increase the number of partitions of a topic to TOTAL.

    Records with the same key may go to another partition afterwards.

    \b
      barnabas topics grow orders 24
    """
    from barnabas.cli.operations.topics import add_partitions

    connection.run(lambda admin: add_partitions(admin, [name], total))
    display.print_result(f"{name} has {total} partitions.", topic=name, partitions=total)


@command.command("delete")
@click.argument("names", nargs=-1, required=True)
@yes_option
@admin_command
def delete(connection: Connection, display: Display, names: tuple[str, ...], yes: bool) -> None:
    """Delete topics and all their records.

    \b
      barnabas topics delete orders users
    """
    from barnabas.cli.operations.topics import delete_topics

    confirm(f"Delete {', '.join(names)} with all records?", yes=yes)
    connection.run(lambda admin: delete_topics(admin, names))
    display.print_result(f"{', '.join(names)} deleted.", deleted=names)
