"""Where reading begins and ends, in offsets: what an option says, asked of the cluster."""

from collections.abc import Callable, Collection, Mapping

from barnabas.spark.naming import OptionError
from barnabas.spark.source.connection import SourceError
from barnabas.spark.source.offsets import (
    LATEST,
    AtTime,
    AtTimes,
    Bound,
    Everywhere,
    Given,
    Partition,
)

Ask = Callable[[Mapping[Partition, int]], dict[Partition, int]]
"""Offsets by time in ms, LATEST or EARLIEST; -1 where no record is as young as that."""


def resolve(
    bound: Bound,
    partitions: Collection[Partition],
    ask: Ask,
    *,
    named: str,
    is_late_latest: bool,
) -> dict[Partition, int]:
    """An offset for each partition.

    `named` are the options that the bound may come from. A time after the last record of a
    partition is its end if `is_late_latest`, else a SourceError.
    """
    match bound:
        case Everywhere():
            return _found(ask(dict.fromkeys(partitions, bound.offset)), partitions)
        case Given():
            _require_all(bound.offsets, partitions, named)
            asked = {each: offset for each, offset in bound.offsets.items() if offset < 0}
            return {**bound.offsets, **_found(ask(asked), asked)}
        case AtTime():
            times = dict.fromkeys(partitions, bound.timestamp_ms)
        case AtTimes():
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
        case Everywhere():
            return bound.offset == LATEST
        case Given():
            return LATEST in bound.offsets.values()
    return True


def _require_all(
    given: Mapping[Partition, int], partitions: Collection[Partition], named: str
) -> None:
    """As in the connector: an option that names partitions names all of them, and no others."""
    missing, unknown = set(partitions) - given.keys(), given.keys() - set(partitions)
    if missing:
        raise OptionError(f"{named} must name all partitions: {_list(missing)} is missing.")
    if unknown:
        raise OptionError(f"{named} names what is not read or does not exist: {_list(unknown)}.")


def _found(answers: dict[Partition, int], asked: Collection[Partition]) -> dict[Partition, int]:
    missing = set(asked) - answers.keys()
    if missing:
        raise SourceError(f"There is no partition {_list(missing)}.")
    return answers


def _list(partitions: Collection[Partition]) -> str:
    named = [str(each) for each in sorted(partitions)]
    more = f" and {len(named) - 3} more" if len(named) > 3 else ""
    return ", ".join(named[:3]) + more
