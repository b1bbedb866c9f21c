"""kafka-groups: list the groups of every type."""

from argparse import Namespace
from collections.abc import Sequence
from typing import TYPE_CHECKING

from barnabas.cli.kafka.errors import reasons_to_stderr
from barnabas.cli.kafka.options import Flat, connect
from barnabas.cli.operations.errors import Refused

if TYPE_CHECKING:
    from barnabas.client.admin import AioAdminClient
    from barnabas.client.admin.group_metadata import GroupListing

TYPES = ("classic", "consumer", "share", "streams")


def main(arguments: Sequence[str] | None = None) -> int:
    options = _options()
    chosen = options.parse(arguments)
    options.require(chosen, "bootstrap-server")
    if not chosen.list:
        options.refuse("Command must include exactly one action: --list.")
    for shortcut in "consumer", "share", "streams":
        others = [each for each in ("consumer", "share", "streams") if each != shortcut]
        options.forbid(chosen, shortcut, "group-type", "protocol", *others)
    with reasons_to_stderr():
        if chosen.group_type is not None and chosen.group_type.lower() not in TYPES:
            raise Refused("--group-type must be a valid group type.")
        connect(chosen).ask(lambda admin: _list(admin, chosen))
    return 0


def _options() -> Flat:
    options = Flat("kafka-groups", "This tool helps to list groups of all types.")
    options.connection()
    options.flag("--list", "List the groups.")
    options.value("--group-type", "type", f"Those of a type alone: {', '.join(TYPES)}.")
    options.value("--protocol", "protocol", "Those with this protocol alone.")
    options.flag("--consumer", "Consumer groups of every kind alone.")
    options.flag("--share", "Share groups alone.")
    options.flag("--streams", "Streams groups alone.")
    return options


async def _list(admin: "AioAdminClient", chosen: Namespace) -> None:
    listed = await admin.list_group_listings()
    groups = sorted(
        (group for group in listed if _is_meant(group, chosen)), key=lambda group: group.group_id
    )
    rows = [(group.group_id, group.type.title(), group.protocol_type) for group in groups]
    width = max([20, *(len(cell) for row in rows for cell in row)])  # of every column
    print(" ".join(cell.ljust(width) for cell in ("GROUP", "TYPE", "PROTOCOL")))
    for row in rows:
        print("".join(f"{cell.ljust(width)} " for cell in row))


def _is_meant(group: "GroupListing", chosen: Namespace) -> bool:
    kind = group.type.lower()
    if chosen.consumer:
        is_classic_consumer = kind == "classic" and group.protocol_type in ("consumer", "")
        return kind == "consumer" or is_classic_consumer
    if chosen.share or chosen.streams:
        return kind == ("share" if chosen.share else "streams")
    if chosen.group_type is not None and kind != chosen.group_type.lower():
        return False
    return chosen.protocol is None or bool(group.protocol_type == chosen.protocol)
