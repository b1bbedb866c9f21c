"""The first pass of a cleaning: the last offset of each key in the dirty part of a log."""

from barnabas.log.cleaner._offset_map import OffsetMap
from barnabas.log.cleaner._records import map_batches, map_records
from barnabas.log.cleaner.source import read_whole_batch
from barnabas.log.cleaner.transactions import CleanedTransactions
from barnabas.wire.records.batch import BatchHeader
from barnabas.wire.records.read import MAX_DECOMPRESSED_BYTES, record_bytes


class OffsetMapBuilder:
    """Adds the keys of committed records to an offset map, in the order of offsets."""

    __slots__ = ("_first_dirty_offset", "_transactions", "is_full", "offset_map")

    def __init__(
        self, offset_map: OffsetMap, transactions: CleanedTransactions, first_dirty_offset: int
    ) -> None:
        self.offset_map = offset_map
        self.is_full = False
        """Whether there are more keys than the map can have. It has all up to its latest offset."""
        self._transactions = transactions
        self._first_dirty_offset = first_dirty_offset
        offset_map.latest_offset = first_dirty_offset - 1

    def add_chunk(self, chunk: memoryview) -> int:
        """Adds the whole batches of a chunk; returns where they end."""
        position = self._add_without_transactions(chunk, 0)
        while not self.is_full and (header := read_whole_batch(chunk, position)) is not None:
            self._add_batch(header, chunk, position)
            if not self.is_full:
                self.skip_to(header.next_offset)
                position = self._add_without_transactions(chunk, position + header.size_bytes)
        return position

    def skip_to(self, offset: int) -> None:
        """There are no more keys before this offset."""
        self.offset_map.latest_offset = max(self.offset_map.latest_offset, offset - 1)

    def _add_without_transactions(self, chunk: memoryview, position: int) -> int:
        position, self.is_full = map_batches(
            self.offset_map, chunk, position, self._first_dirty_offset
        )
        return position

    def _add_batch(self, header: BatchHeader, chunk: memoryview, position: int) -> None:
        """Adds the keys of a transactional batch, unless it was aborted; follows markers."""
        if header.is_control:
            batch = chunk[position : position + header.size_bytes]
            self._transactions.on_control_batch(header, batch)
            return
        is_aborted = self._transactions.on_data_batch(header)
        if is_aborted or header.last_offset < self._first_dirty_offset:
            return
        records = record_bytes(chunk, position, header, MAX_DECOMPRESSED_BYTES)
        self.is_full = not map_records(
            self.offset_map,
            records,
            header.record_count,
            header.base_offset,
            self._first_dirty_offset,
        )
