"""Many small batches are read in one call."""

import random
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.wire.records.samples import law, records, some_records

from barnabas.wire.records.batch import CorruptBatch, iterate_batches, write_header
from barnabas.wire.records.build import Record, build_batch
from barnabas.wire.records.compression import Codec
from barnabas.wire.records.control import build_marker
from barnabas.wire.records.read import read_plain, read_records


def pairs_of(batches: list[list[Record]]) -> list[tuple[bytes | None, bytes | None]]:
    return [(record.key, record.value) for batch in batches for record in batch]


def appended(batches: list[list[Record]]) -> bytes:
    log, offset = b"", 0
    for batch in batches:
        log += build_batch(batch, base_offset=offset)
        offset += len(batch)
    return log


@law
@given(st.lists(records(), max_size=6))
def test_plain_batches_are_read_together(batches: list[list[Record]]) -> None:
    log = appended(batches)
    next_offset = sum(map(len, batches)) if batches else -1
    assert read_plain(log, 0, 1 << 20) == (pairs_of(batches), len(log), next_offset)


@law
@given(st.lists(records(), min_size=2, max_size=6), st.integers(1, 20))
def test_reading_continues_after_the_limit(batches: list[list[Record]], limit: int) -> None:
    log = appended(batches)
    pairs_read, position = [], 0
    while position < len(log):
        pairs, position, _ = read_plain(log, position, limit)
        assert len(pairs) < limit + 12  # no batch of the sample has more
        pairs_read += pairs
    assert pairs_read == pairs_of(batches)


@pytest.mark.parametrize(
    "other",
    [
        build_batch(some_records(), codec=Codec.LZ4),
        build_batch(some_records(), producer_id=7, producer_epoch=0, transactional=True),
        build_marker(
            producer_id=7, producer_epoch=0, committed=True, coordinator_epoch=0, timestamp=0
        ),
        build_batch(some_records())[:-1],
        bytearray(61),
    ],
    ids=["compressed", "transactional", "marker", "partial", "zeros"],
)
def test_other_batches_are_not_read(other: bytearray) -> None:
    plain = build_batch(some_records(2))
    assert read_plain(bytes(plain + other), 0, 100)[1:] == (len(plain), 2)
    assert read_plain(bytes(other), 0, 100) == ([], 0, -1)


def test_a_batch_that_compaction_emptied_has_offsets_but_no_records() -> None:
    batch = build_batch(some_records(3))
    _, header = next(iterate_batches(batch))
    del batch[61:]
    write_header(batch, 0, header._replace(length=49, record_count=0))
    assert read_plain(batch, 0, 100) == ([], 61, 3)


def test_changed_bytes_are_never_read_out_of_bounds() -> None:
    draw = random.Random(5)
    for _ in range(2_000):
        batch = build_batch(some_records(3))
        for _ in range(3):
            batch[draw.randrange(len(batch))] = draw.randrange(256)
        with suppress(CorruptBatch):
            pairs, position, _ = read_plain(batch, 0, 100)
            if position:
                assert pairs == [(record.key, record.value) for record in read_records(batch)]
