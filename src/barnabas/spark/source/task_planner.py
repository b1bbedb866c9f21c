"""Plans tasks for ranges of offsets: few for few records, more if the options require it."""

import heapq
import itertools
from collections.abc import Iterable

from pyspark.sql.datasource import InputPartition

from barnabas.spark.source.offsets import OffsetRange
from barnabas.spark.source.options import TaskSizing

RECORDS_PER_TASK = 5_000
"""Fewer records are not worth a task: to start one takes longer than to read them."""

MAX_TASKS = 256
"""More tasks only if minPartitions or maxRecordsPerPartition require them."""

Task = tuple[OffsetRange, ...]


class TaskRanges(InputPartition):
    """The ranges of one task, as Spark sends them to it."""

    def __init__(self, value: Task) -> None:
        super().__init__(value)


def plan(ranges: Iterable[OffsetRange], sizing: TaskSizing) -> list[Task]:
    """Returns tasks of about the same size that read the ranges.

    A piece of a split range is larger than the other ranges of its task, and comes first in it.
    So tasks sorted by their first range keep the order of each partition, as `collect` shows it.
    """
    pieces = _split([range_ for range_ in ranges if len(range_) > 0], sizing)
    if not pieces:
        return []
    total = sum(map(len, pieces))
    desired = min(-(-total // RECORDS_PER_TASK), MAX_TASKS)
    count = min(max(desired, sizing.min_partitions or 1), len(pieces))
    loads: list[tuple[int, int]] = [(0, index) for index in range(count)]
    tasks: list[list[OffsetRange]] = [[] for _ in range(count)]
    for piece in sorted(pieces, key=len, reverse=True):
        load, index = loads[0]
        if sizing.max_records is not None and load + len(piece) > sizing.max_records and load:
            tasks.append([piece])
            heapq.heappush(loads, (len(piece), len(tasks) - 1))
        else:
            tasks[index].append(piece)
            heapq.heapreplace(loads, (load + len(piece), index))
    return [tuple(sorted(task)) for task in sorted(tasks)]


def _split(ranges: list[OffsetRange], sizing: TaskSizing) -> list[OffsetRange]:
    """Split ranges that are too large for a task, or too few for `minPartitions`."""
    if sizing.max_records is not None:
        max_records = sizing.max_records
        ranges = [
            piece
            for range_ in ranges
            for piece in _split_range(range_, -(-len(range_) // max_records))
        ]
    if sizing.min_partitions is None or len(ranges) >= sizing.min_partitions:
        return ranges
    total, desired = sum(map(len, ranges)), sizing.min_partitions
    parts = [max(1, len(range_) * desired // total) for range_ in ranges]
    for index in sorted(range(len(ranges)), key=lambda position: -len(ranges[position])):
        if sum(parts) < desired:
            parts[index] += 1
    return [
        piece
        for range_, count in zip(ranges, parts, strict=True)
        for piece in _split_range(range_, min(count, len(range_)))
    ]


def _split_range(whole: OffsetRange, count: int) -> list[OffsetRange]:
    edges = [whole.start + len(whole) * index // count for index in range(count + 1)]
    return [
        OffsetRange(whole.topic, whole.partition, start, end)
        for start, end in itertools.pairwise(edges)
    ]
