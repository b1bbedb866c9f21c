"""The records, acknowledgements and transactions that clients of a run observe."""

import zlib
from dataclasses import dataclass
from enum import Enum

PARTITIONS = 3

PartitionKey = tuple[str, int]
"""Topic and partition."""


@dataclass(slots=True, frozen=True)
class Acknowledgement:
    """An acknowledged record: its offset and checksum."""

    at_s: float
    partition: int
    offset: int
    checksum: int


class Outcome(Enum):
    COMMITTED = "committed"
    ABORTED = "aborted"
    UNKNOWN = "unknown"
    """The producer failed before the response: all records are committed, or none."""


@dataclass(slots=True)
class Transaction:
    number: int
    records: int
    outcome: Outcome = Outcome.UNKNOWN


@dataclass(slots=True, frozen=True)
class ObservedRecord:
    """A record: its offset, its writer and numbers, and the checksum of its value."""

    offset: int
    writer: str
    numbers: tuple[int, ...]
    checksum: int


def parse_record(offset: int, value: bytes) -> ObservedRecord:
    writer, first, *more = value.split(b" ", 4)
    # A writer without transactions writes one number, one with transactions three.
    numbers = [first, *more[:2]] if writer.startswith(b"t") else [first]
    return ObservedRecord(offset, writer.decode(), tuple(map(int, numbers)), zlib.crc32(value))
