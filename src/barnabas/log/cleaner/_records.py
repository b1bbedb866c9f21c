# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
"""The loops of log compaction: compiled with C types, or run as the Python they are.

A cleaning reads the log twice. `map_batches` puts the last offset of each key into an `OffsetMap`;
a `BatchFilter` then copies what is still needed to a new segment. Both release the GIL over whole
runs of batches, except while a batch is passed to the library of its codec. Batches of transactions
are the caller's: it knows which were aborted.

The layout of a batch is in `wire/records/batch.py`, that of a record in `wire/records/_loops.py`.
Bytes come from disk, so every varint and every length is checked before anything is read. In C,
`data` is a pointer into a buffer; in Python it is the buffer itself. Both are indexed alike. The
fields of the classes are in `_records.pxd`.
"""

from __future__ import annotations

from array import array

from barnabas.log.cleaner._indexes import SegmentIndexes
from barnabas.log.cleaner._offset_map import OffsetMap
from barnabas.wire.records.batch import (
    APPEND_TIME_BIT,
    CODEC_BITS,
    CONTROL_BIT,
    CRC_END,
    DELETE_HORIZON_BIT,
    HEADER_BYTES,
    LENGTH_END,
    MAGIC,
    TRANSACTIONAL_BIT,
    BatchHeader,
    CorruptBatch,
    write_header,
)
from barnabas.wire.records.checksum import crc32c
from barnabas.wire.records.compression import Codec, CompressionError, compress
from barnabas.wire.records.decompressor import decompress_temporarily
from barnabas.wire.records.read import MAX_DECOMPRESSED_BYTES

try:
    import cython

    if not cython.compiled:  # Cython's own stand-in for itself is many times slower than ours
        raise ImportError
except ImportError:
    from barnabas.wire.records import _uncompiled as cython

if cython.compiled:
    from cython.cimports.barnabas.wire.records._checksum import crc
    from cython.cimports.libc.string import memcpy

    Data = cython.typedef(cython.pointer[cython.const[cython.uchar]])
    Room = cython.typedef(cython.pointer[cython.uchar])
    Size = cython.typedef(cython.Py_ssize_t)
    Long = cython.typedef(cython.longlong)
    Word = cython.typedef(cython.ulonglong)

COMPILED: bool = cython.compiled

_HEADER_BYTES = cython.declare(cython.Py_ssize_t, HEADER_BYTES)
_LENGTH_END = cython.declare(cython.Py_ssize_t, LENGTH_END)
_CRC_END = cython.declare(cython.Py_ssize_t, CRC_END)
_MAGIC = cython.declare(cython.longlong, MAGIC)
_CODEC_BITS = cython.declare(cython.longlong, CODEC_BITS)
_APPEND_TIME_BIT = cython.declare(cython.longlong, APPEND_TIME_BIT)
_TRANSACTIONAL_BIT = cython.declare(cython.longlong, TRANSACTIONAL_BIT)
_CONTROL_BIT = cython.declare(cython.longlong, CONTROL_BIT)
_DELETE_HORIZON_BIT = cython.declare(cython.longlong, DELETE_HORIZON_BIT)

_CACHED_KEYS = cython.declare(cython.longlong, 1 << 14)
_MIN_RECORD_BYTES = cython.declare(cython.longlong, 7)
# A timestamp delta of one byte may become one of ten, and then the length takes one byte more.
_MAX_GROWTH_BYTES = cython.declare(cython.longlong, 10)
_MAX_INT32 = cython.declare(cython.longlong, 0x7FFFFFFF)
_MAX_UINT32 = cython.declare(cython.longlong, 0xFFFFFFFF)
_MAX_INT64 = cython.declare(cython.longlong, 0x7FFFFFFFFFFFFFFF)

# Why the walk through a batch ended before its end.
_MALFORMED = cython.declare(cython.Py_ssize_t, -1)
_MAP_IS_FULL = cython.declare(cython.Py_ssize_t, -2)
_NEEDS_HORIZON = cython.declare(cython.Py_ssize_t, -3)
_NO_MEMORY = cython.declare(cython.Py_ssize_t, -4)
_BAD_CHECKSUM = cython.declare(cython.Py_ssize_t, -5)
_NO_ROOM = cython.declare(cython.Py_ssize_t, -6)

_CODECS = tuple(Codec)
_LAST_CODEC = cython.declare(cython.longlong, max(Codec))

# The fields of a batch header that decide. A size of 0: the batch is of another kind, or not whole;
# a negative size: the header is malformed.
Batch = cython.struct(
    size=cython.Py_ssize_t,
    base_offset=cython.longlong,
    attributes=cython.longlong,
    last_offset_delta=cython.longlong,
    base_timestamp=cython.longlong,
    max_timestamp=cython.longlong,
    count=cython.longlong,
)
# Where the fields of a record are. An end of -1: the record is malformed. A negative size: null.
Span = cython.struct(
    start=cython.Py_ssize_t,
    end=cython.Py_ssize_t,
    timestamp_delta=cython.longlong,
    offset_at=cython.Py_ssize_t,
    offset_delta=cython.longlong,
    key_at=cython.Py_ssize_t,
    key_size=cython.longlong,
    value_size=cython.longlong,
)
# An end of -1: it is cut short or too long.
Varint = cython.struct(value=cython.longlong, end=cython.Py_ssize_t)


# The first pass: the last offset of each key


