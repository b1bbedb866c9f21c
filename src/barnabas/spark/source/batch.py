"""A read that ends: offsets and tasks are planned once, in the driver."""

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
    def __init__(self, options: SourceOptions, shape: RowDecoder) -> None:
        self._options = options
        self._shape = shape

    def partitions(self) -> list[InputPartition]:
        ranges = planned_ranges(self._options, SourceClusterClient(connect(self._options.client)))
        return [TaskRanges(task) for task in plan(ranges, self._options.sizing)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if partition.value is None:  # Spark's own, where there is nothing to read
            return iter(())
        from barnabas.spark.source.task import read  # the driver starts sooner without

        records = read(partition.value, self._options.client, self._options.loss)
        return map(self._shape.apply, records)


def planned_ranges(options: SourceOptions, broker: SourceClusterClient) -> list[OffsetRange]:
    """All that is to be read."""
    partitions = broker.partitions(options.topics)
    starts = resolve(
        options.starting,
        partitions,
        broker.offsets,
        named="startingOffsets",
        is_late_latest=options.is_late_latest,
    )
    ends = resolve(
        options.ending, partitions, broker.offsets, named="endingOffsets", is_late_latest=True
    )
    if isinstance(options.ending, PartitionOffsets):
        ends = _ends_there(ends, broker.latest(partitions), options.loss)
    _require_order(starts, ends)
    return [OffsetRange(*each, start, ends[each]) for each, start in sorted(starts.items())]


def _ends_there(
    ends: dict[SourcePartition, int], latest: dict[SourcePartition, int], loss: DataLossPolicy
) -> dict[SourcePartition, int]:
    """What does not exist yet would be waited for in vain."""
    for each, end in sorted(ends.items()):
        last = latest.get(each, 0)  # it may be gone since it was planned
        if end > last:
            loss.on_data_loss(f"endingOffsets has {end} for {each}, which ends at offset {last}.")
    return {each: min(end, latest.get(each, 0)) for each, end in ends.items()}


def _require_order(starts: dict[SourcePartition, int], ends: dict[SourcePartition, int]) -> None:
    """As in the connector, such a read is a mistake and not an empty one."""
    for each, start in sorted(starts.items()):
        end = ends[each]
        if start > end:
            raise SourceError(
                f"{each} would be read from offset {start} to {end}, where it ends"
                f" before it begins: correct startingOffsets or endingOffsets."
            )
