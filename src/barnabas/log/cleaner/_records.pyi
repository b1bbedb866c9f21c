from collections.abc import Sequence

from barnabas.log.cleaner._indexes import SegmentIndexes
from barnabas.log.cleaner._offset_map import OffsetMap
from barnabas.wire.records.batch import BatchHeader, Readable, Writable

COMPILED: bool

def map_batches(
    offset_map: OffsetMap, batches: Readable, position: int, first_offset: int
) -> tuple[int, bool]: ...
def map_records(
    offset_map: OffsetMap, records: Readable, count: int, base_offset: int, first_offset: int
) -> bool: ...
def has_tombstones(records: Readable, count: int) -> bool: ...

class FilteredBatch:
    @property
    def header(self) -> BatchHeader: ...
    @property
    def is_changed(self) -> bool: ...
    @property
    def end(self) -> int: ...

class BatchFilter:
    def __init__(
        self,
        offset_map: OffsetMap,
        *,
        now_ms: int,
        delete_retention_ms: int,
        retained_offsets: Sequence[int],
        end_offset: int,
    ) -> None: ...
    @property
    def messages_read(self) -> int: ...
    @property
    def messages_kept(self) -> int: ...
    @property
    def bytes_read(self) -> int: ...
    @property
    def bytes_kept(self) -> int: ...
    @property
    def invalid_records(self) -> int: ...
    @property
    def earliest_horizon_ms(self) -> int: ...
    def filter_batches(
        self,
        source: Readable,
        position: int,
        out: Writable,
        out_position: int,
        indexes: SegmentIndexes,
    ) -> tuple[int, int]: ...
    def filter_records(
        self,
        header: BatchHeader,
        records: Readable,
        out: Writable,
        out_position: int,
        *,
        discard: bool = False,
        stamp_marker: bool = False,
        keep_empty: bool = False,
    ) -> FilteredBatch | None: ...
    def copy_batch(
        self,
        header: BatchHeader,
        batch: Readable,
        out: Writable,
        out_position: int,
        indexes: SegmentIndexes,
    ) -> int: ...
    def finish_batch(
        self,
        header: BatchHeader,
        out: Writable,
        out_position: int,
        end: int,
        indexes: SegmentIndexes,
    ) -> int: ...

def max_filtered_bytes(records_bytes: int, record_count: int) -> int: ...