def map_batches(
    offset_map: OffsetMap, batches: object, position: Size, first_offset: Long
) -> tuple[int, bool]:
    """Puts the keys of batches from `position` on, without records before `first_offset`.

    Returns the position of the first batch that is transactional, control, of an older format or
    not whole, and whether the map is full. If it is, the batch at that position is mapped up to the
    latest offset. Checksums are verified later, by the filter.
    """
    view: cython.const[cython.uchar][::1] = batches
    data: Data = _address(view)
    end: Size = len(view)
    group: RecordGroup = RecordGroup()
    lookahead: Lookahead = Lookahead()
    outcome: Size = 0
    last_offset: Long
    batch: Batch
    _check_position(position, end)
    while True:
        with cython.nogil:
            while True:
                lookahead.advance(offset_map, data, position, end)
                batch = _plain_batch(data, position, end)
                if batch.size <= 0:
                    break
                last_offset = batch.base_offset + batch.last_offset_delta
                if last_offset >= first_offset:
                    group.begin(batch, data, position + _HEADER_BYTES, position + batch.size)
                    outcome = _map_records(offset_map, group, first_offset)
                    if outcome < 0:
                        break
                    offset_map.latest_offset = max(offset_map.latest_offset, last_offset)
                position += batch.size
        if batch.size != 0:
            break
        batch = _compressed_batch(data, position, end)
        if batch.size <= 0:
            break
        last_offset = batch.base_offset + batch.last_offset_delta
        if last_offset >= first_offset:
            records = _decompress(batches, position, batch)
            if not map_records(offset_map, records, batch.count, batch.base_offset, first_offset):
                outcome = _MAP_IS_FULL
                break
            offset_map.latest_offset = max(offset_map.latest_offset, last_offset)
        position += batch.size
    if batch.size < 0 or outcome == _MALFORMED:
        raise _corrupt(_integer(data, position, 8), _MALFORMED)
    return position, outcome == _MAP_IS_FULL


def map_records(
    offset_map: OffsetMap,
    records: cython.const[cython.uchar][::1],
    count: Long,
    base_offset: Long,
    first_offset: Long,
) -> bool:
    """Puts the keys of the records of one batch; returns False if the map is full."""
    data: Data = _address(records)
    end: Size = len(records)
    group: RecordGroup = RecordGroup()
    batch: Batch = Batch(end, base_offset, 0, _MAX_INT32, 0, 0, count)
    outcome: Size = _MALFORMED
    if _is_valid(batch, end):
        with cython.nogil:
            group.begin(batch, data, 0, end)
            outcome = _map_records(offset_map, group, first_offset)
    if outcome == _MALFORMED:
        raise _corrupt(base_offset, _MALFORMED)
    return outcome != _MAP_IS_FULL


def has_tombstones(records: cython.const[cython.uchar][::1], count: Long) -> bool:
    """Returns whether a record of a batch has no value."""
    data: Data = _address(records)
    end: Size = len(records)
    position: Size = 0
    found: cython.bint = False
    span: Span
    with cython.nogil:
        while count > 0 and position >= 0 and not found:
            span = _span(data, position, end)
            position = span.end
            found = position >= 0 and span.value_size < 0
            count -= 1
    if position < 0:
        raise CorruptBatch("A batch is malformed.")
    return found


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _map_records(offset_map: OffsetMap, group: RecordGroup, first_offset: Long) -> Size:
    """Puts the keys of a batch; returns 0, or why it ended before."""
    size: Size = group.read(offset_map, first_offset, _MAX_INT64)
    index: Size
    while size > 0:
        for index in range(size):
            if not group.is_hashed(index, first_offset, _MAX_INT64):
                continue
            if offset_map.count >= offset_map.limit:
                return _MAP_IS_FULL
            offset_map.put(index, group.offset(index))
        size = group.read(offset_map, first_offset, _MAX_INT64)
    return size


@cython.final
@cython.cclass
class RecordGroup:
    """Reads a few records of a batch at a time, and requests their slots of the map from memory."""

    data: Data
    position: Size
    end: Size
    base_offset: Long
    base_timestamp: Long
    last_offset_delta: Long
    offset_delta: Long  # of the record before
    left: Long
    spans: Span[16]

    def __init__(self) -> None:
        if not cython.compiled:
            self.spans = [None] * 16

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def begin(self, batch: Batch, data: Data, position: Size, end: Size) -> cython.void:
        """Moves before the first record of a batch, whose records are between the positions."""
        self.data = data
        self.position = position
        self.end = end
        self.base_offset = batch.base_offset
        self.base_timestamp = batch.base_timestamp
        self.last_offset_delta = batch.last_offset_delta
        self.offset_delta = -1
        self.left = batch.count

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def read(self, offset_map: OffsetMap, first_offset: Long, last_offset: Long) -> Size:
        """Reads the next records, with hashes of the keys at offsets from the first to the last.

        Returns how many there are, or -1 if a record is malformed or bytes are left after them.
        """
        size: Size = 0
        span: Span
        while size < 16 and self.left > 0:
            span = _span(self.data, self.position, self.end)
            if (
                span.end < 0
                or span.offset_delta <= self.offset_delta
                or span.offset_delta > self.last_offset_delta
                or _overflows(self.base_timestamp, span.timestamp_delta)
            ):
                return _MALFORMED
            self.spans[size] = span
            self.position = span.end
            self.offset_delta = span.offset_delta
            self.left -= 1
            if self.is_hashed(size, first_offset, last_offset):
                offset_map.request(size, self.data, span.key_at, span.key_size)
            size += 1
        return _MALFORMED if size == 0 and self.position != self.end else size

    @cython.cfunc
    @cython.inline
    @cython.nogil
    @cython.exceptval(check=False)
    def is_hashed(self, index: Size, first_offset: Long, last_offset: Long) -> cython.bint:
        offset: Long = self.offset(index)
        return self.spans[index].key_size >= 0 and first_offset <= offset <= last_offset

    @cython.cfunc
    @cython.inline
    @cython.nogil
    @cython.exceptval(check=False)
    def offset(self, index: Size) -> Long:
        return self.base_offset + self.spans[index].offset_delta


