"""What compaction keeps, written naively: batches, a map as a dict, a verdict for each record."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from hypothesis import strategies as st

from barnabas.wire.records import _encoding
from barnabas.wire.records.batch import (
    APPEND_TIME_BIT,
    CONTROL_BIT,
    DELETE_HORIZON_BIT,
    HEADER_BYTES,
    LENGTH_END,
    MAGIC,
    TRANSACTIONAL_BIT,
    BatchHeader,
    write_header,
)
from barnabas.wire.records.compression import Codec, compress
from barnabas.wire.records.record import Record

NOW_MS = 1_700_000_000_000
RETENTION_MS = 86_400_000
HORIZON_MS = NOW_MS + RETENTION_MS


@dataclass(slots=True, frozen=True)
class SampleBatch:
    """A batch as it may be in a log: also with gaps, empty, or with a delete horizon."""

    base_offset: int
    last_offset: int
    records: Sequence[Record] = ()
    append_time: int | None = None
    has_create_times: bool = False  # under the append time, as a producer sent them
    horizon_ms: int | None = None
    producer_id: int = -1
    transactional: bool = False
    control: bool = False
    codec: Codec = Codec.NONE
    max_timestamp: int | None = None  # None: of its records

    def encode(self) -> bytes:
        records = [
            record._replace(timestamp=self._timestamp(record), headers=list(record.headers))
            for record in self.records
        ]
        base_timestamp = records[0].timestamp if records else -1
        if self.horizon_ms is not None:
            base_timestamp = self.horizon_ms
        batch = _encoding.encode(records, self.base_offset, base_timestamp, HEADER_BYTES)
        batch[HEADER_BYTES:] = compress(self.codec, batch[HEADER_BYTES:])
        write_header(
            batch,
            0,
            BatchHeader(
                base_offset=self.base_offset,
                length=len(batch) - LENGTH_END,
                leader_epoch=7,
                magic=MAGIC,
                crc=0,
                attributes=self.codec
                | (0 if self.append_time is None else APPEND_TIME_BIT)
                | (TRANSACTIONAL_BIT if self.transactional else 0)
                | (CONTROL_BIT if self.control else 0)
                | (0 if self.horizon_ms is None else DELETE_HORIZON_BIT),
                last_offset_delta=self.last_offset - self.base_offset,
                base_timestamp=base_timestamp,
                max_timestamp=self._max_timestamp(),
                producer_id=self.producer_id,
                producer_epoch=3,
                base_sequence=11,
                record_count=len(self.records),
            ),
        )
        return bytes(batch)

    def _timestamp(self, record: Record) -> int:
        if self.append_time is None or self.has_create_times:
            return record.timestamp
        return self.append_time

    def _max_timestamp(self) -> int:
        if self.append_time is not None:
            return self.append_time
        if self.max_timestamp is not None:
            return self.max_timestamp
        return max((record.timestamp for record in self.records), default=-1)


@dataclass(slots=True)
class ModelMap:
    """The offset map as a dict."""

    limit: int = 1 << 30
    offsets: dict[bytes, int] = field(default_factory=dict)
    latest_offset: int = -1

    def put(self, batches: Iterable[SampleBatch], first_offset: int = 0) -> bool:
        """Puts the keys of batches; returns whether the map is full."""
        for batch in batches:
            for record in batch.records:
                if record.key is None or record.offset < first_offset:
                    continue
                if len(self.offsets) == self.limit:
                    return True
                self.offsets[record.key] = record.offset
                self.latest_offset = record.offset
            if batch.last_offset >= first_offset:
                self.latest_offset = batch.last_offset
        return False


def model_filter(
    batch: SampleBatch,
    model_map: ModelMap,
    *,
    now_ms: int = NOW_MS,
    stamp_marker: bool = False,
    is_retained: bool = False,
) -> SampleBatch | None:
    """Returns what is left of the batch: the same, another, or None."""
    kept = [
        record
        for record in batch.records
        if batch.control or _is_kept(record, batch.horizon_ms, model_map, now_ms)
    ]
    if not kept and not is_retained:
        return None
    if not kept:
        return replace(
            batch,
            records=(),
            horizon_ms=None,
            codec=Codec.NONE,
            max_timestamp=batch._max_timestamp(),
        )
    has_tombstone = any(record.value is None for record in kept)
    if batch.horizon_ms is None and (has_tombstone or stamp_marker):
        batch = replace(batch, horizon_ms=now_ms + RETENTION_MS)
    elif len(kept) == len(batch.records):
        return batch
    return replace(batch, records=kept, has_create_times=False, max_timestamp=None)


def _is_kept(record: Record, horizon_ms: int | None, model_map: ModelMap, now_ms: int) -> bool:
    if record.offset > model_map.latest_offset:
        return True
    if record.key is None:
        return False
    if record.offset < model_map.offsets.get(record.key, -1):
        return False
    return record.value is not None or horizon_ms is None or now_ms < horizon_ms


# Strategies

_KEYS = st.sampled_from([b"", b"a", b"b", b"c", b"k" * 7, b"k" * 8, b"k" * 9, b"key" * 30])
_CELLS = st.none() | st.binary(max_size=20)
_HEADERS = st.lists(st.tuples(st.text(max_size=3), _CELLS), max_size=2)
_TIMESTAMPS = st.integers(-1, 5) | st.integers(NOW_MS - 1000, NOW_MS) | st.integers(-1, 1 << 60)


@st.composite
def sample_batches(draw: st.DrawFn, *, transactions: bool = False) -> list[SampleBatch]:
    """A log of batches, with gaps between them and inside."""
    batches = []
    offset = draw(st.integers(0, 3))
    for _ in range(draw(st.integers(0, 8))):
        batches.append(draw(_sample_batch(offset, transactions)))
        offset = batches[-1].last_offset + 1 + draw(st.sampled_from([0, 0, 3]))
    return batches


@st.composite
def _sample_batch(draw: st.DrawFn, base_offset: int, transactions: bool) -> SampleBatch:
    count = draw(st.sampled_from([1, 1, 2, 5, 15, 16, 17, 35]))
    fields = st.tuples(_TIMESTAMPS, st.none() | _KEYS, _CELLS, _HEADERS)
    records = [
        Record(base_offset + index, *draw(fields))
        for index in range(count)
        if draw(st.sampled_from([True] * 9 + [False]))
    ]
    horizon = draw(st.sampled_from([None, None, NOW_MS - 1, NOW_MS, NOW_MS + 1]))
    batch = SampleBatch(
        base_offset,
        base_offset + count - 1,
        records,
        append_time=draw(st.sampled_from([None, None, None, NOW_MS - 5])),
        has_create_times=draw(st.booleans()),
        horizon_ms=horizon if records else None,
        producer_id=draw(st.sampled_from([-1, 5])),
        max_timestamp=None if records else NOW_MS - 9,
        codec=draw(st.sampled_from([Codec.NONE, *Codec])),
    )
    if not transactions:
        return batch
    return replace(batch, transactional=draw(st.booleans()), control=draw(st.booleans()))
