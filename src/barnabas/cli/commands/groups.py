"""`barnabas groups`: consumer groups, their members, their lags and their offsets."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import click

from barnabas.cli.display import Display
from barnabas.cli.operations.connection import Connection
from barnabas.cli.operations.errors import CommandError
from barnabas.cli.options import admin_command

if TYPE_CHECKING:
    from barnabas.cli.operations.offset_resets import ResetPlan, ResetStrategy
    from barnabas.client.admin import AioAdminClient
    from barnabas.client.admin.group_descriptions import ConsumerGroupDescription
    from barnabas.client.values import TopicPartitionTuple


@click.group("groups")
def command() -> None:
    """Look at consumer groups, move their offsets, remove them."""


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
    """Show how far groups have come, all if none is named."""
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
    head = ["GROUP", "TOPIC", "PARTITION", "COMMITTED", "END", "LAG", "CLIENT", "HOST"]
    display.print_table(head, rows)


@command.command("members")
@click.argument("names", nargs=-1)
@admin_command
def members(connection: Connection, display: Display, names: tuple[str, ...]) -> None:
    """Show the members of groups and what each has."""
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

    head = ["GROUP", "MEMBER", "CLIENT", "HOST", "PARTITIONS"]
    display.print_table(head, connection.run(collect))


@command.command("reset")
@click.argument("name")
@click.option("--topic", "-t", "topics", multiple=True, metavar="TOPIC[:0,1]", help="Where.")
@click.option("--to-earliest", is_flag=True)
@click.option("--to-latest", is_flag=True)
@click.option("--to-offset", type=int)
@click.option("--shift-by", type=int)
@click.option("--to-time", metavar="YYYY-MM-DDThh:mm:ss")
@click.option("--back", metavar="PnDTnHnMnS", help="To what came so long ago.")
@click.option("--dry-run", is_flag=True, help="Only show where it would go on.")
@admin_command
def reset(
    connection: Connection,
    display: Display,
    name: str,
    topics: tuple[str, ...],
    dry_run: bool,
    **options: object,
) -> None:
    """Move the offsets of a group that has no members; in all its topics if none is named."""
    from barnabas.cli.operations.groups import committed_offsets, describe_groups, parse_partitions
    from barnabas.cli.operations.offset_resets import apply_plan
    from barnabas.client.admin.enums import ConsumerGroupState

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
    """Remove groups that have no members, with their offsets."""
    from barnabas.cli.operations.groups import delete_groups

    outcomes = connection.run(lambda admin: delete_groups(admin, names))
    failed = {group: error.str() for group, error in outcomes.items() if error is not None}
    if failed:
        raise CommandError("; ".join(f"{group}: {why}" for group, why in failed.items()))
    display.print_result(f"{', '.join(names)} deleted.", deleted=names)


def _strategy(options: dict[str, object]) -> "ResetStrategy":
    from barnabas.cli.operations import offset_resets as resets

    selected = {name: value for name, value in options.items() if value not in (None, False)}
    if len(selected) != 1:
        names = ", ".join(f"--{name.replace('_', '-')}" for name in options)
        raise click.UsageError(f"say where to, with one of {names}")
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
            return resets.to_time(resets.parse_datetime(str(value)), _fallen_back)
        case _:
            return resets.to_time(resets.time_before_now(str(value)), _fallen_back)


def _fallen_back(partition: "TopicPartitionTuple") -> None:
    click.echo(f"{partition[0]}-{partition[1]} has nothing that new: to its end", err=True)


def _require(described: "Mapping[str, ConsumerGroupDescription]") -> None:
    from barnabas.client.admin.enums import ConsumerGroupState

    for name, group in described.items():
        if group.state is ConsumerGroupState.DEAD:
            raise CommandError(f"there is no group {name}: see barnabas groups list")
