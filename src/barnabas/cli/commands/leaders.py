"""`barnabas leaders`: have the preferred replicas lead again."""

import click

from barnabas.cli.display import Display
from barnabas.cli.operations.connection import Connection
from barnabas.cli.operations.errors import Refused
from barnabas.cli.options import asks


@click.group("leaders")
def command() -> None:
    """Elect leaders of partitions."""


@command.command("elect")
@click.argument("partitions", nargs=-1, metavar="[TOPIC:PARTITION]...")
@click.option(
    "--unclean",
    is_flag=True,
    help="Where none in sync is left, any that is there: records may be lost.",
)
@asks
def elect(
    connection: Connection, display: Display, partitions: tuple[str, ...], unclean: bool
) -> None:
    """Have the preferred replicas lead, of all partitions if none is named."""
    from barnabas.cli.operations.partitions import elect as work
    from barnabas.client.admin.enums import ElectionType

    kind = ElectionType.UNCLEAN if unclean else ElectionType.PREFERRED
    wanted = [_parse(each) for each in partitions] or None
    outcome = connection.ask(lambda admin: work(admin, kind, wanted))
    rows = [(f"{topic}-{index}", "elected") for topic, index in outcome.elected]
    rows += [(f"{topic}-{index}", "not needed") for topic, index in outcome.not_needed]
    display.table(["PARTITION", "OUTCOME"], rows)
    if outcome.failures:
        raise Refused(
            "; ".join(
                f"{topic}-{index}: {why.str()}" for (topic, index), why in outcome.failures.items()
            )
        )


def _parse(text: str) -> tuple[str, int]:
    topic, _, partition = text.rpartition(":")
    if not topic or not partition.isdecimal():
        raise click.BadParameter(f"{text!r} is not TOPIC:PARTITION")
    return topic, int(partition)
