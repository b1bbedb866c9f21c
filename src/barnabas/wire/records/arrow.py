"""Record batches to Arrow columns and back, without an object per record.

pyarrow comes with the extra `barnabas[arrow]`, and is imported on first use.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from barnabas.wire.records import _encoding, _loops
from barnabas.wire.records.batch import (
    HEADER_BYTES,
    LENGTH_END,
    MAGIC,
    MAX_SEQUENCE,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    TRANSACTIONAL_BIT,
    BatchHeader,
    Readable,
    iterate_batches,
)
from barnabas.wire.records.buffers import view
from barnabas.wire.records.build import close_batch
from barnabas.wire.records.compression import Buffer, Codec
from barnabas.wire.records.decompressor import (
    Decompressor,
    borrow_decompressor,
    give_back_decompressor,
)
from barnabas.wire.records.read import MAX_DECOMPRESSED_BYTES, Run, append_time, record_body

if TYPE_CHECKING:
    import pyarrow as pa

MAX_BATCH_BYTES = 1024 * 1024

_INT32_MAX = 0x7FFFFFFF
_NOTHING = memoryview(b"")


def schema() -> pa.Schema:
    """Returns the schema of `to_arrow`: key, value, offset, timestamp and headers."""
    import pyarrow as pa

    return pa.schema(
        [
            ("key", pa.binary()),
            ("value", pa.binary()),
            ("offset", pa.int64()),
            ("timestamp", pa.timestamp("ms", tz="UTC")),
            ("headers", pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))),
        ]
    )


def to_arrow(
    buffers: Readable | Iterable[Readable],
    *,
    max_decompressed_bytes: int = MAX_DECOMPRESSED_BYTES,
) -> pa.RecordBatch:
    """Returns the records of every whole batch in the buffers, without control batches.

    The bound applies to the records of all batches together.
    """
    if isinstance(buffers, bytes | bytearray | memoryview):
        buffers = [buffers]
    decompressor = borrow_decompressor()
    try:
        runs = list(_iterate_runs(buffers, decompressor, max_decompressed_bytes))
        return runs_to_arrow(runs, [measure(run) for run in runs])
    finally:
        give_back_decompressor(decompressor)


def _iterate_runs(
    buffers: Iterable[Readable], decompressor: Decompressor, max_bytes: int
) -> Iterator[Run]:
    left = min(max_bytes, _INT32_MAX)  # Arrow's offsets are int32
    for buffer in buffers:
        for position, header in iterate_batches(buffer):
            if header.is_control:
                continue
            records: Buffer = record_body(buffer, position, header)
            if header.codec is not Codec.NONE:
                records = decompressor.decompress(header.codec, records, left)
            left -= len(records)
            if left < 0:
                raise ValueError(
                    f"The batches hold more than {max_bytes} bytes: give fewer at a time."
                )
            yield Run(
                records,
                header.record_count,
                header.base_offset,
                header.base_timestamp,
                append_time(header),
            )


Sizes: TypeAlias = tuple[int, int, int, int, int]
"""Bytes of keys and values, the number of headers, bytes of their keys and values."""


def measure(run: Run) -> Sizes:
    """Returns the sizes of the columns. Raises CorruptBatch if a record is malformed."""
    return _loops.measure(run.records, run.record_count)


def runs_to_arrow(runs: Sequence[Run], sizes: Sequence[Sizes]) -> pa.RecordBatch:
    """Returns the records of all runs in order; they must be below 2 GiB together."""
    import pyarrow as pa

    key_bytes, value_bytes, header_count, header_key_bytes, header_value_bytes = (
        map(sum, zip(*sizes, strict=True)) if sizes else (0, 0, 0, 0, 0)
    )
    count = sum(run.record_count for run in runs)
    keys, values = _Room(count, key_bytes), _Room(count, value_bytes)
    header_keys = _Room(header_count, header_key_bytes)
    header_values = _Room(header_count, header_value_bytes)
    offsets, timestamps = pa.allocate_buffer(count * 8), pa.allocate_buffer(count * 8)
    header_offsets = pa.allocate_buffer(count * 4 + 4)
    columns = _loops.Columns(
        view(offsets, "q"),
        view(timestamps, "q"),
        keys.cells(),
        values.cells(),
        view(header_offsets, "i"),
        header_keys.cells(),
        header_values.cells(),
    )
    for run in runs:
        columns.append(*run)
    types = schema()
    entries = pa.StructArray.from_arrays(
        [_readable(header_keys.array(pa.string())), header_values.array(pa.binary())],
        fields=list(types.field("headers").type.value_type),
    )
    return pa.RecordBatch.from_arrays(
        [
            keys.array(pa.binary()),
            values.array(pa.binary()),
            pa.Array.from_buffers(pa.int64(), count, [None, offsets]),
            pa.Array.from_buffers(types.field("timestamp").type, count, [None, timestamps]),
            pa.Array.from_buffers(
                types.field("headers").type, count, [None, header_offsets], children=[entries]
            ),
        ],
        schema=types,
    )


def from_arrow(
    rows: pa.RecordBatch,
    *,
    max_batch_bytes: int = MAX_BATCH_BYTES,
    codec: Codec = Codec.NONE,
    level: int | None = None,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = -1,
    base_sequence: int = NO_SEQUENCE,
    transactional: bool = False,
    default_timestamp: int = NO_TIMESTAMP,
) -> list[bytearray]:
    """Returns the batches of the rows in order, each to be produced separately.

    The rows have a column `value`, and may have `key`, `timestamp` and `headers`. A batch is
    within the bound before compression, unless a single record exceeds it.
    """
    batches: list[bytearray] = []
    for encoded in encode(rows, max_batch_bytes, default_timestamp):
        batch, count, base_timestamp, max_timestamp = encoded
        header = BatchHeader(
            base_offset=0,
            length=len(batch) - LENGTH_END,
            leader_epoch=-1,
            magic=MAGIC,
            crc=0,
            attributes=codec | (TRANSACTIONAL_BIT if transactional else 0),
            last_offset_delta=count - 1,
            base_timestamp=base_timestamp,
            max_timestamp=max_timestamp,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=base_sequence,
            record_count=count,
        )
        close_batch(batch, level, header)
        batches.append(batch)
        if base_sequence != NO_SEQUENCE:
            base_sequence = (base_sequence + count) & MAX_SEQUENCE
    return batches


class Encoded(NamedTuple):
    """The records of a batch, with space for the header that is not written yet."""

    batch: bytearray
    record_count: int
    base_timestamp: int
    max_timestamp: int


def encode(
    rows: pa.RecordBatch, max_batch_bytes: int, default_timestamp: int = NO_TIMESTAMP
) -> Iterator[Encoded]:
    """Yields the encoded rows; the caller completes the headers."""
    source = _source(rows, default_timestamp)
    first = 0
    while first < rows.num_rows:
        count, size, base_timestamp, max_timestamp = source.fit(
            first, max_batch_bytes - HEADER_BYTES
        )
        batch = source.encode(first, count, size, HEADER_BYTES)
        yield Encoded(batch, count, base_timestamp, max_timestamp)
        first += count


class _Room:
    """Arrow's buffers for a column of nullable bytes, which `_loops` fills."""

    __slots__ = ("content", "count", "offsets", "validity")

    def __init__(self, count: int, size_bytes: int) -> None:
        import pyarrow as pa

        self.count = count
        self.offsets = pa.allocate_buffer(count * 4 + 4)
        self.validity = pa.allocate_buffer((count + 7) // 8)
        self.content = pa.allocate_buffer(size_bytes)

    def cells(self) -> _loops.DecodedCells:
        validity = view(self.validity, "B")
        validity[:] = b"\xff" * len(validity)
        return _loops.DecodedCells(view(self.offsets, "i"), validity, view(self.content, "B"))

    def array(self, kind: pa.DataType) -> pa.Array:
        import pyarrow as pa

        return pa.Array.from_buffers(kind, self.count, [self.validity, self.offsets, self.content])


def _readable(names: pa.Array) -> pa.Array:
    """Header keys are text: invalid UTF-8 is replaced, as Java does."""
    import pyarrow as pa

    if not len(names):
        return names
    try:
        names.validate(full=True)
    except pa.ArrowInvalid:
        raw = names.view(pa.binary()).to_pylist()
        return pa.array([name.decode(errors="replace") for name in raw], pa.string())
    return names


def _source(rows: pa.RecordBatch, default_timestamp: int) -> _encoding.Rows:
    """Returns the buffers of the rows, in the types that `_encoding` reads."""
    names = rows.schema.names
    if "value" not in names:
        raise ValueError(f"The rows have no column 'value'; they have {names}.")
    count = rows.num_rows
    timestamps = view(None, "q")
    if "timestamp" in names:
        timestamps = _timestamps(rows.column("timestamp"), default_timestamp)
    headers = view(None, "i"), _nulls(0), _nulls(0)
    if "headers" in names:
        headers = _headers(rows.column("headers"))
    return _encoding.Rows(
        count,
        timestamps,
        default_timestamp,
        _cells(rows.column("key")) if "key" in names else _nulls(count),
        _cells(rows.column("value")),
        *headers,
    )


def _timestamps(column: pa.Array, default: int) -> memoryview:
    import pyarrow as pa

    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("ms", column.type.tz), safe=False)
    return _integers(column.cast(pa.int64()).fill_null(default), "q")


