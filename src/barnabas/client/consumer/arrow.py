"""Fetched batches to Arrow, across partitions, without an object per record."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from barnabas.client.consumer._completed_fetch import CompletedFetch
from barnabas.client.consumer._poller import Poller
from barnabas.client.consumer.fetch_buffer import BufferedError, FetchBuffer, error_message
from barnabas.client.errors import KafkaError, KafkaException
from barnabas.wire.errors import KafkaError as WireError
from barnabas.wire.records.arrow import Sizes, measure, runs_to_arrow
from barnabas.wire.records.read import Run

if TYPE_CHECKING:
    import pyarrow as pa

MAX_BYTES = 1 << 30
"""Of one batch: Arrow's own offsets end at 2 GiB."""


class ArrowBatchBuilder:
    """The rows of one RecordBatch while they are gathered."""

    def __init__(self, max_rows: int, inbox: FetchBuffer, tap: Poller) -> None:
        if max_rows < 1:
            raise ValueError("max_rows must be at least 1")
        self.rows = 0
        self.is_full = False
        self._max_rows = max_rows
        self._inbox = inbox
        self._tap = tap
        self._size_bytes = 0
        self._runs: list[Run] = []
        self._sizes: list[Sizes] = []
        self._places: list[tuple[str, int, int]] = []  # topic, partition, rows

    def take(self) -> None:
        """Take what is there. KafkaException for an error, once the rows before it are given."""
        while not self.is_full:
            cursor = self._tap.current_fetch
            try:
                if cursor is not None:
                    self._read(cursor)
                    if self.is_full:
                        return
            except WireError as error:
                broken = KafkaError(KafkaError._BAD_MSG, str(error))
                self._fail(BufferedError(error_message(broken)))
            notice = self._inbox.advance()
            if notice is not None:
                self._fail(notice)
            elif self._tap.current_fetch is None:
                return

    def batch(self) -> "pa.RecordBatch":
        """The columns topic, partition, offset, timestamp, key, value and headers."""
        import pyarrow as pa

        read = runs_to_arrow(self._runs, self._sizes)
        columns = {
            "topic": _repeated(pa.string(), [(name, rows) for name, _, rows in self._places]),
            "partition": _repeated(pa.int32(), [(index, rows) for _, index, rows in self._places]),
        }
        for name in ("offset", "timestamp", "key", "value", "headers"):
            columns[name] = read.column(name)
        return pa.RecordBatch.from_pydict(columns)

    def _read(self, cursor: CompletedFetch) -> None:
        rows_before = self.rows
        topic, partition = cursor.progress.topic, cursor.progress.partition
        try:
            while not self.is_full:
                run = cursor.take_run(self._max_rows - self.rows)
                if run is None:
                    return
                self._sizes.append(measure(run))
                self._runs.append(run)
                self.rows += run.record_count
                self._size_bytes += len(run.records)
                self.is_full = self.rows >= self._max_rows or self._size_bytes >= MAX_BYTES
        finally:
            if self.rows > rows_before:
                rows = self.rows - rows_before
                if self._places and self._places[-1][:2] == (topic, partition):
                    rows += self._places.pop()[2]
                self._places.append((topic, partition, rows))

    def _fail(self, notice: BufferedError) -> None:
        error = notice.message.error()
        if error == KafkaError._PARTITION_EOF:
            return
        if not self.rows:
            raise KafkaException(error)
        self._inbox.put_back(notice)
        self.is_full = True


def _repeated(kind: "pa.DataType", parts: Sequence[tuple[object, int]]) -> "pa.Array":
    """Each value so many times."""
    import pyarrow as pa

    repeated = [pa.repeat(pa.scalar(value, kind), count) for value, count in parts]
    return pa.concat_arrays(repeated) if repeated else pa.nulls(0, kind)