@cython.final
@cython.cclass
class Lookahead:
    """Requests slots for batches of one record, which have no others to be grouped with.

    For a map that fits into the caches this is not worth hashing a key twice.
    """

    position: Size  # of the first batch without a request
    distance: Size  # number of batches before it

    def __init__(self) -> None:
        self.position = 0
        self.distance = 0

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def advance(self, offset_map: OffsetMap, data: Data, position: Size, end: Size) -> cython.void:
        """Keeps a distance to the reader, who has come to the batch at `position`."""
        batch: Batch
        span: Span
        if offset_map.count < _CACHED_KEYS:
            return
        if self.position <= position:
            self.position = position
            self.distance = 0
        else:
            self.distance -= 1
        while self.distance < 6:
            batch = _plain_batch(data, self.position, end)
            if batch.size <= 0 or batch.count != 1:
                return
            span = _span(data, self.position + _HEADER_BYTES, self.position + batch.size)
            if span.end >= 0 and span.key_size >= 0:
                offset_map.prefetch(data, span.key_at, span.key_size)
            self.position += batch.size
            self.distance += 1


# The second pass: what is kept


@cython.final
@cython.cclass
class FilteredBatch:
    """What `filter_records` keeps of a batch.

    If nothing changed, the original bytes are to be copied. Otherwise the kept records are in the
    buffer up to `end`, uncompressed; the header has the codec that they are to be written with.
    """

    def __init__(self, header: BatchHeader, is_changed: cython.bint, end: Size) -> None:
        self.header = header
        self.is_changed = is_changed
        self.end = end


