"""Searches find what a walk over everything finds, compiled and as plain Python."""

import struct
from bisect import bisect_right
from itertools import accumulate, pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.uncompiled import compiled_and_plain

from barnabas.log.errors import DamagedBatch
from barnabas.log.segments import _search
from barnabas.wire.records.build import Record, build_batch

both = compiled_and_plain(_search)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("search") / "00000000000000000000.log"


def batches_of(counts: list[int], value_bytes: int) -> tuple[bytes, list[int], list[int]]:
    """Returns batches, where each begins and the last one ends, and the same of their offsets."""
    offsets = list(accumulate(counts, initial=0))
    encoded = []
    for first, end in pairwise(offsets):
        records = [Record(offset, 1, None, bytes(value_bytes), []) for offset in range(first, end)]
        encoded.append(bytes(build_batch(records, base_offset=first)))
    return b"".join(encoded), list(accumulate(map(len, encoded), initial=0)), offsets


@given(
    counts=st.lists(st.integers(1, 5), min_size=1, max_size=60),
    value_bytes=st.sampled_from([1, 300, 3000]),
    data=st.data(),
)
def test_batches_are_found_by_offset_and_by_position(
    path: Path, counts: list[int], value_bytes: int, data: st.DataObject
) -> None:
    content, positions, offsets = batches_of(counts, value_bytes)
    path.write_bytes(content)
    end = len(content)
    offset = data.draw(st.integers(0, offsets[-1]))
    limit = data.draw(st.integers(0, end))
    with path.open("rb") as file:
        found = _search.find_batch(file.fileno(), 0, end, offset)
        assert found == positions[bisect_right(offsets, offset) - 1]
        number = bisect_right(positions, limit) - 1
        expected = (positions[number], offsets[number]) if limit else (0, -1)
        assert _search.find_batch_end(file.fileno(), 0, limit, end) == expected


def test_a_damaged_header_is_an_error(path: Path) -> None:
    content, positions, _ = batches_of([1, 1, 1], 10)
    damaged = bytearray(content)
    damaged[positions[1] + 16] = 9  # the magic number
    path.write_bytes(damaged)
    with path.open("rb") as file, pytest.raises(DamagedBatch):
        _search.find_batch(file.fileno(), 0, len(content), 2)


@given(
    keys=st.lists(st.integers(0, 2**32 - 1), max_size=50, unique=True).map(sorted),
    target=st.integers(-1, 2**32),
    layout=st.sampled_from([(">II", 0, 4), (">qI", 0, 8)]),
)
def test_entries_are_counted_by_key(
    keys: list[int], target: int, layout: tuple[str, int, int]
) -> None:
    entries, key_at, key_bytes = layout
    content = b"".join(struct.pack(entries, key, 7) for key in keys)
    size_bytes = struct.calcsize(entries)
    counted = _search.count_up_to(content, len(keys), size_bytes, key_at, key_bytes, target)
    assert counted == bisect_right(keys, target)
