"""What the clients of a run remember, whichever library they are of."""

import zlib
from dataclasses import dataclass
from enum import Enum

PARTITIONS = 3

Place = tuple[str, int]
"""Topic and partition."""


@dataclass(slots=True, frozen=True)
class Acknowledgement:
    """The cluster's word that a value is at this place."""

    at_s: float
    partition: int
    offset: int
    checksum: int


class Outcome(Enum):
    COMMITTED = "committed"
    ABORTED = "aborted"
    UNKNOWN = "unknown"
    """The producer was lost before it was told; all of it is there, or nothing."""


@dataclass(slots=True)
class Transaction:
    number: int
    records: int
    outcome: Outcome = Outcome.UNKNOWN


@dataclass(slots=True, frozen=True)
class Seen:
    """A record: where it is, who wrote it with which numbers, and the rest of it as a checksum."""

    offset: int
    writer: str
    numbers: tuple[int, ...]
    checksum: int


def parsed(offset: int, value: bytes) -> Seen:
    writer, first, *more = value.split(b" ", 4)
    # A writer without transactions gives one number, one with them three.
    numbers = [first, *more[:2]] if writer.startswith(b"t") else [first]
    return Seen(offset, writer.decode(), tuple(map(int, numbers)), zlib.crc32(value))
