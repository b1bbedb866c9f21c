"""`barnabas topics`: make, list, describe, enlarge and remove topics."""

import click

from barnabas.cli.display import Display
from barnabas.cli.operations.connection import Connection
from barnabas.cli.options import asks, pairs


@click.group("topics")
def command() -> None:
    """Make, list, describe, enlarge and remove topics."""


@command.command("list")
@click.argument("pattern", required=False)
@click.option("--no-internal", is_flag=True, help="Leave out the cluster's own topics.")
@asks
def list_(connection: Connection, display: Display, pattern: str | None, no_internal: bool) -> None:
    """List the topics; with PATTERN those alone that match it as a whole."""
    from barnabas.cli.operations.topics import describe_topics, topic_names
    from barnabas.client.admin import AioAdminClient

    async def ask(admin: AioAdminClient) -> list[tuple[object, ...]]:
        names = await topic_names(admin, pattern, internal=not no_internal)
        return [
            (
                topic.name,
                len(topic.partitions),
                topic.partitions[0].replication_factor,
                sum(each.is_under_replicated for each in topic.partitions),
                sum(each.is_leaderless for each in topic.partitions),
            )
            for topic in await describe_topics(admin, names)
        ]

    head = ["TOPIC", "PARTITIONS", "COPIES", "UNDER-REPLICATED", "LEADERLESS"]
    display.table(head, connection.ask(ask))


@command.command("create")
@click.argument("name")
@click.option("--partitions", "-p", type=click.IntRange(1), help="How many.  [default: cluster's]")
@click.option(
    "--copies", "-r", type=click.IntRange(1, 32767), help="Of each.  [default: cluster's]"
)
@click.option("--assign", metavar="ID:ID,...", help="The brokers of each partition, by hand.")
@click.option("--config", "-c", "configs", metavar="KEY=VALUE", multiple=True, help="A setting.")
@click.option("--dry-run", is_flag=True, help="Only see whether it could be.")
@asks
def create(
    connection: Connection,
    display: Display,
    name: str,
    partitions: int | None,
    copies: int | None,
    assign: str | None,
    configs: tuple[str, ...],
    dry_run: bool,
) -> None:
    """Make a topic."""
    from barnabas.cli.operations.topics import Wanted, create_topic, parse_assignment

    assignment = parse_assignment(assign) if assign else ()
    wanted = Wanted(name, partitions, copies, assignment, pairs(configs))
    connection.ask(lambda admin: create_topic(admin, wanted, dry_run=dry_run))
    done = "could be created" if dry_run else "is created"
    display.say(f"{name} {done}.", topic=name, created=not dry_run)


@command.command("describe")
@click.argument("names", nargs=-1)
@click.option("--troubled", is_flag=True, help="Only partitions that lack a leader or copies.")
@asks
def describe(
    connection: Connection, display: Display, names: tuple[str, ...], troubled: bool
) -> None:
    """Show the partitions of topics, of all if none is named."""
    from barnabas.cli.operations.topics import Topic, describe_topics, require_topics, topic_names
    from barnabas.client.admin import AioAdminClient

    async def ask(admin: AioAdminClient) -> list[Topic]:
        await require_topics(admin, names)
        return await describe_topics(admin, names or await topic_names(admin))

    rows = [
        (
            each.topic,
            each.state.id,
            None if each.state.leader is None else each.state.leader.id,
            ",".join(str(node.id) for node in each.state.replicas),
            ",".join(str(node.id) for node in each.state.isr),
        )
        for topic in connection.ask(ask)
        for each in topic.partitions
        if not troubled or each.is_leaderless or each.is_under_replicated
    ]
    display.table(["TOPIC", "PARTITION", "LEADER", "REPLICAS", "IN SYNC"], rows)


@command.command("grow")
@click.argument("name")
@click.argument("total", type=click.IntRange(1))
@asks
def grow(connection: Connection, display: Display, name: str, total: int) -> None:
    """Give a topic more partitions, TOTAL in all.

    Keys go to other partitions from then on.
    """
    from barnabas.cli.operations.topics import add_partitions

    connection.ask(lambda admin: add_partitions(admin, [name], total))
    display.say(f"{name} has {total} partitions.", topic=name, partitions=total)


@command.command("delete")
@click.argument("names", nargs=-1, required=True)
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@asks
def delete(connection: Connection, display: Display, names: tuple[str, ...], yes: bool) -> None:
    """Remove topics and all their records."""
    from barnabas.cli.operations.topics import delete_topics

    if not yes and not display.as_json:
        click.confirm(f"Delete {', '.join(names)} with all records?", abort=True)
    connection.ask(lambda admin: delete_topics(admin, names))
    display.say(f"{', '.join(names)} deleted.", deleted=names)
