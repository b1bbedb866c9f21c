"""The second pass of a cleaning: copies what is kept from old segments to new ones.

Compiled code handles runs of batches. Those of transactions, and compressed ones that do not fit
into the rest of the output buffer, are handled here, one at a time.
"""

from collections.abc import Callable, Mapping, Sequence

from barnabas.log.cleaner._records import BatchFilter, max_filtered_bytes
from barnabas.log.cleaner.segment_writer import CleanedSegmentWriter
from barnabas.log.cleaner.source import read_whole_batch
from barnabas.log.cleaner.transactions import CleanedTransactions
from barnabas.wire.records.batch import (
    CODEC_BITS,
    CONTROL_BIT,
    HEADER_BYTES,
    TRANSACTIONAL_BIT,
    BatchHeader,
    CorruptBatch,
    crc_is_valid,
)
from barnabas.wire.records.compression import Codec, compress
from barnabas.wire.records.read import MAX_DECOMPRESSED_BYTES, record_bytes

_NOT_PLAIN_BITS = CODEC_BITS | TRANSACTIONAL_BIT | CONTROL_BIT


class RetainedBatches:
    """The batches that stay in the log even without records.

    The last batch of each live producer keeps its sequence number, and the last batch before
    `end_offset` keeps the end of the cleaned part.
    """

    __slots__ = ("_epochs_without_data", "end_offset", "last_offsets")

    def __init__(
        self, last_offsets: Sequence[int], epochs_without_data: Mapping[int, int], end_offset: int
    ) -> None:
        self.last_offsets = frozenset(last_offsets)
        self.end_offset = end_offset
        self._epochs_without_data = epochs_without_data
        """By producer id, for producers that have written only markers in their epoch."""

    def __contains__(self, header: BatchHeader) -> bool:
        if header.next_offset == self.end_offset or header.last_offset in self.last_offsets:
            return True
        epoch = self._epochs_without_data.get(header.producer_id)
        return header.is_control and epoch == header.producer_epoch


class SegmentCleaner:
    """Filters the batches of a group of segments into new segments."""

    __slots__ = (
        "_filter",
        "_new_writer",
        "_now_ms",
        "_out",
        "_retained",
        "_transactions",
        "writers",
    )

    def __init__(
        self,
        batch_filter: BatchFilter,
        transactions: CleanedTransactions,
        retained: RetainedBatches,
        new_writer: Callable[[int], CleanedSegmentWriter],
        *,
        now_ms: int,
        buffer_bytes: int,
    ) -> None:
        self.writers: list[CleanedSegmentWriter] = []
        """The new segments of the group, of which the last is being written."""
        self._filter = batch_filter
        self._transactions = transactions
        self._retained = retained
        self._new_writer = new_writer
        self._now_ms = now_ms
        self._out = bytearray(buffer_bytes)

    def begin_group(self, base_offset: int) -> None:
        self.writers = [self._new_writer(base_offset)]

    def clean_chunk(self, chunk: memoryview) -> int:
        """Cleans the whole batches of a chunk; returns where they end."""
        position = end = 0
        while True:
            position, end = self._filter.filter_batches(
                chunk, position, self._out, end, self._writer.indexes
            )
            header = read_whole_batch(chunk, position)
            if header is None:
                self._write(end)
                return position
            if header.base_offset < self._writer.indexes.next_offset:
                raise CorruptBatch(f"The batch at offset {header.base_offset} is out of order.")
            if not self._writer.indexes.has_space(len(self._out), header.last_offset):
                self._write(end)
                self.writers.append(self._new_writer(header.base_offset))
                end = 0
            elif header.attributes & _NOT_PLAIN_BITS:
                end = self._clean_batch(header, chunk[position : position + header.size_bytes], end)
                position += header.size_bytes
            else:
                end = self._reserve(end, header, header.size_bytes)

    @property
    def _writer(self) -> CleanedSegmentWriter:
        return self.writers[-1]

    def _clean_batch(self, header: BatchHeader, batch: memoryview, end: int) -> int:
        """Cleans a compressed, transactional or control batch; returns where the output ends."""
        if not crc_is_valid(batch, 0, header):
            raise CorruptBatch(
                f"The checksum of the batch at offset {header.base_offset} does not match."
            )
        if header.is_control:
            is_empty_marker, aborted = self._transactions.on_control_batch(header, batch)
            if aborted is not None:
                self._writer.add_aborted(aborted)
            horizon_ms = header.delete_horizon_ms
            discard = is_empty_marker and horizon_ms is not None and horizon_ms <= self._now_ms
        else:
            is_empty_marker = False
            discard = self._transactions.on_data_batch(header)
        records = b"" if discard else record_bytes(batch, 0, header, MAX_DECOMPRESSED_BYTES)
        if not discard and header.record_count > len(records):
            raise CorruptBatch(
                f"The batch at offset {header.base_offset} has fewer than {header.record_count} "
                "records."
            )
        end = self._reserve(end, header, max(len(records), header.size_bytes), discard=discard)
        filtered = self._filter.filter_records(
            header,
            records,
            self._out,
            end,
            discard=discard,
            stamp_marker=is_empty_marker,
            keep_empty=header in self._retained,
        )
        if filtered is None:
            return end
        indexes = self._writer.indexes
        if not filtered.is_changed:
            return self._filter.copy_batch(header, batch, self._out, end, indexes)
        batch_end = filtered.end
        if filtered.header.codec is not Codec.NONE:
            batch_end = self._compress(filtered.header.codec, end, batch_end)
        return self._filter.finish_batch(filtered.header, self._out, end, batch_end, indexes)

    def _reserve(
        self, end: int, header: BatchHeader, size_bytes: int, *, discard: bool = False
    ) -> int:
        """Makes space for a batch in the output buffer; returns where the output ends then."""
        needed_bytes = max_filtered_bytes(size_bytes, 0 if discard else header.record_count)
        if end + needed_bytes > len(self._out):
            self._write(end)
            end = 0
        if needed_bytes > len(self._out):
            self._out = bytearray(needed_bytes)
        return end

    def _compress(self, codec: Codec, start: int, end: int) -> int:
        """Compresses the records of the last batch in the buffer; returns where it ends then."""
        with memoryview(self._out) as view:
            compressed = compress(codec, view[start + HEADER_BYTES : end])
        batch_end = start + HEADER_BYTES + len(compressed)
        self._out[start + HEADER_BYTES : batch_end] = compressed  # grows if they do not shrink
        return batch_end

    def _write(self, end: int) -> None:
        with memoryview(self._out) as view:
            self._writer.write(view[:end])
