"""`barnabas offsets`: the earliest and latest offsets of partitions."""

import click

from barnabas.cli.display import Display
from barnabas.cli.operations.connection import Connection
from barnabas.cli.options import admin_command


@click.command("offsets")
@click.argument("topics", nargs=-1)
@click.option(
    "--at", "timestamp_ms", type=int, help="The first offset at or after this timestamp in ms."
)
@admin_command
def command(
    connection: Connection, display: Display, topics: tuple[str, ...], timestamp_ms: int | None
) -> None:
    """Show the earliest and latest offsets of partitions. Default: of all topics."""
    from barnabas.cli.operations.partitions import list_offsets, list_partitions
    from barnabas.cli.operations.topics import require_topics, topic_names
    from barnabas.client.admin import AioAdminClient
    from barnabas.client.admin.offsets import OffsetSpec

    async def collect(admin: AioAdminClient) -> list[tuple[object, ...]]:
        await require_topics(admin, topics)
        names = topics or await topic_names(admin, internal=False)
        partitions = await list_partitions(admin, names)
        if timestamp_ms is not None:
            offsets = await list_offsets(admin, partitions, OffsetSpec.for_timestamp(timestamp_ms))
            return [
                (*partition, offsets[partition] if offsets[partition] >= 0 else None)
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
