"""`barnabas records`: delete records before an offset."""

import click

from barnabas.cli.display import Display
from barnabas.cli.operations.connection import Connection
from barnabas.cli.operations.errors import raise_for_errors
from barnabas.cli.options import admin_command


@click.group("records")
def command() -> None:
    """Delete records."""


@command.command("delete")
@click.argument("targets", nargs=-1, required=True, metavar="TOPIC:PARTITION:OFFSET...")
@admin_command
def delete(connection: Connection, display: Display, targets: tuple[str, ...]) -> None:
    """Delete the records of partitions before an offset; `end` deletes all records."""
    from barnabas.cli.operations.partitions import delete_records

    offsets = dict(map(_parse, targets))
    deleted, errors = connection.run(lambda admin: delete_records(admin, offsets))
    display.print_table(
        ["TOPIC", "PARTITION", "LOW WATERMARK"],
        [(*partition, first) for partition, first in deleted.items()],
    )
    raise_for_errors(errors)


def _parse(text: str) -> tuple[tuple[str, int], int]:
    topic, _, rest = text.partition(":")
    partition, _, offset = rest.partition(":")
    if not topic or not partition.isdecimal() or not (offset.isdecimal() or offset == "end"):
        raise click.BadParameter(f"{text!r} is not TOPIC:PARTITION:OFFSET")
    return (topic, int(partition)), -1 if offset == "end" else int(offset)