@cython.final
@cython.cclass
class BatchFilter:
    """Decides record by record what a cleaning keeps, and writes it.

    A record is kept if it is the last of its key, or later than the map. The last record of a key
    that is a tombstone is kept until the delete horizon of its batch. The first cleaning that keeps
    a tombstone sets the horizon, which is never moved later.

    Batches that end at `retained_offsets`, in ascending order, are kept even if they are empty: a
    producer's last sequence is in them. So is the one that ends before `end_offset`, or the end of
    the log would be lost.
    """

    def __init__(
        self,
        offset_map: OffsetMap,
        *,
        now_ms: int,
        delete_retention_ms: int,
        retained_offsets: object,
        end_offset: int,
    ) -> None:
        self.offset_map = offset_map
        self.now_ms = now_ms
        horizon_ms = now_ms + delete_retention_ms
        # Beyond an int64 Kafka sets none either: such tombstones stay.
        self.new_horizon_ms = -1 if horizon_ms > 0x7FFFFFFFFFFFFFFF else horizon_ms
        self.retained_offsets = array("q", retained_offsets)
        self.end_offset = end_offset
        self.room_bytes = 0
        self.messages_read = 0
        self.messages_kept = 0
        self.bytes_read = 0
        self.bytes_kept = 0
        self.invalid_records = 0
        self.earliest_horizon_ms = -1

    def filter_batches(
        self,
        source: object,
        position: Size,
        out: object,
        out_position: Size,
        indexes: SegmentIndexes,
    ) -> tuple[int, int]:
        """Writes what is kept of batches from `position` on. Returns both positions after.

        It ends before a batch that `map_batches` ends at, or that may be too large: for `out` with
        `max_filtered_bytes`, or for the segment by `indexes.has_space`. It also ends before a
        corrupt batch; if that is the first, it raises CorruptBatch.
        """
        batches: cython.const[cython.uchar][::1] = source
        space: cython.uchar[::1] = out
        data: Data = _address(batches)
        room: Room = _room(space)
        end: Size = len(batches)
        room_end: Size = len(space)
        first: Size = position
        outcome: Size = 0
        group: RecordGroup = RecordGroup()
        lookahead: Lookahead = Lookahead()
        kept: KeptRecords = KeptRecords()
        batch: Batch
        _check_position(position, end)
        _check_position(out_position, room_end)
        while True:
            with cython.nogil:
                while True:
                    lookahead.advance(self.offset_map, data, position, end)
                    batch = _plain_batch(data, position, end)
                    if batch.size > 0 and batch.base_offset < indexes.next_offset:
                        outcome = _MALFORMED
                        break
                    if batch.size <= 0 or not _fits(batch, room_end - out_position, indexes):
                        break
                    kept.begin(batch, data, room, out_position)
                    outcome = _filter_plain(self, group, kept, position, indexes)
                    if outcome < 0:
                        break
                    position += batch.size
                    out_position = outcome
            if batch.size != 0:
                break
            batch = _compressed_batch(data, position, end)
            if batch.size <= 0:
                break
            kept.begin(batch, data, room, out_position)
            outcome = _filter_compressed(self, group, kept, source, position, out, indexes)
            if outcome < 0:
                break
            position += batch.size
            out_position = outcome
        if outcome == _NO_MEMORY:
            raise MemoryError("There is no memory for the entries of an index.")
        if batch.size < 0:
            outcome = _MALFORMED
        if outcome < 0 and outcome != _NO_ROOM and position == first:
            raise _corrupt(_integer(data, position, 8), outcome)
        return position, out_position

    def filter_records(
        self,
        header: BatchHeader,
        records: cython.const[cython.uchar][::1],
        out: cython.uchar[::1],
        out_position: Size,
        *,
        discard: cython.bint = False,
        stamp_marker: cython.bint = False,
        keep_empty: cython.bint = False,
    ) -> object:
        """Filters one batch of any kind, whose checksum is verified and records decompressed.

        Returns None if the batch is dropped. What is kept of a changed batch is written to `out`
        after space for its header, in at most `max_filtered_bytes`. Then `copy_batch` or
        `finish_batch` completes it.

        Records of a control batch are kept whatever their keys are; `stamp_marker` sets a delete
        horizon, if the batch has none. `discard` drops all records without reading them.
        `keep_empty` keeps a batch without records, also if no retained offset says so.
        """
        batch: Batch = Batch(
            header.length + _LENGTH_END,
            header.base_offset,
            header.attributes,
            header.last_offset_delta,
            header.base_timestamp,
            header.max_timestamp,
            header.record_count,
        )
        data: Data = _address(records)
        end: Size = len(records)
        outcome: Size = 0
        if not _is_valid(batch, _MAX_INT64 if discard else end):
            raise _corrupt(batch.base_offset, _MALFORMED)
        keep_empty |= _is_retained(self, batch, header.producer_id)
        if discard and not keep_empty:
            self.bytes_read += batch.size
            return None
        most: Long = _HEADER_BYTES if discard else max_filtered_bytes(end, batch.count)
        if out_position < 0 or most > len(out) - out_position:
            raise ValueError(f"The batch at offset {batch.base_offset} may not fit.")
        group: RecordGroup = RecordGroup()
        kept: KeptRecords = KeptRecords()
        kept.begin(batch, data, _room(out), out_position)
        if not discard:
            with cython.nogil:
                outcome = _filter(self, group, kept, 0, end, stamp_marker)
        if outcome < 0:
            raise _corrupt(batch.base_offset, outcome)
        kept.finish()
        _count_read(self, kept)
        if kept.count == 0 and not keep_empty:
            return None
        if not kept.is_changed:
            return FilteredBatch(header, False, out_position + batch.size)
        return FilteredBatch(_rebuilt_header(header, kept), True, kept.position)

    def copy_batch(
        self,
        header: BatchHeader,
        batch: cython.const[cython.uchar][::1],
        out: cython.uchar[::1],
        out_position: Size,
        indexes: SegmentIndexes,
    ) -> int:
        """Writes the batch as it is, and counts it. Returns the position after it."""
        end: Size = out_position + len(batch)
        if out_position < 0 or end > len(out):
            raise ValueError(f"The batch at offset {header.base_offset} does not fit.")
        _copy(_room(out), out_position, _address(batch), 0, len(batch))
        self._on_batch_written(header, indexes)
        return end

    def finish_batch(
        self,
        header: BatchHeader,
        out: cython.uchar[::1],
        out_position: Size,
        end: Size,
        indexes: SegmentIndexes,
    ) -> int:
        """Writes the header before records that end at `end`, and counts the batch.

        Returns the position after the batch.
        """
        if out_position < 0 or end - out_position < _HEADER_BYTES or end > len(out):
            raise ValueError(f"The batch at offset {header.base_offset} does not fit.")
        header = header._replace(length=end - out_position - _LENGTH_END)
        write_header(memoryview(out), out_position, header)
        self._on_batch_written(header, indexes)
        return end

    def _on_batch_written(self, header: BatchHeader, indexes: SegmentIndexes) -> None:
        indexes.on_batch(header.size_bytes, header.last_offset, header.max_timestamp)
        horizon_ms = header.delete_horizon_ms
        _count_written(
            self, header.size_bytes, header.record_count, -1 if horizon_ms is None else horizon_ms
        )


def max_filtered_bytes(records_bytes: Long, record_count: Long) -> int:
    """Returns how large a batch may become by filtering; deltas to a delete horizon are longer."""
    return _HEADER_BYTES + records_bytes + record_count * _MAX_GROWTH_BYTES


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _filter_plain(
    batch_filter: BatchFilter,
    group: RecordGroup,
    kept: KeptRecords,
    position: Size,
    indexes: SegmentIndexes,
) -> Size:
    """Writes what is kept of a plain batch; returns the position after it, or why it ended."""
    data: Data = kept.data
    end: Size = position + kept.batch.size
    outcome: Size
    if not _matches_checksum(data, position, end):
        return _BAD_CHECKSUM
    outcome = _filter(batch_filter, group, kept, position + _HEADER_BYTES, end, False)
    if outcome < 0:
        return outcome
    kept.finish()
    return _complete(batch_filter, kept, data, position, indexes)


