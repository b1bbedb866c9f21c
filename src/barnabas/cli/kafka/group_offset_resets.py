"""How kafka-consumer-groups resets offsets: shows, exports or applies a plan per group."""

from argparse import Namespace
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from barnabas.cli.operations.errors import UnreadableFileError

if TYPE_CHECKING:
    from barnabas.cli.operations.offset_resets import ResetPlan, ResetStrategy
    from barnabas.client.admin import AioAdminClient
    from barnabas.client.values import PartitionKey


async def reset(admin: "AioAdminClient", groups: Sequence[str], args: Namespace) -> None:
    from barnabas.cli.kafka.consumer_groups import print_error
    from barnabas.cli.operations.groups import (
        STATE_NAMES,
        committed_offsets,
        describe_groups,
        parse_partitions,
    )
    from barnabas.cli.operations.offset_resets import apply_plan
    from barnabas.client.admin.model import ConsumerGroupState

    strategy = _strategy(args, groups)
    plans: dict[str, ResetPlan] = {}
    for name, group in (await describe_groups(admin, groups)).items():
        if group.state not in (ConsumerGroupState.EMPTY, ConsumerGroupState.DEAD):
            state = STATE_NAMES.get(group.state, "Unknown") if group.state else "Unknown"
            print_error(
                f"Assignments can only be reset if the group '{name}' is inactive, but the "
                f"current state is {state}."
            )
            plans[name] = {}
            continue
        if args.all_topics:
            partitions = sorted(await committed_offsets(admin, name))
        else:
            partitions = await parse_partitions(admin, args.topic or ())
        plans[name] = await strategy(admin, name, partitions)
        if args.execute:
            await apply_plan(admin, name, plans[name])
    if args.export:
        print(_csv(plans, with_group=len(args.group or ()) != 1))
    else:
        _print_plans(plans)


def _strategy(args: Namespace, groups: Sequence[str]) -> "ResetStrategy":
    from barnabas.cli.operations import offset_resets as resets

    if args.to_offset is not None:
        return resets.to_offset(args.to_offset)
    if args.shift_by is not None:
        return resets.shift_by(args.shift_by)
    if args.to_datetime is not None:
        return resets.to_time(resets.parse_datetime(args.to_datetime), _warn_of_empty)
    if args.by_duration is not None:
        return resets.to_time(resets.time_before_now(args.by_duration), _warn_of_empty)
    if args.from_file is not None:
        return resets.from_plans(_read_plans(args.from_file, groups))
    if args.to_earliest:
        return resets.to_earliest()
    return resets.to_latest() if args.to_latest else resets.to_current()


def _read_plans(file: str, groups: Sequence[str]) -> "dict[str, ResetPlan]":
    from pathlib import Path

    from barnabas.cli.kafka.consumer_groups import print_error
    from barnabas.cli.operations.offset_resets import parse_plans

    try:
        plans = parse_plans(Path(file).read_text(errors="replace"), groups)
    except OSError as error:
        raise UnreadableFileError(file, error) from None
    for group in groups:
        if group not in plans:
            print_error(f"No reset plan for group {group} found")
    return plans


def _warn_of_empty(partition: "PartitionKey") -> None:
    topic, index = partition
    print(
        f"\nWarn: Partition {index} from topic {topic} is empty. Falling back to latest known "
        "offset."
    )


def _csv(plans: "Mapping[str, ResetPlan]", *, with_group: bool) -> str:
    lines = []
    for group, plan in plans.items():
        for (topic, partition), offset in plan.items():
            lead = f"{group}," if with_group else ""
            lines.append(f"{lead}{topic},{partition},{offset}\n")
    return "".join(lines)


def _print_plans(plans: "Mapping[str, ResetPlan]") -> None:
    group_width = max([15, *map(len, plans)])
    topics = (topic for plan in plans.values() for topic, _ in plan)
    topic_width = max([15, *map(len, topics)])
    if plans:
        head = f"{'GROUP'.ljust(group_width)} {'TOPIC'.ljust(topic_width)} {'PARTITION':<10}"
        print(f"\n{head} NEW-OFFSET", end="")
    for group, plan in plans.items():
        for (topic, partition), offset in plan.items():
            row = f"{group.ljust(group_width)} {topic.ljust(topic_width)} {partition:<10}"
            print(f"\n{row} {offset}", end="")
    print()
