"""kafka-groups: list the groups of every type."""

from argparse import Namespace
from collections.abc import Sequence
from typing import TYPE_CHECKING

from barnabas.cli.kafka.command import kafka_command
from barnabas.cli.kafka.options import FlatParser, connection_from
from barnabas.cli.operations.errors import CommandError

if TYPE_CHECKING:
    from barnabas.client.admin import AioAdminClient
    from barnabas.client.admin.groups import GroupListing

TYPES = ("classic", "consumer", "share", "streams")


@kafka_command
def main(arguments: Sequence[str]) -> int:
    parser = _build_parser()
    args = parser.parse(arguments)
    parser.require_options(args, "bootstrap-server")
    if not args.list:
        parser.usage_error("Command must include exactly one action: --list.")
    for shortcut in "consumer", "share", "streams":
        others = [other for other in ("consumer", "share", "streams") if other != shortcut]
        parser.forbid_together(args, shortcut, "group-type", "protocol", *others)
    if args.group_type is not None and args.group_type.lower() not in TYPES:
        raise CommandError("--group-type must be a valid group type.")
    connection_from(args).run(lambda admin: _list(admin, args))
    return 0


def _build_parser() -> FlatParser:
    parser = FlatParser("kafka-groups", "This tool helps to list groups of all types.")
    parser.add_connection_options()
    parser.add_flag("--list", "List the groups.")
    parser.add_value("--group-type", "type", f"Only groups of this type: {', '.join(TYPES)}.")
    parser.add_value("--protocol", "protocol", "Only groups with this protocol.")
    parser.add_flag("--consumer", "Only consumer groups, classic ones included.")
    parser.add_flag("--share", "Only share groups.")
    parser.add_flag("--streams", "Only streams groups.")
    return parser


async def _list(admin: "AioAdminClient", args: Namespace) -> None:
    listed = await admin.list_group_listings()
    groups = sorted(
        (group for group in listed if _is_selected(group, args)), key=lambda group: group.group_id
    )
    rows = [(group.group_id, group.type.title(), group.protocol_type) for group in groups]
    width = max([20, *(len(cell) for row in rows for cell in row)])  # of every column
    print(" ".join(cell.ljust(width) for cell in ("GROUP", "TYPE", "PROTOCOL")))
    for row in rows:
        print("".join(f"{cell.ljust(width)} " for cell in row))


def _is_selected(group: "GroupListing", args: Namespace) -> bool:
    kind = group.type.lower()
    if args.consumer:
        is_classic_consumer = kind == "classic" and group.protocol_type in ("consumer", "")
        return kind == "consumer" or is_classic_consumer
    if args.share or args.streams:
        return kind == ("share" if args.share else "streams")
    if args.group_type is not None and kind != args.group_type.lower():
        return False
    return args.protocol is None or bool(group.protocol_type == args.protocol)