@cython.cfunc
def _filter_compressed(
    batch_filter: BatchFilter,
    group: RecordGroup,
    kept: KeptRecords,
    source: object,
    position: Size,
    out: object,
    indexes: SegmentIndexes,
) -> Size:
    """Writes what is kept of a compressed batch; returns as `_filter_plain` does, or no room."""
    batch: Batch = kept.batch
    data: Data = kept.data
    room_bytes: Size = len(out) - kept.out_position
    last_offset: Long = batch.base_offset + batch.last_offset_delta
    outcome: Size
    if batch.base_offset < indexes.next_offset:
        return _MALFORMED
    if room_bytes < max(batch.size, batch_filter.room_bytes):
        return _NO_ROOM
    if not indexes.has_space(len(out), last_offset):
        return _NO_ROOM
    if not _matches_checksum(data, position, position + batch.size):
        return _BAD_CHECKSUM
    records: cython.const[cython.uchar][::1] = _decompress(source, position, batch)
    end: Size = len(records)
    if not _is_valid(batch, end):
        return _MALFORMED
    batch_filter.room_bytes = max_filtered_bytes(end, batch.count)
    if room_bytes < batch_filter.room_bytes:
        return _NO_ROOM
    kept.data = _address(records)
    with cython.nogil:
        outcome = _filter(batch_filter, group, kept, 0, end, False)
    if outcome < 0:
        return outcome
    kept.finish()
    if kept.is_changed and kept.count > 0 and not _compress(kept, out):
        return _NO_ROOM
    return _complete(batch_filter, kept, data, position, indexes)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _complete(
    batch_filter: BatchFilter,
    kept: KeptRecords,
    data: Data,
    position: Size,
    indexes: SegmentIndexes,
) -> Size:
    """Completes the batch that was at `position` of the data; returns as `_filter_plain` does."""
    batch: Batch = kept.batch
    size: Size = batch.size
    last_offset: Long = batch.base_offset + batch.last_offset_delta
    _count_read(batch_filter, kept)
    if kept.count == 0 and not _is_retained(batch_filter, batch, _integer(data, position + 43, 8)):
        return kept.out_position
    if kept.is_changed:
        size = kept.position - kept.out_position
        _copy(kept.room, kept.out_position, data, position, _HEADER_BYTES)
        _patch_header(kept, size)
    else:
        _copy(kept.room, kept.out_position, data, position, size)
    _count_written(batch_filter, size, kept.count, kept.horizon_ms)
    if not indexes.add_batch(size, last_offset, kept.max_timestamp):
        return _NO_MEMORY
    return kept.out_position + size


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _filter(
    batch_filter: BatchFilter,
    group: RecordGroup,
    kept: KeptRecords,
    position: Size,
    end: Size,
    stamp: cython.bint,
) -> Size:
    """Filters the records between the positions; returns 0, or a negative number if malformed.

    A kept tombstone may say that the batch gets a delete horizon. Then all timestamps are relative
    to it, and what was written before is written again.
    """
    can_stamp: cython.bint = (
        not kept.batch.attributes & _DELETE_HORIZON_BIT and batch_filter.new_horizon_ms >= 0
    )
    outcome: Size = _NEEDS_HORIZON
    if not stamp or not can_stamp:
        group.begin(kept.batch, kept.data, position, end)
        outcome = _keep(batch_filter, group, kept, batch_filter.offset_map, can_stamp)
    if outcome == _NEEDS_HORIZON:
        group.begin(kept.batch, kept.data, position, end)
        kept.stamp(batch_filter.new_horizon_ms)
        outcome = _keep(batch_filter, group, kept, batch_filter.offset_map, False)
    return outcome


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _keep(
    batch_filter: BatchFilter,
    group: RecordGroup,
    kept: KeptRecords,
    offset_map: OffsetMap,
    stops_at_tombstones: cython.bint,
) -> Size:
    """Keeps or drops each record of the group's batch; returns 0, or why it ended before."""
    keeps_tombstones: cython.bint = (
        not kept.batch.attributes & _DELETE_HORIZON_BIT
        or batch_filter.now_ms < kept.batch.base_timestamp
    )
    last_judged: Long = -1 if kept.batch.attributes & _CONTROL_BIT else offset_map.latest_offset
    index: Size
    size: Size = group.read(offset_map, 0, last_judged)
    while size > 0:
        for index in range(size):
            if not _is_kept(offset_map, group, index, last_judged, keeps_tombstones):
                kept.drop(group.spans[index])
            elif stops_at_tombstones and group.spans[index].value_size < 0:
                return _NEEDS_HORIZON
            else:
                kept.keep(group.spans[index])
        size = group.read(offset_map, 0, last_judged)
    return size


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _is_kept(
    offset_map: OffsetMap,
    group: RecordGroup,
    index: Size,
    last_judged: Long,
    keeps_tombstones: cython.bint,
) -> cython.bint:
    """Whether a record is kept: the last of its key, or after the last that is judged."""
    offset: Long = group.offset(index)
    if offset > last_judged:
        return True
    if group.spans[index].key_size < 0 or offset < offset_map.find(index):
        return False
    return keeps_tombstones or group.spans[index].value_size >= 0


