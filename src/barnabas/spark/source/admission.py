"""How far the next micro-batch goes, and what it reads: decided here, asked elsewhere."""

import math
from collections.abc import Mapping

from barnabas.spark.source.data_loss import DataLossPolicy
from barnabas.spark.source.offsets import OffsetRange, Offsets, SourcePartition
from barnabas.spark.source.options import AdmissionLimits


def available_records(start: Offsets, ends: Offsets) -> int:
    """How many offsets there are to read."""
    return sum(max(0, end - start.get(each, end)) for each, end in ends.items())


def apply_rate_limit(start: Offsets, ends: Offsets, most: int) -> dict[SourcePartition, int]:
    """Ends that are `most` offsets away at most, each partition in proportion to what it has.

    As in the connector each goes on by one at least, so that it may be a few more.
    """
    total = available_records(start, ends)
    if total <= most:
        return dict(ends)
    near = {}
    for each, end in ends.items():
        begin = start.get(each, end)
        share = most * max(0, end - begin) / total
        near[each] = min(end, begin + (math.ceil(share) if share < 1 else math.floor(share)))
    return near


class AdmissionPacer:
    """Whether a micro-batch waits for more, until there is enough or it has waited too long."""

    def __init__(self, limits: AdmissionLimits) -> None:
        self._limits = limits
        self._last_s = -math.inf  # when there was a batch

    def should_wait(self, offsets: int, now_s: float) -> bool:
        """Whether so many are too few to go on with now."""
        least = self._limits.min_offsets
        if least is None:
            return False
        if offsets < least and now_s - self._last_s < self._limits.max_delay_ms / 1000:
            return True
        self._last_s = now_s
        return False


def ranges_between(
    start: Offsets, end: Offsets, new: Mapping[SourcePartition, int], loss: DataLossPolicy
) -> list[OffsetRange]:
    """What is to be read from `start` to `end`; `new` has where partitions begin that start lacks.

    `loss` is told of partitions that are gone, and of those whose offsets went back.
    """
    for each in sorted(start.keys() - end.keys()):
        loss.on_data_loss(f"{each}, read to offset {start[each]}, does not exist any more.")
    ranges = []
    for each, last in sorted(end.items()):
        first = start.get(each, new.get(each))
        if first is None:
            loss.on_data_loss(f"{each} is new, and does not exist any more.")
            continue
        if each not in start and first > 0:
            loss.on_data_loss(f"{each} is new, and begins at offset {first}, not at 0.")
        if last < first:
            loss.on_data_loss(f"{each} ends at offset {last}, although it was read to {first}.")
        elif last > first:
            ranges.append(OffsetRange(*each, first, last))
    return ranges
