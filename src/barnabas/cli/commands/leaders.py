"""`barnabas leaders`: elect leaders of partitions."""

import click

from barnabas.cli.display import Display
from barnabas.cli.operations.connection import Connection
from barnabas.cli.operations.errors import raise_for_errors
from barnabas.cli.options import admin_command


@click.group("leaders")
def command() -> None:
    """Elect leaders of partitions."""


@command.command("elect")
@click.argument("partitions", nargs=-1, metavar="[TOPIC:PARTITION]...")
@click.option(
    "--unclean",
    is_flag=True,
    help="Elect a replica that is not in sync if no other is alive: records may be lost.",
)
@admin_command
def elect(
    connection: Connection, display: Display, partitions: tuple[str, ...], unclean: bool
) -> None:
    """Elect the preferred replicas as leaders. Default: of all partitions."""
    from barnabas.cli.operations.partitions import elect_leaders
    from barnabas.client.admin.enums import ElectionType

    kind = ElectionType.UNCLEAN if unclean else ElectionType.PREFERRED
    topic_partitions = [_parse(partition) for partition in partitions] or None
    outcome = connection.run(lambda admin: elect_leaders(admin, kind, topic_partitions))
    rows = [(f"{topic}-{index}", "elected") for topic, index in outcome.elected]
    rows += [(f"{topic}-{index}", "not needed") for topic, index in outcome.not_needed]
    display.print_table(["PARTITION", "RESULT"], rows)
    raise_for_errors(outcome.errors)


def _parse(text: str) -> tuple[str, int]:
    topic, _, partition = text.rpartition(":")
    if not topic or not partition.isdecimal():
        raise click.BadParameter(f"{text!r} is not TOPIC:PARTITION")
    return topic, int(partition)
