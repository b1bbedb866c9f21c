"""Resolves the starting and ending options to offsets."""

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
"""Looks up offsets by timestamp in ms, LATEST or EARLIEST; -1 if no record is that recent."""


def resolve(
    bound: Bound,
    partitions: Collection[SourcePartition],
    lookup: OffsetLookup,
    *,
    option: str,
    is_late_latest: bool,
) -> dict[SourcePartition, int]:
    """Returns an offset for each partition.

    `named` is the option that the bound comes from. A timestamp after the last record of a
    partition means its end if `is_late_latest`, else it raises SourceError.
    """
    match bound:
        case SameOffset():
            return _require_partitions(lookup(dict.fromkeys(partitions, bound.offset)), partitions)
        case PartitionOffsets():
            _require_all(bound.offsets, partitions, option)
            symbolic = {key: offset for key, offset in bound.offsets.items() if offset < 0}
            return {**bound.offsets, **_require_partitions(lookup(symbolic), symbolic)}
        case Timestamp():
            timestamps_ms = dict.fromkeys(partitions, bound.timestamp_ms)
        case PartitionTimestamps():
            _require_all(bound.timestamps_ms, partitions, option)
            timestamps_ms = dict(bound.timestamps_ms)
    offsets = _require_partitions(lookup(timestamps_ms), timestamps_ms)
    late = {partition: LATEST for partition, offset in offsets.items() if offset < 0}
    if late and not is_late_latest:
        first = min(late)
        raise SourceError(
            f"{first} has no record at or after {timestamps_ms[first]} ms. Set"
            f" startingOffsetsByTimestampStrategy to latest to start at its end then."
        )
    return offsets | _require_partitions(lookup(late), late)


def depends_on_now(bound: Bound) -> bool:
    """Whether the offsets of the bound change when more records are written."""
    match bound:
        case SameOffset():
            return bound.offset == LATEST
        case PartitionOffsets():
            return LATEST in bound.offsets.values()
    return True


def _require_all(
    offsets: Mapping[SourcePartition, int], partitions: Collection[SourcePartition], option: str
) -> None:
    """Raises OptionError unless the option names exactly the partitions, as Spark's connector."""
    missing, unknown = set(partitions) - offsets.keys(), offsets.keys() - set(partitions)
    if missing:
        raise OptionError(f"{option} must name all partitions: {_list(missing)} is missing.")
    if unknown:
        raise OptionError(
            f"{option} names partitions that are not read or do not exist: {_list(unknown)}."
        )


def _require_partitions(
    offsets: dict[SourcePartition, int], partitions: Collection[SourcePartition]
) -> dict[SourcePartition, int]:
    missing = set(partitions) - offsets.keys()
    if missing:
        raise SourceError(f"There is no partition {_list(missing)}.")
    return offsets


def _list(partitions: Collection[SourcePartition]) -> str:
    names = [str(partition) for partition in sorted(partitions)]
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more
