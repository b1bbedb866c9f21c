"""Offsets of partitions, and the JSON that Spark's Kafka connector writes them in.

    {"orders": {"0": 23, "1": -2}}

Checkpoints hold the same, so a query may go on with either connector.
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
    """The same for all partitions: LATEST or EARLIEST."""

    offset: int


@dataclass(slots=True, frozen=True)
class PartitionOffsets:
    """An offset, LATEST or EARLIEST for each partition."""

    offsets: Offsets


@dataclass(slots=True, frozen=True)
class Timestamp:
    """The first record at or after a time, in every partition."""

    timestamp_ms: int


@dataclass(slots=True, frozen=True)
class PartitionTimestamps:
    """The first record at or after a time of the partition's own."""

    timestamps_ms: Offsets


Bound = SameOffset | PartitionOffsets | Timestamp | PartitionTimestamps
"""Where reading begins or ends."""


@dataclass(slots=True, frozen=True, order=True)
class OffsetRange:
    """The records of a partition from `start` on and before `end`."""

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
    """In the order of names and numbers: Spark compares offsets by their text."""
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


def parse_offsets(option: str, text: str, *, least: int) -> dict[SourcePartition, int]:
    """What an option says of each partition; nothing in it is below `least`."""
    wrong = OptionError(
        f'{option} must be JSON such as {{"orders":{{"0":23,"1":42}}}}, not {text!r}.'
    )
    document = _parse(text, wrong)
    try:
        offsets = from_document(document)
    except (AttributeError, ValueError):
        raise wrong from None
    for each, offset in offsets.items():
        if type(offset) is not int or offset < least:
            raise OptionError(f"{option} has {offset!r} for {each}.")
    return offsets


def parse_partitions(option: str, text: str) -> frozenset[SourcePartition]:
    """The partitions that an option lists."""
    wrong = OptionError(f'{option} must be JSON such as {{"orders":[0,1]}}, not {text!r}.')
    found = set()
    for topic, partitions in _parse(text, wrong).items():
        if not isinstance(partitions, list):
            raise wrong
        for partition in partitions:
            if type(partition) is not int or partition < 0:
                raise wrong
            found.add(SourcePartition(topic, partition))
    if not found:
        raise OptionError(f"{option} names no partition.")
    return frozenset(found)


def _parse(text: str, wrong: OptionError) -> dict[str, Any]:
    try:
        document = json.loads(text)
    except ValueError:
        raise wrong from None
    if not isinstance(document, dict):
        raise wrong
    return document
