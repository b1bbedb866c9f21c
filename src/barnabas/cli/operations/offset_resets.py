"""Resetting the committed offsets of a group.

A strategy returns the new offset of each partition. Offsets outside the log are clamped to it.
"""

import csv
import io
import re
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from datetime import UTC, datetime

from barnabas.cli.operations.errors import CommandError
from barnabas.cli.operations.groups import committed_offsets
from barnabas.cli.operations.partitions import list_offsets
from barnabas.client.admin import AioAdminClient
from barnabas.client.admin.model import ConsumerGroupTopicPartitions
from barnabas.client.admin.offsets import OffsetSpec
from barnabas.client.errors import KafkaException
from barnabas.client.values import PartitionKey, TopicPartition

ResetPlan = dict[PartitionKey, int]

ResetStrategy = Callable[[AioAdminClient, str, list[PartitionKey]], Awaitable[ResetPlan]]
"""Returns the new offsets of partitions of a group."""

_DURATION = re.compile(
    r"(?P<sign>[+-]?)P(?:(?P<days>[+-]?\d+)D)?"
    r"(?:T(?:(?P<hours>[+-]?\d+)H)?(?:(?P<minutes>[+-]?\d+)M)?(?:(?P<seconds>[+-]?\d+(?:\.\d+)?)S)?)?",
    re.IGNORECASE,
)


async def apply_plan(
    admin: AioAdminClient, group_id: str, plan: Mapping[PartitionKey, int]
) -> None:
    if not plan:
        return
    offsets = [TopicPartition(*partition, offset) for partition, offset in plan.items()]
    request = ConsumerGroupTopicPartitions(group_id, offsets)
    response = (await admin.alter_consumer_group_offsets([request]))[group_id]
    for topic_partition in response.topic_partitions or ():
        if topic_partition.error is not None:
            raise KafkaException(topic_partition.error)


def to_earliest() -> ResetStrategy:
    return _to(OffsetSpec.earliest())


def to_latest() -> ResetStrategy:
    return _to(OffsetSpec.latest())


def to_offset(offset: int) -> ResetStrategy:
    async def reset(
        admin: AioAdminClient, _group: str, partitions: list[PartitionKey]
    ) -> ResetPlan:
        return await clamp_to_log(admin, dict.fromkeys(partitions, offset))

    return reset


def shift_by(count: int) -> ResetStrategy:
    async def reset(admin: AioAdminClient, group: str, partitions: list[PartitionKey]) -> ResetPlan:
        committed = await committed_offsets(admin, group)
        for topic, index in partitions:
            if (topic, index) not in committed:
                raise CommandError(
                    f"Cannot shift offset for partition {topic}-{index} since there is no current "
                    "committed offset"
                )
        return await clamp_to_log(
            admin, {partition: committed[partition].offset + count for partition in partitions}
        )

    return reset


def to_current() -> ResetStrategy:
    """Keeps committed offsets; uses the log end offset where there is none."""

    async def reset(admin: AioAdminClient, group: str, partitions: list[PartitionKey]) -> ResetPlan:
        committed = await committed_offsets(admin, group)
        missing = [partition for partition in partitions if partition not in committed]
        ends = await list_offsets(admin, missing, OffsetSpec.latest())
        return {
            partition: committed[partition].offset if partition in committed else ends[partition]
            for partition in partitions
        }

    return reset


def to_time(timestamp_ms: int, on_missing: Callable[[PartitionKey], None]) -> ResetStrategy:
    """Resets to the first offset at or after the time.

    Calls `on_missing` and uses the log end offset where there is none.
    """

    async def reset(
        admin: AioAdminClient, _group: str, partitions: list[PartitionKey]
    ) -> ResetPlan:
        offsets = await list_offsets(admin, partitions, OffsetSpec.for_timestamp(timestamp_ms))
        missing = [partition for partition in partitions if offsets[partition] < 0]
        for partition in missing:
            on_missing(partition)
        return offsets | await list_offsets(admin, missing, OffsetSpec.latest())

    return reset


def from_plans(plans: Mapping[str, ResetPlan]) -> ResetStrategy:
    """Uses the plan of each group."""

    async def reset(
        admin: AioAdminClient, group: str, _partitions: list[PartitionKey]
    ) -> ResetPlan:
        return await clamp_to_log(admin, plans.get(group, {}))

    return reset


async def clamp_to_log(admin: AioAdminClient, offsets: Mapping[PartitionKey, int]) -> ResetPlan:
    starts = await list_offsets(admin, offsets, OffsetSpec.earliest())
    ends = await list_offsets(admin, offsets, OffsetSpec.latest())
    return {
        partition: max(starts[partition], min(offsets[partition], ends[partition]))
        for partition in offsets
    }


def parse_plans(text: str, groups: Iterable[str]) -> dict[str, ResetPlan]:
    """Parses CSV of group, topic, partition, offset; a single group can be omitted."""
    named = list(groups)
    plans: dict[str, ResetPlan] = {}
    for row in csv.reader(io.StringIO(text)):
        if not row:
            continue
        if len(row) == 3 and len(named) == 1:
            row = [named[0], *row]
        try:
            group, topic, partition, offset = row
            plans.setdefault(group, {})[topic, int(partition)] = int(offset)
        except ValueError:
            raise CommandError(f"{','.join(row)!r} is not GROUP,TOPIC,PARTITION,OFFSET") from None
    return plans


def parse_datetime(text: str) -> int:
    """Parses `YYYY-MM-DDThh:mm:ss.sss`, in UTC unless it has an offset, to milliseconds."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise CommandError(f"{text!r} is not a time such as 2026-11-16T09:30:00.000") from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return round(moment.timestamp() * 1000)


def time_before_now(duration: str) -> int:
    """Returns the time a duration `PnDTnHnMnS` before now, in milliseconds."""
    match = _DURATION.fullmatch(duration)
    parts = match.groupdict() if match else {}
    units = {"days": 86_400, "hours": 3_600, "minutes": 60, "seconds": 1}
    if not any(parts.get(unit) for unit in units):
        raise CommandError(f"{duration!r} is not a duration such as P1DT12H or PT30M")
    seconds = sum(float(parts[unit] or 0) * length for unit, length in units.items())
    if parts["sign"] == "-":
        seconds = -seconds
    return round((time.time() - seconds) * 1000)


def _to(spec: OffsetSpec) -> ResetStrategy:
    async def reset(
        admin: AioAdminClient, _group: str, partitions: list[PartitionKey]
    ) -> ResetPlan:
        return await list_offsets(admin, partitions, spec)

    return reset
