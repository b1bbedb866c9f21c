"""The error reporter of sink writers: finds the original bytes of the records that they report."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from barnabas.connect.converters.converter import RowError
from barnabas.connect.data.batch import ConnectBatch
from barnabas.connect.execution.record_errors import RecordErrors, Stage, tolerance_exceeded
from barnabas.connect.execution.tracked_batch import TrackedBatch
from barnabas.spark.source.offsets import OffsetRange

if TYPE_CHECKING:
    import pyarrow as pa

CLASS_NAME: Final = "org.apache.kafka.connect.sink.SinkTask"
"""The class that Connect reports for records that a task could not write."""

Read = Callable[[tuple[OffsetRange, ...]], "Iterator[pa.RecordBatch]"]


class PutErrorReporter:
    """Implements `ErrorReporter`.

    Records of the batch that was passed to the writer last are found in memory. A writer that
    reports others, for example when it is closed, makes them be read again.
    """

    def __init__(self, errors: RecordErrors, ranges: Sequence[OffsetRange], read: Read) -> None:
        self._errors = errors
        self._ranges = ranges
        self._read = read
        self._raw: pa.RecordBatch | None = None
        self._tracked: TrackedBatch | None = None
        self._original_topics: dict[str, set[str]] = {}
        """Topics that records were read from, by the topic that they have after transforms."""

    @property
    def tolerates_errors(self) -> bool:
        return self._errors.settings.is_tolerant

    def on_batch(self, raw: pa.RecordBatch, tracked: TrackedBatch) -> None:
        """Called before the batch is passed to the writer."""
        self._raw, self._tracked = raw, tracked
        read_from = raw.column("topic")[tracked.rows[0].as_py()].as_py()
        for topic in tracked.batch.topic.unique().to_pylist():
            self._original_topics.setdefault(topic, set()).add(read_from)

    def report(self, records: ConnectBatch, error: Exception) -> None:
        """Raises ToleranceExceededError if errors are not tolerated."""
        if not self.tolerates_errors:
            raise tolerance_exceeded(error, Stage.TASK_PUT)
        rows = _keys(records)
        known = self._rows_of_last_batch()
        recent = [known[key] for key in rows if key in known]
        if recent:
            assert self._raw is not None
            self._on_errors(self._raw, recent, error)
        for key in rows:
            if key not in known:
                self._on_errors(*self._read_again(*key), error)

    def _rows_of_last_batch(self) -> dict[tuple[str, int, int], int]:
        if self._tracked is None:
            return {}
        return dict(zip(_keys(self._tracked.batch), self._tracked.rows.to_pylist(), strict=True))

    def _read_again(
        self, topic: str, partition: int, offset: int
    ) -> tuple[pa.RecordBatch, list[int]]:
        """Reads one record. If transforms gave several topics one name, it may be any of theirs."""
        import pyarrow as pa

        topics = self._original_topics.get(topic, {topic})
        for each in self._ranges:
            if (
                each.topic in topics
                and each.partition == partition
                and each.start <= offset < each.end
            ):
                found = OffsetRange(each.topic, partition, offset, offset + 1)
                batches = [batch for batch in self._read((found,)) if batch.num_rows]
                if batches:
                    return batches[0], [0]
        columns = {
            "topic": pa.array([topic]),
            "partition": pa.array([partition], pa.int32()),
            "offset": pa.array([offset]),
            "timestamp": pa.nulls(1, pa.timestamp("ms", "UTC")),
            "key": pa.nulls(1, pa.binary()),
            "value": pa.nulls(1, pa.binary()),
            "headers": pa.nulls(1, pa.list_(pa.struct([("key", pa.string())]))),
        }
        return pa.RecordBatch.from_pydict(columns), [0]

    def _on_errors(self, raw: pa.RecordBatch, rows: Sequence[int], error: Exception) -> None:
        import pyarrow as pa

        failed = [RowError(row, error) for row in rows]
        self._errors.on_errors(
            Stage.TASK_PUT,
            CLASS_NAME,
            failed,
            lambda indices: raw.take(pa.array(indices, pa.int64())),
        )


def _keys(batch: ConnectBatch) -> list[tuple[str, int, int]]:
    columns = (batch.topic, batch.partition, batch.offset)
    return list(zip(*(column.to_pylist() for column in columns), strict=True))
