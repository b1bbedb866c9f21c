"""`barnabas offsets`: where partitions begin and end."""

import click

from barnabas.cli.display import Display
from barnabas.cli.operations.connection import Connection
from barnabas.cli.options import asks


@click.command("offsets")
@click.argument("topics", nargs=-1)
@click.option("--at", "timestamp_ms", type=int, help="The first of this time or later, in ms.")
@asks
def command(
    connection: Connection, display: Display, topics: tuple[str, ...], timestamp_ms: int | None
) -> None:
    """Show the first and the next offset of partitions, of all topics if none is named."""
    from barnabas.cli.operations.partitions import offsets_at, partitions_of
    from barnabas.cli.operations.topics import require_topics, topic_names
    from barnabas.client.admin import AioAdminClient
    from barnabas.client.admin.offsets import OffsetSpec

    async def ask(admin: AioAdminClient) -> list[tuple[object, ...]]:
        await require_topics(admin, topics)
        names = topics or await topic_names(admin, internal=False)
        partitions = await partitions_of(admin, names)
        if timestamp_ms is not None:
            found = await offsets_at(admin, partitions, OffsetSpec.for_timestamp(timestamp_ms))
            return [(*each, found[each] if found[each] >= 0 else None) for each in partitions]
        first = await offsets_at(admin, partitions, OffsetSpec.earliest())
        end = await offsets_at(admin, partitions, OffsetSpec.latest())
        return [(*each, first[each], end[each], end[each] - first[each]) for each in partitions]

    head = ["OFFSET"] if timestamp_ms is not None else ["FIRST", "NEXT", "OFFSETS"]
    display.table(["TOPIC", "PARTITION", *head], connection.ask(ask))