@cython.final
@cython.cclass
class KeptRecords:
    """What is kept of one batch after the other, and the header that goes before it.

    Runs of kept records are written together, once the next record is dropped.
    """

    batch: Batch
    data: Data
    room: Room
    out_position: Size  # where the header goes
    position: Size  # after the records that are written
    run_start: Size  # of kept records that are not written yet; -1 if there are none
    run_end: Size
    is_changed: cython.bint
    count: Long
    invalid: Long
    horizon_ms: Long  # -1 if there is none
    base_timestamp: Long
    max_timestamp: Long

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def begin(self, batch: Batch, data: Data, room: Room, out_position: Size) -> cython.void:
        self.batch = batch
        self.data = data
        self.room = room
        self.out_position = out_position
        has_horizon: cython.bint = batch.attributes & _DELETE_HORIZON_BIT != 0
        self._clear(False, batch.base_timestamp if has_horizon else -1)

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def stamp(self, horizon_ms: Long) -> cython.void:
        """Begins again, with a new delete horizon."""
        self._clear(True, horizon_ms)

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def _clear(self, is_changed: cython.bint, horizon_ms: Long) -> cython.void:
        self.position = self.out_position + _HEADER_BYTES
        self.run_start = -1
        self.run_end = -1
        self.is_changed = is_changed
        self.count = 0
        self.invalid = 0
        self.horizon_ms = horizon_ms
        self.base_timestamp = horizon_ms
        self.max_timestamp = -1

    @cython.cfunc
    @cython.inline
    @cython.nogil
    @cython.exceptval(check=False)
    def keep(self, span: Span) -> cython.void:
        timestamp: Long = _timestamp(self.batch, span)
        if self.count == 0 and self.horizon_ms < 0:
            self.base_timestamp = timestamp
        self.max_timestamp = max(self.max_timestamp, timestamp)
        self.count += 1
        if self.run_start < 0:
            self.run_start = span.start
        self.run_end = span.end

    @cython.cfunc
    @cython.inline
    @cython.nogil
    @cython.exceptval(check=False)
    def drop(self, span: Span) -> cython.void:
        self.is_changed = True
        if span.key_size < 0:
            self.invalid += 1
        if self.run_start >= 0:
            self._write_run()

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def finish(self) -> cython.void:
        """Writes the last run and completes the fields of the header."""
        if self.count == 0:
            self.is_changed = True
            self.horizon_ms = -1
            self.base_timestamp = -1
        elif self.is_changed and self.run_start >= 0:
            self._write_run()
        if not self.is_changed or self.count == 0 or self.batch.attributes & _APPEND_TIME_BIT:
            self.max_timestamp = self.batch.max_timestamp

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def attributes(self) -> Long:
        """Returns the attributes of the rebuilt batch, without bits that are not used."""
        kept_bits: Long = _APPEND_TIME_BIT | _TRANSACTIONAL_BIT | _CONTROL_BIT
        if self.count > 0:
            kept_bits |= _CODEC_BITS
        horizon_bit: Long = _DELETE_HORIZON_BIT if self.horizon_ms >= 0 else 0
        return self.batch.attributes & kept_bits | horizon_bit

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def _write_run(self) -> cython.void:
        """Copies the run; if the timestamps are relative to another one now, record by record."""
        at: Size = self.run_start
        end: Size = self.run_end
        self.run_start = -1
        if (
            self.base_timestamp == self.batch.base_timestamp
            and not self.batch.attributes & _APPEND_TIME_BIT
        ):
            _copy(self.room, self.position, self.data, at, end - at)
            self.position += end - at
            return
        while at < end:
            at = self._write_record(_span(self.data, at, end))

    @cython.cfunc
    @cython.inline
    @cython.nogil
    @cython.exceptval(check=False)
    def _write_record(self, span: Span) -> Size:
        """Writes a record with its timestamp relative to the new base. Returns its old end."""
        room: Room = self.room
        position: Size = self.position
        delta: Long = _difference(_timestamp(self.batch, span), self.base_timestamp)
        rest: Size = span.end - span.offset_at
        position = _put_varint(room, position, 1 + _varint_size(delta) + rest)
        room[position] = 0
        position = _put_varint(room, position + 1, delta)
        _copy(room, position, self.data, span.offset_at, rest)
        self.position = position + rest
        return span.end


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _timestamp(batch: Batch, span: Span) -> Long:
    """Returns the timestamp that a reader sees."""
    if batch.attributes & _APPEND_TIME_BIT:
        return batch.max_timestamp
    return batch.base_timestamp + span.timestamp_delta


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _patch_header(kept: KeptRecords, size: Size) -> cython.void:
    """Changes the copy of the original header before kept records to the one they need."""
    room: Room = kept.room
    at: Size = kept.out_position
    _put_integer(room, at + 8, size - _LENGTH_END, 4)
    _put_integer(room, at + 21, kept.attributes(), 2)
    _put_integer(room, at + 27, kept.base_timestamp, 8)
    _put_integer(room, at + 35, kept.max_timestamp, 8)
    _put_integer(room, at + 57, kept.count, 4)
    _put_integer(room, at + 17, _crc(room, at + _CRC_END, at + size), 4)


