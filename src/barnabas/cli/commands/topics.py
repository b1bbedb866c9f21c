"""`barnabas topics`: create, list, describe, grow and delete topics."""

import click

from barnabas.cli.display import Display
from barnabas.cli.operations.connection import Connection
from barnabas.cli.options import admin_command, parse_pair_options


@click.group("topics")
def command() -> None:
    """Create, list, describe, grow and delete topics."""


@command.command("list")
@click.argument("pattern", required=False)
@click.option("--no-internal", is_flag=True, help="Exclude internal topics.")
@admin_command
def list_(connection: Connection, display: Display, pattern: str | None, no_internal: bool) -> None:
    """List topics, or those that fully match the regular expression PATTERN."""
    from barnabas.cli.operations.topics import describe_topics, topic_names
    from barnabas.client.admin import AioAdminClient

    async def collect(admin: AioAdminClient) -> list[tuple[object, ...]]:
        names = await topic_names(admin, pattern, internal=not no_internal)
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
    type=click.IntRange(1),
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
    """Create a topic."""
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
    """Show the partitions of topics. Default: of all topics."""
    from barnabas.cli.operations.topics import (
        TopicDetails,
        describe_topics,
        require_topics,
        topic_names,
    )
    from barnabas.client.admin import AioAdminClient

    async def collect(admin: AioAdminClient) -> list[TopicDetails]:
        await require_topics(admin, names)
        return await describe_topics(admin, names or await topic_names(admin))

    rows = [
        (
            partition.topic,
            partition.state.id,
            None if partition.state.leader is None else partition.state.leader.id,
            ",".join(str(node.id) for node in partition.state.replicas),
            ",".join(str(node.id) for node in partition.state.isr),
        )
        for topic in connection.run(collect)
        for partition in topic.partitions
        if not troubled or partition.is_offline or partition.is_under_replicated
    ]
    display.print_table(["TOPIC", "PARTITION", "LEADER", "REPLICAS", "IN SYNC"], rows)


@command.command("grow")
@click.argument("name")
@click.argument("total", type=click.IntRange(1))
@admin_command
def grow(connection: Connection, display: Display, name: str, total: int) -> None:
    """Increase the number of partitions of a topic to TOTAL.

    Records with the same key may go to another partition afterwards.
    """
    from barnabas.cli.operations.topics import add_partitions

    connection.run(lambda admin: add_partitions(admin, [name], total))
    display.print_result(f"{name} has {total} partitions.", topic=name, partitions=total)


@command.command("delete")
@click.argument("names", nargs=-1, required=True)
@click.option("--yes", "-y", is_flag=True, help="Do not ask for confirmation.")
@admin_command
def delete(connection: Connection, display: Display, names: tuple[str, ...], yes: bool) -> None:
    """Delete topics and all their records."""
    from barnabas.cli.operations.topics import delete_topics

    if not yes and not display.as_json:
        click.confirm(f"Delete {', '.join(names)} with all records?", abort=True)
    connection.run(lambda admin: delete_topics(admin, names))
    display.print_result(f"{', '.join(names)} deleted.", deleted=names)
