"""Builds Arrow batches of fetched records, across partitions, without an object per record."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from barnabas.client.consumer._completed_fetch import CompletedFetch
from barnabas.client.consumer._poller import Poller
from barnabas.client.consumer.fetch_buffer import BufferedError, FetchBuffer, error_message
from barnabas.client.errors import KafkaError, KafkaException
from barnabas.wire.errors import KafkaError as WireError
from barnabas.wire.records.arrow import Sizes, measure, runs_to_arrow
from barnabas.wire.records.decompressor import Decompressor
from barnabas.wire.records.read import Run

if TYPE_CHECKING:
    import pyarrow as pa

MAX_BYTES = 1 << 30
"""Limit of one Arrow batch: its 32-bit offsets end at 2 GiB."""

MAX_KEPT_BYTES = 16 << 20
"""Of the buffer for decompressed records, which is kept for the next Arrow batch."""


class ArrowBatchBuilder:
    """Collects the rows of one RecordBatch."""

    def __init__(self, max_rows: int, buffer: FetchBuffer, poller: Poller) -> None:
        if max_rows < 1:
            raise ValueError("max_rows must be at least 1")
        self.rows = 0
        self.is_full = False
        self._max_rows = max_rows
        self._buffer = buffer
        self._poller = poller
        self._size_bytes = 0
        self._decompressor = buffer.spare_decompressor or Decompressor(MAX_KEPT_BYTES)
        buffer.spare_decompressor = None  # while it is in use
        self._runs: list[Run] = []
        self._sizes: list[Sizes] = []
        self._segments: list[tuple[str, int, int]] = []  # topic, partition, rows

    def take(self) -> None:
        """Takes the buffered rows. Raises KafkaException for an error before the first row."""
        while not self.is_full:
            fetch = self._poller.current_fetch
            try:
                if fetch is not None:
                    self._read(fetch)
                    if self.is_full:
                        return
            except WireError as corrupt:
                error = KafkaError(KafkaError._BAD_MSG, str(corrupt))
                self._on_error(BufferedError(error_message(error)))
            buffered = self._buffer.advance()
            if buffered is not None:
                self._on_error(buffered)
            elif self._poller.current_fetch is None:
                return

    def build(self) -> "pa.RecordBatch":
        """Returns the columns topic, partition, offset, timestamp, key, value and headers."""
        import pyarrow as pa

        read = runs_to_arrow(self._runs, self._sizes)
        self._decompressor.clear()
        self._buffer.spare_decompressor = self._decompressor
        columns = {
            "topic": _repeat(pa.string(), [(name, rows) for name, _, rows in self._segments]),
            "partition": _repeat(pa.int32(), [(index, rows) for _, index, rows in self._segments]),
        }
        for name in ("offset", "timestamp", "key", "value", "headers"):
            columns[name] = read.column(name)
        return pa.RecordBatch.from_pydict(columns)

    def _read(self, fetch: CompletedFetch) -> None:
        rows_before = self.rows
        topic, partition = fetch.progress.topic, fetch.progress.partition
        try:
            while not self.is_full:
                run = fetch.take_run(self._max_rows - self.rows, self._decompressor)
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
                if self._segments and self._segments[-1][:2] == (topic, partition):
                    rows += self._segments.pop()[2]
                self._segments.append((topic, partition, rows))

    def _on_error(self, buffered: BufferedError) -> None:
        error = buffered.message.error()
        if error == KafkaError._PARTITION_EOF:
            return
        if not self.rows:
            raise KafkaException(error)
        self._buffer.put_back(buffered)
        self.is_full = True


def _repeat(kind: "pa.DataType", parts: Sequence[tuple[object, int]]) -> "pa.Array":
    """Returns an array that repeats each value by its count."""
    import pyarrow as pa

    repeated = [pa.repeat(pa.scalar(value, kind), count) for value, count in parts]
    return pa.concat_arrays(repeated) if repeated else pa.nulls(0, kind)