def _headers(column: pa.Array) -> tuple[memoryview, _encoding.SourceCells, _encoding.SourceCells]:
    """Returns the offsets of each row's headers, their keys, and their values.

    Raises ValueError for a header without a key, which records cannot have.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    ends = pc.cumulative_sum(pc.list_value_length(column).fill_null(0).cast(pa.int32()))
    entries = column.flatten()
    keys = pc.struct_field(entries, "key")
    if keys.null_count:
        raise ValueError("A header has no key: neither it nor its field key may be null.")
    return (
        _integers(pa.concat_arrays([pa.repeat(pa.scalar(0, pa.int32()), 1), ends]), "i"),
        _cells(keys),
        _cells(pc.struct_field(entries, "value")),
    )


def _integers(array: pa.Array, kind: str) -> memoryview:
    return view(array.buffers()[1], kind)[array.offset : array.offset + len(array)]


def _cells(array: pa.Array) -> _encoding.SourceCells:
    import pyarrow as pa

    if array.type != pa.binary():
        array = array.cast(pa.binary())
    if len(array) == 0:  # then Arrow may omit the only offset
        return _nulls(0)
    validity, offsets, content = array.buffers()
    return _encoding.SourceCells(
        view(offsets, "i"),
        view(validity, "B"),
        view(content, "B"),
        array.offset,
        len(array),
    )


def _nulls(count: int) -> _encoding.SourceCells:
    return _encoding.SourceCells(view(None, "i"), _NOTHING, _NOTHING, 0, count)
