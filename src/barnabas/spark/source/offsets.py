"""Offsets of partitions, and the JSON of Spark's Kafka connector for them.

    {"orders": {"0": 23, "1": -2}}

Checkpoints have the same JSON, so a query can continue with either connector.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from barnabas.spark.options_parser import OptionError

LATEST = -1
EARLIEST = -2


class SourcePartition(NamedTuple):
    topic: str
    number: int

    def __str__(self) -> str:
        return f"{self.topic} [{self.number}]"


Offsets = Mapping[SourcePartition, int]
Document = dict[str, dict[str, int]]


@dataclass(slots=True, frozen=True)
class SameOffset:
    """LATEST or EARLIEST for all partitions."""

    offset: int


@dataclass(slots=True, frozen=True)
class PartitionOffsets:
    """An offset, LATEST or EARLIEST for each partition."""

    offsets: Offsets


@dataclass(slots=True, frozen=True)
class Timestamp:
    """The first record at or after one timestamp, in every partition."""

    timestamp_ms: int


@dataclass(slots=True, frozen=True)
class PartitionTimestamps:
    """The first record at or after a timestamp for each partition."""

    timestamps_ms: Offsets


Bound = SameOffset | PartitionOffsets | Timestamp | PartitionTimestamps
"""Where a read starts or ends."""


@dataclass(slots=True, frozen=True, order=True)
class OffsetRange:
    """The records of a partition from `start` to before `end`."""

    topic: str
    partition: int
    start: int
    end: int

    @property
    def topic_partition(self) -> SourcePartition:
        return SourcePartition(self.topic, self.partition)

    def __len__(self) -> int:
        return self.end - self.start


def to_document(offsets: Offsets) -> Document:
    """Returns the offsets sorted by topic and partition, since Spark compares their JSON text."""
    document: Document = {}
    for (topic, partition), offset in sorted(offsets.items()):
        document.setdefault(topic, {})[str(partition)] = offset
    return document


def from_document(document: Mapping[str, Mapping[str, int]]) -> dict[SourcePartition, int]:
    return {
        SourcePartition(topic, int(partition)): offset
        for topic, partitions in document.items()
        for partition, offset in partitions.items()
    }


def parse_offsets(option: str, text: str, *, minimum: int) -> dict[SourcePartition, int]:
    """Parses the offsets of an option. Raises OptionError for one below `minimum`."""
    error = OptionError(
        f'{option} must be JSON such as {{"orders":{{"0":23,"1":42}}}}, not {text!r}.'
    )
    document = _parse(text, error)
    try:
        offsets = from_document(document)
    except (AttributeError, ValueError):
        raise error from None
    for partition, offset in offsets.items():
        if type(offset) is not int or offset < minimum:
            raise OptionError(f"{option} has {offset!r} for {partition}, which is invalid.")
    return offsets


def parse_partitions(option: str, text: str) -> frozenset[SourcePartition]:
    """Parses the partitions of an option."""
    error = OptionError(f'{option} must be JSON such as {{"orders":[0,1]}}, not {text!r}.')
    parsed = set()
    for topic, partitions in _parse(text, error).items():
        if not isinstance(partitions, list):
            raise error
        for partition in partitions:
            if type(partition) is not int or partition < 0:
                raise error
            parsed.add(SourcePartition(topic, partition))
    if not parsed:
        raise OptionError(f"{option} names no partition.")
    return frozenset(parsed)


def _parse(text: str, error: OptionError) -> dict[str, Any]:
    try:
        document = json.loads(text)
    except ValueError:
        raise error from None
    if not isinstance(document, dict):
        raise error
    return document
