"""Partitions: their offsets, deleting records, electing leaders, and JSON files that list them."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from barnabas.cli.operations.errors import CommandError
from barnabas.client.admin import AioAdminClient
from barnabas.client.admin.model import ElectionType, TopicCollection
from barnabas.client.admin.offsets import OffsetSpec
from barnabas.client.errors import KafkaError, KafkaException
from barnabas.client.values import PartitionKey, TopicPartition

T = TypeVar("T")


async def list_partitions(admin: AioAdminClient, topics: Iterable[str]) -> list[PartitionKey]:
    """Returns all partitions of topics. Raises KafkaException if a topic does not exist."""
    names = list(dict.fromkeys(topics))
    if not names:
        return []
    described = (await admin.describe_topics(TopicCollection(names))).all()
    return [(name, partition.id) for name in names for partition in described[name].partitions]


async def list_offsets(
    admin: AioAdminClient, partitions: Iterable[PartitionKey], spec: OffsetSpec
) -> dict[PartitionKey, int]:
    """Returns the offset of each partition; -1 if there is none. Raises KafkaException."""
    offsets, errors = await try_list_offsets(admin, partitions, spec)
    for error in errors.values():
        raise KafkaException(error)
    return offsets


async def try_list_offsets(
    admin: AioAdminClient, partitions: Iterable[PartitionKey], spec: OffsetSpec
) -> tuple[dict[PartitionKey, int], Mapping[PartitionKey, KafkaError]]:
    """Returns the offsets of partitions, and the errors of the others."""
    request = {TopicPartition(topic, index): spec for topic, index in partitions}
    if not request:
        return {}, {}
    response = await admin.list_offsets(request)
    errors = by_partition(response.errors)
    offsets = {
        (partition.topic, partition.partition): response[partition].offset
        for partition in response
        if partition not in response.errors
    }
    return offsets, errors


def by_partition(values: Mapping[TopicPartition, T]) -> dict[PartitionKey, T]:
    return {(key.topic, key.partition): value for key, value in sorted(values.items())}


def read_json(file: str | Path) -> Any:
    try:
        return json.loads(Path(file).read_text())
    except OSError:
        raise CommandError(f"Unable to read file {file}") from None
    except ValueError as error:
        raise CommandError(f"{file} is not JSON: {error}") from None


def read_partitions(file: str | Path, what: str) -> list[dict[str, Any]]:
    """Returns the entries of "partitions", each with a topic and a partition, all distinct."""
    content = read_json(file)
    try:
        listed = list(content["partitions"])
        named = [(str(entry["topic"]), int(entry["partition"])) for entry in listed]
    except (KeyError, TypeError, ValueError):
        raise CommandError(
            f'{file} is not {{"partitions": [{{"topic": NAME, "partition": NUMBER, ...}}]}}'
        ) from None
    if twice := find_duplicates(named):
        raise CommandError(
            f"{what} contains duplicate topic partitions: {format_partitions(twice)}"
        )
    return listed


def find_duplicates(partitions: Iterable[PartitionKey]) -> list[PartitionKey]:
    return [partition for partition, count in Counter(partitions).items() if count > 1]


def format_partitions(partitions: Iterable[PartitionKey]) -> str:
    return ",".join(f"{topic}-{index}" for topic, index in partitions)


def read_offsets(file: str | Path) -> dict[PartitionKey, int]:
    """Reads the offset of each partition from a JSON file."""
    listed = read_partitions(file, "Offset json file")
    try:
        return {(str(entry["topic"]), int(entry["partition"])): int(entry["offset"])
                for entry in listed}  # fmt: skip
    except (KeyError, TypeError, ValueError):
        raise CommandError(f'{file}: each partition needs an "offset", a number') from None


async def delete_records(
    admin: AioAdminClient, offsets: Mapping[PartitionKey, int]
) -> tuple[dict[PartitionKey, int], dict[PartitionKey, KafkaError]]:
    """Returns the low watermark of each partition, and the errors of the others."""
    if not offsets:
        return {}, {}
    request = [TopicPartition(*partition, offset) for partition, offset in offsets.items()]
    response = await admin.delete_records(request)
    errors = by_partition(response.errors)
    return {
        (partition.topic, partition.partition): response[partition].low_watermark
        for partition in response
        if partition not in response.errors
    }, errors


@dataclass(slots=True, frozen=True)
class ElectionResults:
    elected: list[PartitionKey]
    not_needed: list[PartitionKey]
    errors: dict[PartitionKey, KafkaError]


async def elect_leaders(
    admin: AioAdminClient, kind: ElectionType, partitions: Iterable[PartitionKey] | None
) -> ElectionResults:
    """Elects leaders of these partitions, or of all partitions that need one."""
    request = (
        None if partitions is None else [TopicPartition(*partition) for partition in partitions]
    )
    results = by_partition(await admin.elect_leaders(kind, request))
    return ElectionResults(
        elected=[partition for partition, error in results.items() if error is None],
        not_needed=[
            partition
            for partition, error in results.items()
            if error == KafkaError.ELECTION_NOT_NEEDED
        ],
        errors={
            partition: error
            for partition, error in results.items()
            if error is not None and error != KafkaError.ELECTION_NOT_NEEDED
        },
    )
