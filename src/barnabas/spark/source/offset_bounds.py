"""Where reading begins and ends, in offsets: what an option says, asked of the cluster."""

from collections.abc import Callable, Collection, Mapping

from barnabas.spark.options_parser import OptionError
from barnabas.spark.source.connection import SourceError
from barnabas.spark.source.offsets import (
    LATEST,
    Bound,
    PartitionOffsets,
    PartitionTimestamps,
    SameOffset,
    SourcePartition,
    Timestamp,
)

OffsetLookup = Callable[[Mapping[SourcePartition, int]], dict[SourcePartition, int]]
"""Offsets by time in ms, LATEST or EARLIEST; -1 where no record is as young as that."""


def resolve(
    bound: Bound,
    partitions: Collection[SourcePartition],
    ask: OffsetLookup,
    *,
    named: str,
    is_late_latest: bool,
) -> dict[SourcePartition, int]:
    """An offset for each partition.

    `named` are the options that the bound may come from. A time after the last record of a
    partition is its end if `is_late_latest`, else a SourceError.
    """
    match bound:
        case SameOffset():
            return _found(ask(dict.fromkeys(partitions, bound.offset)), partitions)
        case PartitionOffsets():
            _require_all(bound.offsets, partitions, named)
            asked = {each: offset for each, offset in bound.offsets.items() if offset < 0}
            return {**bound.offsets, **_found(ask(asked), asked)}
        case Timestamp():
            times = dict.fromkeys(partitions, bound.timestamp_ms)
        case PartitionTimestamps():
            _require_all(bound.timestamps_ms, partitions, named)
            times = dict(bound.timestamps_ms)
    found = _found(ask(times), times)
    late = {each: LATEST for each, offset in found.items() if offset < 0}
    if late and not is_late_latest:
        first = min(late)
        raise SourceError(
            f"{first} has no record at or after {times[first]} ms. Set"
            f" startingOffsetsByTimestampStrategy to latest to begin at its end then."
        )
    return found | _found(ask(late), late)


def depends_on_now(bound: Bound) -> bool:
    """Whether it would be another offset later, when there are more records."""
    match bound:
        case SameOffset():
            return bound.offset == LATEST
        case PartitionOffsets():
            return LATEST in bound.offsets.values()
    return True


def _require_all(
    given: Mapping[SourcePartition, int], partitions: Collection[SourcePartition], named: str
) -> None:
    """As in the connector: an option that names partitions names all of them, and no others."""
    missing, unknown = set(partitions) - given.keys(), given.keys() - set(partitions)
    if missing:
        raise OptionError(f"{named} must name all partitions: {_list(missing)} is missing.")
    if unknown:
        raise OptionError(f"{named} names what is not read or does not exist: {_list(unknown)}.")


def _found(
    answers: dict[SourcePartition, int], asked: Collection[SourcePartition]
) -> dict[SourcePartition, int]:
    missing = set(asked) - answers.keys()
    if missing:
        raise SourceError(f"There is no partition {_list(missing)}.")
    return answers


def _list(partitions: Collection[SourcePartition]) -> str:
    named = [str(each) for each in sorted(partitions)]
    more = f" and {len(named) - 3} more" if len(named) > 3 else ""
    return ", ".join(named[:3]) + more