@cython.cfunc
def _rebuilt_header(header: object, kept: KeptRecords) -> object:
    """Returns the header for kept records, with the length that they have uncompressed."""
    return header._replace(
        length=kept.position - kept.out_position - _LENGTH_END,
        attributes=kept.attributes(),
        base_timestamp=kept.base_timestamp,
        max_timestamp=kept.max_timestamp,
        record_count=kept.count,
    )


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _is_retained(batch_filter: BatchFilter, batch: Batch, producer_id: Long) -> cython.bint:
    """Whether the batch is kept even if it is empty."""
    last_offset: Long = batch.base_offset + batch.last_offset_delta
    if last_offset + 1 == batch_filter.end_offset:
        return True
    if producer_id < 0:
        return False
    low: Size = 0
    high: Size = len(batch_filter.retained_offsets)
    middle: Size
    while low < high:
        middle = (low + high) // 2
        if batch_filter.retained_offsets[middle] < last_offset:
            low = middle + 1
        else:
            high = middle
    return (
        low < len(batch_filter.retained_offsets)
        and batch_filter.retained_offsets[low] == last_offset
    )


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _fits(batch: Batch, room_bytes: Size, indexes: SegmentIndexes) -> cython.bint:
    """Whether there is space for the batch, however large it becomes."""
    most: Long = batch.size + batch.count * _MAX_GROWTH_BYTES
    last_offset: Long = batch.base_offset + batch.last_offset_delta
    return most <= room_bytes and indexes.has_space(most, last_offset)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _count_read(batch_filter: BatchFilter, kept: KeptRecords) -> cython.void:
    batch_filter.messages_read += kept.batch.count
    batch_filter.bytes_read += kept.batch.size
    batch_filter.invalid_records += kept.invalid


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _count_written(
    batch_filter: BatchFilter, size_bytes: Long, count: Long, horizon_ms: Long
) -> cython.void:
    batch_filter.messages_kept += count
    batch_filter.bytes_kept += size_bytes
    # What a horizon in the past allowed to remove was removed in this cleaning. One that is set now
    # has no effect before the next, even if delete.retention.ms is 0.
    if horizon_ms >= batch_filter.now_ms and not (
        0 <= batch_filter.earliest_horizon_ms <= horizon_ms
    ):
        batch_filter.earliest_horizon_ms = horizon_ms


# Batches and records


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _plain_batch(data: Data, position: Size, end: Size) -> Batch:
    """Returns the fields of the header at `position`, if a whole plain batch is there."""
    batch: Batch = _whole_batch(data, position, end)
    if batch.size > 0 and batch.attributes & (_CODEC_BITS | _TRANSACTIONAL_BIT | _CONTROL_BIT):
        return Batch(0, 0, 0, 0, 0, 0, 0)
    if batch.size > 0 and not _is_valid(batch, batch.size - _HEADER_BYTES):
        return Batch(-1, 0, 0, 0, 0, 0, 0)
    return batch


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _compressed_batch(data: Data, position: Size, end: Size) -> Batch:
    """Returns the fields of the header at `position`, if a whole compressed batch is there.

    It is not one of a transaction. How many records it has is checked when it is decompressed.
    """
    batch: Batch = _whole_batch(data, position, end)
    codec: Long = batch.attributes & _CODEC_BITS
    if batch.attributes & (_TRANSACTIONAL_BIT | _CONTROL_BIT) or not 1 <= codec <= _LAST_CODEC:
        return Batch(0, 0, 0, 0, 0, 0, 0)
    return batch if _is_valid(batch, _MAX_INT64) else Batch(-1, 0, 0, 0, 0, 0, 0)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _whole_batch(data: Data, position: Size, end: Size) -> Batch:
    if end - position < _HEADER_BYTES or data[position + 16] != _MAGIC:
        return Batch(0, 0, 0, 0, 0, 0, 0)
    size: Size = _integer(data, position + 8, 4) + _LENGTH_END
    if size < _HEADER_BYTES:
        return Batch(-1, 0, 0, 0, 0, 0, 0)
    if size > end - position:
        return Batch(0, 0, 0, 0, 0, 0, 0)
    return Batch(
        size,
        _integer(data, position, 8),
        _integer(data, position + 21, 2),
        _integer(data, position + 23, 4),
        _integer(data, position + 27, 8),
        _integer(data, position + 35, 8),
        _integer(data, position + 57, 4),
    )


@cython.cfunc
def _decompress(source: object, position: Size, batch: Batch) -> object:
    """Returns the records of the compressed batch at `position`, until the next call."""
    codec = _CODECS[batch.attributes & _CODEC_BITS]
    body = memoryview(source)[position + _HEADER_BYTES : position + batch.size]
    try:
        return decompress_temporarily(codec, body, MAX_DECOMPRESSED_BYTES)
    except CompressionError as error:
        raise CorruptBatch(
            f"The records of the batch at offset {batch.base_offset} cannot be read: "
            f"{error.message}"
        ) from None


