"""How kafka-consumer-groups describes groups: their partitions, their members, their state."""

import sys
from argparse import Namespace
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from barnabas.client.admin import AioAdminClient
    from barnabas.client.admin.group_descriptions import ConsumerGroupDescription

MISSING = "-"


async def describe(admin: "AioAdminClient", groups: Sequence[str], args: Namespace) -> None:
    from barnabas.cli.kafka.consumer_groups import print_error
    from barnabas.cli.operations.groups import describe_groups
    from barnabas.client.admin.model import ConsumerGroupState

    described = await describe_groups(admin, groups)
    for name, group in described.items():
        if group.state is ConsumerGroupState.DEAD:
            print_error(
                "Executing consumer group command failed due to org.apache.kafka.common.errors."
                f"GroupIdNotFoundException: Group {name} not found."
            )
            return
    for group in described.values():
        if args.members:
            _print_warning(group)
            _print_members(group, verbose=args.verbose)
        elif args.state is not None:
            _print_warning(group)
            _print_state(group, verbose=args.verbose)
        else:
            await _print_offsets(admin, group, verbose=args.verbose)


async def _print_offsets(
    admin: "AioAdminClient", group: "ConsumerGroupDescription", *, verbose: bool
) -> None:
    from barnabas.cli.operations.groups import group_offsets

    offsets = await group_offsets(admin, group)
    _print_warning(group)
    if not offsets:
        return
    head = "GROUP TOPIC PARTITION LEADER-EPOCH CURRENT-OFFSET LOG-END-OFFSET LAG CONSUMER-ID HOST"
    rows = [[*head.split(), "CLIENT-ID"]]
    for offset in offsets:
        member = offset.member
        rows.append(
            [
                offset.group,
                offset.topic,
                str(offset.partition),
                _number(offset.leader_epoch),
                _number(offset.committed_offset),
                _number(offset.log_end_offset),
                _number(offset.lag),
                member.member_id if member else MISSING,
                member.host if member else MISSING,
                member.client_id if member else MISSING,
            ]
        )
    widths = [15, 15, 10, 15, 15, 15, 15, 15, 15, 0]
    for column in 0, 1, 7, 8:
        widths[column] = max(widths[column], *(len(row[column]) for row in rows))
    columns = [column for column in range(len(widths)) if verbose or column != 3]
    for row in rows:
        print("\n" + " ".join(row[column].ljust(widths[column]) for column in columns), end="")
    print()


def _print_members(group: "ConsumerGroupDescription", *, verbose: bool) -> None:
    has_instances = any(member.group_instance_id for member in group.members)
    head = ["GROUP", "CONSUMER-ID", "GROUP-INSTANCE-ID", "HOST", "CLIENT-ID", "#PARTITIONS"]
    details = ["CURRENT-EPOCH", "CURRENT-ASSIGNMENT", "TARGET-EPOCH", "TARGET-ASSIGNMENT"]
    rows = [[*head, *details]]
    for member in group.members:
        target = member.target_assignment
        rows.append(
            [
                group.group_id,
                member.member_id,
                member.group_instance_id or "",
                member.host,
                member.client_id,
                str(len(member.assignment.topic_partitions)),
                _number(member.member_epoch),
                _assigned((p.topic, p.partition) for p in member.assignment.topic_partitions),
                _number(None if target is None else group.target_assignment_epoch),
                _assigned((p.topic, p.partition) for p in target.topic_partitions)
                if target
                else MISSING,
            ]
        )
    widths = [15, 15, 17, 15, 15, 15, 15, 20, 15, 20]
    for column in 0, 1, 2, 3, 4, 7, 9:
        widths[column] = max(widths[column], *(len(row[column]) for row in rows))
    columns = [0, 1, *([2] if has_instances else []), 3, 4, 5, *(range(6, 10) if verbose else [])]
    print()
    for row in rows:
        line = " ".join(row[column].ljust(widths[column]) for column in columns)
        print(line if verbose else f"{line} ")


def _print_state(group: "ConsumerGroupDescription", *, verbose: bool) -> None:
    from barnabas.cli.operations.groups import STATE_NAMES

    coordinator = group.coordinator
    head = ["GROUP", "COORDINATOR (ID)", "ASSIGNMENT-STRATEGY", "STATE"]
    row = [
        group.group_id,
        f"{coordinator.host}:{coordinator.port}  ({coordinator.id})",
        group.partition_assignor or MISSING,
        STATE_NAMES.get(group.state, "Unknown") if group.state else "Unknown",
    ]
    widths = [max(15, len(row[0])), max(25, len(row[1])), 20, 20]
    if verbose:
        head += ["GROUP-EPOCH", "TARGET-ASSIGNMENT-EPOCH"]
        row += [_number(group.group_epoch), _number(group.target_assignment_epoch)]
        widths += [15, 25]
    head.append("#MEMBERS")
    row.append(str(len(group.members)))
    widths.append(0)
    for cells in head, row:
        line = " ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
        print(f"\n{line}", end="")
    print()


def _print_warning(group: "ConsumerGroupDescription") -> None:
    from barnabas.cli.operations.groups import REBALANCING
    from barnabas.client.admin.model import ConsumerGroupState

    if group.state is ConsumerGroupState.EMPTY:
        warning = f"Consumer group '{group.group_id}' has no active members."
    elif group.state in REBALANCING:
        warning = f"Warning: Consumer group '{group.group_id}' is rebalancing."
    else:
        return
    # Keep the order of both streams on a terminal.
    sys.stdout.flush()
    print(f"\n{warning}", file=sys.stderr)


def _assigned(partitions: Iterable[tuple[str, int]]) -> str:
    topics: dict[str, list[int]] = {}
    for topic, partition in sorted(partitions):
        topics.setdefault(topic, []).append(partition)
    return (
        ";".join(f"{name}:{','.join(map(str, indexes))}" for name, indexes in topics.items()) or "-"
    )


def _number(value: int | None) -> str:
    return MISSING if value is None or value < 0 else str(value)
