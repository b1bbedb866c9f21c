"""`barnabas groups`: consumer groups, their members, lag and offsets."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import click

from barnabas.cli.display import Display
from barnabas.cli.operations.connection import Connection
from barnabas.cli.operations.errors import CommandError, raise_for_errors
from barnabas.cli.options import admin_command

if TYPE_CHECKING:
    from barnabas.cli.operations.offset_resets import ResetPlan, ResetStrategy
    from barnabas.client.admin import AioAdminClient
    from barnabas.client.admin.group_descriptions import ConsumerGroupDescription
    from barnabas.client.values import PartitionKey


@click.group("groups")
def command() -> None:
    """Describe consumer groups, reset their offsets, delete them."""


@command.command("list")
@admin_command
def list_(connection: Connection, display: Display) -> None:
    """List the consumer groups."""
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
    """Show the committed offsets and the lag of groups. Default: all groups."""
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
        "CLIENT ID",
        "HOST",
    ]
    display.print_table(head, rows)


@command.command("members")
@click.argument("names", nargs=-1)
@admin_command
def members(connection: Connection, display: Display, names: tuple[str, ...]) -> None:
    """Show the members of groups and their assigned partitions."""
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
@click.option("--to-earliest", is_flag=True)
@click.option("--to-latest", is_flag=True)
@click.option("--to-offset", type=int)
@click.option("--shift-by", type=int)
@click.option("--to-time", metavar="YYYY-MM-DDThh:mm:ss")
@click.option("--back", metavar="PnDTnHnMnS", help="To the time this long ago.")
@click.option("--dry-run", is_flag=True, help="Only show the new offsets.")
@admin_command
def reset(
    connection: Connection,
    display: Display,
    name: str,
    topics: tuple[str, ...],
    dry_run: bool,
    **options: object,
) -> None:
    """Reset the offsets of a group without members. Default: all its topics."""
    from barnabas.cli.operations.groups import committed_offsets, describe_groups, parse_partitions
    from barnabas.cli.operations.offset_resets import apply_plan
    from barnabas.client.admin.model import ConsumerGroupState

    strategy = _strategy(options)

    async def collect(admin: "AioAdminClient") -> "ResetPlan":
        group = (await describe_groups(admin, [name]))[name]
        if group.state not in (ConsumerGroupState.EMPTY, ConsumerGroupState.DEAD):
            raise CommandError(f"{name} has members: stop them first, then reset its offsets")
        partitions = (
            await parse_partitions(admin, topics)
            if topics
            else sorted(await committed_offsets(admin, name))
        )
        plan = await strategy(admin, name, partitions)
        if not dry_run:
            await apply_plan(admin, name, plan)
        return plan

    plan = connection.run(collect)
    rows = [(name, topic, index, offset) for (topic, index), offset in plan.items()]
    display.print_table(["GROUP", "TOPIC", "PARTITION", "NEW OFFSET"], rows)


@command.command("delete")
@click.argument("names", nargs=-1, required=True)
@admin_command
def delete(connection: Connection, display: Display, names: tuple[str, ...]) -> None:
    """Delete groups without members, and their offsets."""
    from barnabas.cli.operations.groups import delete_groups

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
