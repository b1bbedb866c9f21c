"""Decides where the next micro-batch ends and what it reads; does no I/O."""

import math
from collections.abc import Mapping

from barnabas.spark.source.data_loss import DataLossPolicy
from barnabas.spark.source.offsets import OffsetRange, Offsets, SourcePartition
from barnabas.spark.source.options import AdmissionLimits


def available_records(start: Offsets, ends: Offsets) -> int:
    """Returns the number of offsets between `start` and `ends`."""
    return sum(max(0, end - start.get(partition, end)) for partition, end in ends.items())


def apply_rate_limit(start: Offsets, ends: Offsets, limit: int) -> dict[SourcePartition, int]:
    """Returns ends at most `limit` offsets away, for each partition in proportion to its records.

    As in Spark's connector each partition advances by at least one, so it may be a few more.
    """
    total = available_records(start, ends)
    if total <= limit:
        return dict(ends)
    limited = {}
    for partition, end in ends.items():
        first = start.get(partition, end)
        share = limit * max(0, end - first) / total
        limited[partition] = min(
            end, first + (math.ceil(share) if share < 1 else math.floor(share))
        )
    return limited


class AdmissionPacer:
    """Delays a micro-batch until there are enough records or the maximum delay has passed."""

    def __init__(self, limits: AdmissionLimits) -> None:
        self._limits = limits
        self._last_batch_s = -math.inf

    def should_wait(self, offsets: int, now_s: float) -> bool:
        """Whether to wait because there are only `offsets` records."""
        minimum = self._limits.min_offsets
        if minimum is None:
            return False
        if offsets < minimum and now_s - self._last_batch_s < self._limits.max_delay_ms / 1000:
            return True
        self._last_batch_s = now_s
        return False


def ranges_between(
    start: Offsets,
    end: Offsets,
    new: Mapping[SourcePartition, int],
    data_loss_policy: DataLossPolicy,
) -> list[OffsetRange]:
    """Returns the ranges from `start` to `end`; `new` has the first offsets of new partitions.

    Calls `loss` for partitions that are gone, and for those whose end is before their start.
    """
    for partition in sorted(start.keys() - end.keys()):
        data_loss_policy.on_data_loss(
            f"{partition}, read to offset {start[partition]}, no longer exists."
        )
    ranges = []
    for partition, last in sorted(end.items()):
        first = start.get(partition, new.get(partition))
        if first is None:
            data_loss_policy.on_data_loss(f"{partition} was new, and no longer exists.")
            continue
        if partition not in start and first > 0:
            data_loss_policy.on_data_loss(
                f"{partition} is new, and starts at offset {first}, not at 0."
            )
        if last < first:
            data_loss_policy.on_data_loss(
                f"{partition} ends at offset {last}, although it was read to {first}."
            )
        elif last > first:
            ranges.append(OffsetRange(*partition, first, last))
    return ranges