@cython.cfunc
def _compress(kept: KeptRecords, out: object) -> cython.bint:
    """Compresses the kept records where they are; returns False if they become too large."""
    start: Size = kept.out_position + _HEADER_BYTES
    codec = _CODECS[kept.batch.attributes & _CODEC_BITS]
    compressed: cython.const[cython.uchar][::1] = compress(
        codec, memoryview(out)[start : kept.position]
    )
    size: Size = len(compressed)
    if size > len(out) - start:
        return False
    _copy(kept.room, start, _address(compressed), 0, size)
    kept.position = start + size
    return True


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _is_valid(batch: Batch, records_bytes: Long) -> cython.bint:
    """Whether offsets do not overflow, and as many records as claimed fit into the bytes."""
    return (
        0 <= batch.base_offset < _MAX_INT64 - _MAX_INT32
        and batch.last_offset_delta >= 0
        and 0 <= batch.count * _MIN_RECORD_BYTES <= records_bytes
    )


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _span(data: Data, position: Size, limit: Size) -> Span:
    """Returns where the fields of the record at `position` are, all before `limit`."""
    size: Varint = _varint(data, position, limit, 32)
    end: Size = _after(size, limit)
    timestamp: Varint = _varint(data, size.end + 1, end, 64)
    offset: Varint = _varint(data, timestamp.end, end, 32)
    key: Varint = _varint(data, offset.end, end, 32)
    value: Varint = _varint(data, _after(key, end), end, 32)
    headers: Varint = _varint(data, _after(value, end), end, 32)
    after: Size = headers.end
    if headers.value > 0:
        after = _after_headers(data, after, end, headers.value)
    if after != end or headers.value < 0:
        return Span(-1, -1, 0, 0, 0, 0, 0, 0)
    return Span(
        position,
        end,
        timestamp.value,
        timestamp.end,
        offset.value,
        key.end,
        key.value,
        value.value,
    )


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _after_headers(data: Data, position: Size, end: Size, count: Long) -> Size:
    """Returns the position after `count` headers, or -1 if there are not enough bytes."""
    cell: Varint
    while count > 0 and position >= 0:
        cell = _varint(data, position, end, 32)
        if cell.value < 0:
            return -1
        cell = _varint(data, _after(cell, end), end, 32)
        position = _after(cell, end)
        count -= 1
    return position


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _after(size: Varint, end: Size) -> Size:
    """Returns the position after a field, or -1 beyond the end; null takes no bytes."""
    if size.end < 0 or size.value > end - size.end:
        return -1
    return size.end if size.value < 0 else size.end + size.value


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _varint(data: Data, position: Size, end: Size, bits: cython.int) -> Varint:
    """Returns the zigzag integer at `position`, which may be beyond the end."""
    byte: Long
    if position < 0 or position >= end:
        return Varint(0, -1)
    byte = data[position]
    if byte < 0x80:
        return Varint((byte >> 1) ^ -(byte & 1), position + 1)
    if position + 1 < end and data[position + 1] < 0x80:
        byte = (byte & 0x7F) | data[position + 1] << 7
        return Varint((byte >> 1) ^ -(byte & 1), position + 2)
    return _long_varint(data, position, end, bits)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _long_varint(data: Data, position: Size, end: Size, bits: cython.int) -> Varint:
    zigzag: cython.ulonglong = 0
    byte: cython.ulonglong
    shift: cython.int = 0
    while position < end and shift < bits:
        byte = data[position]
        position += 1
        if shift + 7 > bits and byte >> (bits - shift):
            break
        zigzag |= (byte & 0x7F) << shift
        if byte < 0x80:
            return Varint((zigzag >> 1) ^ -(zigzag & 1), position)
        shift += 7
    return Varint(0, -1)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _varint_size(value: Long) -> cython.int:
    zigzag: cython.ulonglong = (value << 1) ^ (value >> 63)
    size: cython.int = 1
    while zigzag >= 0x80:
        zigzag >>= 7
        size += 1
    return size


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _put_varint(data: Room, position: Size, value: Long) -> Size:
    zigzag: cython.ulonglong = (value << 1) ^ (value >> 63)
    while zigzag >= 0x80:
        data[position] = (zigzag & 0x7F) | 0x80
        zigzag >>= 7
        position += 1
    data[position] = zigzag
    return position + 1


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _integer(data: Data, position: Size, size: Size) -> Long:
    """Returns the signed big-endian integer of that size."""
    value: Long = data[position] - ((data[position] & 0x80) << 1)
    index: Size
    for index in range(1, size):
        value = value * 256 + data[position + index]  # a negative number must not be shifted
    return value


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _put_integer(room: Room, position: Size, value: Long, size: Size) -> cython.void:
    """Writes a big-endian integer of that size."""
    index: Size
    for index in range(size):
        room[position + index] = value >> 8 * (size - 1 - index) & 0xFF


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _overflows(base: Long, delta: Long) -> cython.bint:
    """Whether the sum overflows an int64."""
    if delta >= 0:
        return base > _MAX_INT64 - delta
    return base < 0 and base + _MAX_INT64 < -1 - delta


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _difference(timestamp: Long, base: Long) -> Long:
    """Returns the difference as Java computes it: it may wrap around."""
    if cython.compiled:
        return cython.cast(Word, timestamp) - cython.cast(Word, base)
    return ((timestamp - base + (1 << 63)) & 0xFFFFFFFFFFFFFFFF) - (1 << 63)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _copy(room: Room, position: Size, data: Data, start: Size, size: Size) -> cython.void:
    if cython.compiled:
        memcpy(cython.address(room[position]), cython.address(data[start]), size)
    else:
        room[position : position + size] = data[start : start + size]


@cython.cfunc
@cython.inline
def _address(buffer: cython.const[cython.uchar][::1]) -> Data:
    return cython.address(buffer[0]) if cython.compiled else buffer


@cython.cfunc
@cython.inline
def _room(buffer: cython.uchar[::1]) -> Room:
    return cython.address(buffer[0]) if cython.compiled else buffer


@cython.cfunc
def _check_position(position: Size, end: Size) -> cython.bint:
    if not 0 <= position <= end:
        raise ValueError(f"Position {position} is not in a buffer of {end} bytes.")
    return True


@cython.cfunc
def _corrupt(base_offset: Long, outcome: Size) -> object:
    if outcome == _BAD_CHECKSUM:
        return CorruptBatch(f"The batch at offset {base_offset} does not match its checksum.")
    return CorruptBatch(f"The batch at offset {base_offset} is malformed.")


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _matches_checksum(data: Data, position: Size, end: Size) -> cython.bint:
    """Whether the batch between the positions has the checksum of its header."""
    checksum: Long = _integer(data, position + 17, 4) & _MAX_UINT32
    return checksum == _crc(data, position + _CRC_END, end)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _crc(data: Data, position: Size, end: Size) -> Long:
    """Returns the checksum of the bytes between the positions."""
    if cython.compiled:
        return crc(cython.address(data[position]), end - position)
    return crc32c(memoryview(data)[position:end])
