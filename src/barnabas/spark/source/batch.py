"""A batch read: the driver plans offsets and tasks once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, InputPartition

from barnabas.spark.source.cluster_client import SourceClusterClient
from barnabas.spark.source.connection import SourceError, connect
from barnabas.spark.source.data_loss import DataLossPolicy
from barnabas.spark.source.offset_bounds import resolve
from barnabas.spark.source.offsets import OffsetRange, PartitionOffsets, SourcePartition
from barnabas.spark.source.options import SourceOptions
from barnabas.spark.source.row_decoder import RowDecoder
from barnabas.spark.source.task_planner import TaskRanges, plan

if TYPE_CHECKING:
    import pyarrow as pa


class TopicBatchReader(DataSourceReader):
    def __init__(self, options: SourceOptions, row_decoder: RowDecoder) -> None:
        self._options = options
        self._row_decoder = row_decoder

    def partitions(self) -> list[InputPartition]:
        ranges = planned_ranges(self._options, SourceClusterClient(connect(self._options.client)))
        return [TaskRanges(task) for task in plan(ranges, self._options.sizing)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if partition.value is None:  # Spark's own partition if there is nothing to read
            return iter(())
        from barnabas.spark.source.task import (
            read,  # not in the driver, which starts faster without it
        )

        records = read(partition.value, self._options.client, self._options.data_loss_policy)
        return map(self._row_decoder.apply, records)


def planned_ranges(options: SourceOptions, cluster: SourceClusterClient) -> list[OffsetRange]:
    """Returns everything that the batch reads."""
    partitions = cluster.partitions(options.topics)
    starts = resolve(
        options.starting,
        partitions,
        cluster.offsets,
        option="startingOffsets",
        is_late_latest=options.is_late_latest,
    )
    ends = resolve(
        options.ending, partitions, cluster.offsets, option="endingOffsets", is_late_latest=True
    )
    if isinstance(options.ending, PartitionOffsets):
        ends = _limit_to_log_ends(ends, cluster.latest(partitions), options.data_loss_policy)
    _require_order(starts, ends)
    return [
        OffsetRange(*partition, start, ends[partition])
        for partition, start in sorted(starts.items())
    ]


def _limit_to_log_ends(
    ends: dict[SourcePartition, int],
    latest: dict[SourcePartition, int],
    data_loss_policy: DataLossPolicy,
) -> dict[SourcePartition, int]:
    """Limits `ends` to the log ends: a task would wait in vain for records after them."""
    for partition, end in sorted(ends.items()):
        log_end = latest.get(partition, 0)  # the partition may have been deleted since
        if end > log_end:
            data_loss_policy.on_data_loss(
                f"endingOffsets has {end} for {partition}, which ends at offset {log_end}."
            )
    return {partition: min(end, latest.get(partition, 0)) for partition, end in ends.items()}


def _require_order(starts: dict[SourcePartition, int], ends: dict[SourcePartition, int]) -> None:
    """Raises SourceError for a range that ends before it starts, as Spark's connector does."""
    for partition, start in sorted(starts.items()):
        end = ends[partition]
        if start > end:
            raise SourceError(
                f"{partition} would be read from offset {start} to {end}, which is before its"
                f" start: correct startingOffsets or endingOffsets."
            )
