"""`barnabas groups`: consumer groups, their members, lag and offsets."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import click

from barnabas.cli.display import Display, count_of
from barnabas.cli.operations.connection import Connection
from barnabas.cli.operations.errors import CommandError, raise_for_errors
from barnabas.cli.options import INT64, CommandGroup, admin_command, confirm, yes_option

if TYPE_CHECKING:
    from barnabas.cli.operations.offset_resets import ResetPlan, ResetStrategy
    from barnabas.client.admin import AioAdminClient
    from barnabas.client.admin.group_descriptions import ConsumerGroupDescription
    from barnabas.client.values import PartitionKey


@click.group("groups", cls=CommandGroup)
def command() -> None:
    """Describe consumer groups, reset their offsets, delete them."""


@command.command("list")
@admin_command
def list_(connection: Connection, display: Display) -> None:
    """List the consumer groups.

    \b
      barnabas groups list --json
    """
    from barnabas.cli.operations.groups import STATE_NAMES, TYPE_NAMES, list_groups

    rows = [
        (
            group.group_id,
            TYPE_NAMES.get(group.type) if group.type else None,
            STATE_NAMES.get(group.state) if group.state else None,
        )
        for group in connection.run(list_groups)
    ]
    display.print_table(["GROUP", "TYPE", "STATE"], rows)


@command.command("describe")
@click.argument("names", nargs=-1)
@admin_command
def describe(connection: Connection, display: Display, names: tuple[str, ...]) -> None:
    """Show the committed offsets and the lag of groups. Default: all groups.

    \b
      barnabas groups describe billing
    """
    from barnabas.cli.operations.groups import (
        GroupOffset,
        describe_groups,
        group_offsets,
        list_group_ids,
    )

    async def collect(admin: "AioAdminClient") -> list[GroupOffset]:
        described = await describe_groups(admin, names or await list_group_ids(admin))
        _require(described)
        return [
            offset for group in described.values() for offset in await group_offsets(admin, group)
        ]

    rows = [
        (
            offset.group,
            offset.topic,
            offset.partition,
            offset.committed_offset,
            offset.log_end_offset,
            offset.lag,
            offset.member.member_id if offset.member else None,
            offset.member.client_id if offset.member else None,
            offset.member.host if offset.member else None,
        )
        for offset in connection.run(collect)
    ]
    head = [
        "GROUP",
        "TOPIC",
        "PARTITION",
        "CURRENT OFFSET",
        "LOG END OFFSET",
        "LAG",
        "CONSUMER ID",
        "CLIENT ID",
        "HOST",
    ]
    display.print_table(head, rows)


@command.command("members")
@click.argument("names", nargs=-1)
@admin_command
def members(connection: Connection, display: Display, names: tuple[str, ...]) -> None:
    """Show the members of groups and their assigned partitions.

    \b
      barnabas groups members billing
    """
    from barnabas.cli.operations.groups import describe_groups, list_group_ids

    async def collect(admin: "AioAdminClient") -> list[tuple[object, ...]]:
        described = await describe_groups(admin, names or await list_group_ids(admin))
        _require(described)
        return [
            (
                group.group_id,
                member.member_id,
                member.client_id,
                member.host,
                ", ".join(
                    f"{topic_partition.topic}-{topic_partition.partition}"
                    for topic_partition in sorted(member.assignment.topic_partitions)
                ),
            )
            for group in described.values()
            for member in group.members
        ]

    head = ["GROUP", "CONSUMER ID", "CLIENT ID", "HOST", "PARTITIONS"]
    display.print_table(head, connection.run(collect))


@command.command("reset")
@click.argument("name")
@click.option(
    "--topic",
    "-t",
    "topics",
    multiple=True,
    metavar="TOPIC[:0,1]",
    help="A topic, or partitions of it.",
)
@click.option("--to-earliest", is_flag=True, help="To the earliest offsets.")
@click.option("--to-latest", is_flag=True, help="To the end, so that only new records are read.")
@click.option("--to-offset", type=INT64, help="To this offset.")
@click.option("--shift-by", type=INT64, help="Forward by this number, or back if it is negative.")
@click.option(
    "--to-time", metavar="YYYY-MM-DDThh:mm:ss", help="To the first record at or after it, in UTC."
)
@click.option("--back", metavar="PnDTnHnMnS", help="To the time this long ago.")
@click.option("--dry-run", is_flag=True, help="Only show the new offsets.")
@yes_option
@admin_command
def reset(
    connection: Connection,
    display: Display,
    name: str,
    topics: tuple[str, ...],
    dry_run: bool,
    yes: bool,
    **options: object,
) -> None:
    """Reset the offsets of a group without members. Default: all its topics.

    Shows the new offsets and asks before they are committed.

    \b
      barnabas groups reset billing --to-earliest --dry-run
      barnabas groups reset billing --topic orders:0,1 --shift-by -10
      barnabas groups reset billing --back PT1H --yes
    """
    from barnabas.cli.operations.groups import committed_offsets, describe_groups, parse_partitions
    from barnabas.cli.operations.offset_resets import apply_plan
    from barnabas.client.admin.model import ConsumerGroupState

    strategy = _strategy(options)

    async def collect(admin: "AioAdminClient") -> tuple["ResetPlan", list[tuple[object, ...]]]:
        group = (await describe_groups(admin, [name]))[name]
        if group.state not in (ConsumerGroupState.EMPTY, ConsumerGroupState.DEAD):
            raise CommandError(f"{name} has members: stop them first, then reset its offsets")
        committed = await committed_offsets(admin, name)
        partitions = await parse_partitions(admin, topics) if topics else sorted(committed)
        plan = await strategy(admin, name, partitions)
        current = {
            partition: committed[partition].offset for partition in plan if partition in committed
        }
        return plan, [
            (name, *partition, current.get(partition), offset) for partition, offset in plan.items()
        ]

    plan, rows = connection.run(collect)
    if not plan:
        raise CommandError(f"Group {name} has no committed offsets: name topics with --topic")
    head = ["GROUP", "TOPIC", "PARTITION", "CURRENT OFFSET", "NEW OFFSET"]
    if dry_run or not display.as_json:
        display.print_table(head, rows)
    if dry_run:
        return
    confirm(f"Reset {count_of(len(plan), 'offset')} of {name}?", yes=yes)
    connection.run(lambda admin: apply_plan(admin, name, plan))
    if display.as_json:
        display.print_table(head, rows)
    else:
        click.echo(f"{count_of(len(plan), 'offset')} of {name} reset.")


@command.command("delete")
@click.argument("names", nargs=-1, required=True)
@yes_option
@admin_command
def delete(connection: Connection, display: Display, names: tuple[str, ...], yes: bool) -> None:
    """Delete groups without members, and their offsets.

    \b
      barnabas groups delete billing
    """
    from barnabas.cli.operations.groups import delete_groups

    confirm(f"Delete {', '.join(names)} with all committed offsets?", yes=yes)
    outcomes = connection.run(lambda admin: delete_groups(admin, names))
    raise_for_errors(outcomes)
    display.print_result(f"{', '.join(names)} deleted.", deleted=names)


def _strategy(options: dict[str, object]) -> "ResetStrategy":
    from barnabas.cli.operations import offset_resets as resets

    selected = {name: value for name, value in options.items() if value not in (None, False)}
    if len(selected) != 1:
        names = ", ".join(f"--{name.replace('_', '-')}" for name in options)
        raise click.UsageError(f"give exactly one of {names}")
    ((name, value),) = selected.items()
    match name:
        case "to_earliest":
            return resets.to_earliest()
        case "to_latest":
            return resets.to_latest()
        case "to_offset":
            return resets.to_offset(int(str(value)))
        case "shift_by":
            return resets.shift_by(int(str(value)))
        case "to_time":
            return resets.to_time(resets.parse_datetime(str(value)), _warn_of_fallback)
        case _:
            return resets.to_time(resets.time_before_now(str(value)), _warn_of_fallback)


def _warn_of_fallback(partition: "PartitionKey") -> None:
    click.echo(
        f"{partition[0]}-{partition[1]} has no record after that time: reset to the log end offset",
        err=True,
    )


def _require(described: "Mapping[str, ConsumerGroupDescription]") -> None:
    from barnabas.client.admin.model import ConsumerGroupState

    for name, group in described.items():
        if group.state is ConsumerGroupState.DEAD:
            raise CommandError(f"Group {name} does not exist: see barnabas groups list")
