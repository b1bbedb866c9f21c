"""Deleting the records before an offset."""

from collections.abc import Mapping
from pathlib import Path

from barnabas.cli.work.partition_files import partitions_in
from barnabas.cli.work.refused import Refused
from barnabas.client.admin import AioAdminClient
from barnabas.client.errors import KafkaError
from barnabas.client.values import Partition, TopicPartition


def read_offsets(file: str | Path) -> dict[Partition, int]:
    """The offset of each partition, by a file."""
    listed = partitions_in(file, "Offset json file")
    try:
        return {(str(each["topic"]), int(each["partition"])): int(each["offset"])
                for each in listed}  # fmt: skip
    except (KeyError, TypeError, ValueError):
        raise Refused(f'{file}: each partition needs an "offset", a number') from None


async def delete_records(
    admin: AioAdminClient, offsets: Mapping[Partition, int]
) -> tuple[dict[Partition, int], dict[Partition, KafkaError]]:
    """Where each partition begins now, and why others could not be shortened."""
    if not offsets:
        return {}, {}
    asked = [TopicPartition(*partition, offset) for partition, offset in offsets.items()]
    told = await admin.delete_records(asked)
    failures = {(each.topic, each.partition): error for each, error in told.errors.items()}
    return {
        (each.topic, each.partition): told[each].low_watermark
        for each in told
        if each not in told.errors
    }, failures
