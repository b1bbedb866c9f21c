"""Ranges of offsets become tasks: few where there is little to read, many where asked for."""

import heapq
import itertools
from collections.abc import Iterable

from pyspark.sql.datasource import InputPartition

from barnabas.spark.source.offsets import OffsetRange
from barnabas.spark.source.options import TaskSizing

RECORDS_PER_TASK = 5_000
"""Fewer are not worth a task of their own: starting one takes longer than reading them."""

MAX_TASKS = 256
"""More than these only where minPartitions or maxRecordsPerPartition ask for them."""

Task = tuple[OffsetRange, ...]


class TaskRanges(InputPartition):
    """What one task reads, as it travels to it."""

    def __init__(self, value: Task) -> None:
        super().__init__(value)


def plan(ranges: Iterable[OffsetRange], sizing: TaskSizing) -> list[Task]:
    """The tasks that read the ranges, about as large as each other.

    What is cut is larger than what shares a task with it, and comes first in it: so tasks in the
    order of their firsts keep the order of each partition, for whoever collects rows.
    """
    pieces = _split([each for each in ranges if len(each) > 0], sizing)
    if not pieces:
        return []
    total = sum(map(len, pieces))
    wanted = min(-(-total // RECORDS_PER_TASK), MAX_TASKS)
    count = min(max(wanted, sizing.min_partitions or 1), len(pieces))
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
    """Cut what is too large for one task, or too few for as many as are asked for."""
    if sizing.max_records is not None:
        most = sizing.max_records
        ranges = [piece for each in ranges for piece in _cut(each, -(-len(each) // most))]
    if sizing.min_partitions is None or len(ranges) >= sizing.min_partitions:
        return ranges
    total, wanted = sum(map(len, ranges)), sizing.min_partitions
    parts = [max(1, len(each) * wanted // total) for each in ranges]
    for index in sorted(range(len(ranges)), key=lambda at: -len(ranges[at])):
        if sum(parts) < wanted:
            parts[index] += 1
    return [
        piece
        for each, count in zip(ranges, parts, strict=True)
        for piece in _cut(each, min(count, len(each)))
    ]


def _cut(whole: OffsetRange, count: int) -> list[OffsetRange]:
    edges = [whole.start + len(whole) * index // count for index in range(count + 1)]
    return [
        OffsetRange(whole.topic, whole.partition, start, end)
        for start, end in itertools.pairwise(edges)
    ]
