from bisect import bisect_right
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.log.log_test_directory import LogTestDirectory

from barnabas.log.segments.index import OffsetIndex, TimeIndex
from barnabas.log.segments.open_files import OpenFiles

BASE = 1000


@pytest.fixture
def files() -> OpenFiles:
    return OpenFiles(16)


steps = st.lists(st.tuples(st.integers(1, 50), st.integers(1, 5000)), max_size=200)


@given(steps, st.lists(st.integers(BASE - 5, BASE + 12_000), max_size=20), st.booleans())
@settings(max_examples=50, deadline=None)
def test_offset_lookups_equal_a_linear_scan(
    new_log_dir: Callable[[], LogTestDirectory],
    steps: list[tuple[int, int]],
    targets: list[int],
    reopened: bool,
) -> None:
    folder = str(new_log_dir().path)
    index = OffsetIndex(folder, BASE, OpenFiles(16))
    entries = []
    offset, position = BASE, 0
    for offset_step, position_step in steps:
        offset, position = offset + offset_step, position + position_step
        index.append(offset, position)
        entries.append((offset, position))
    if reopened:
        index.flush()
        index = OffsetIndex(folder, BASE, OpenFiles(16))
        assert index.load()
    assert index.count == len(entries)
    for target in targets:
        at_or_below = [entry for entry in entries if entry[0] <= target]
        assert index.lookup(target) == (at_or_below[-1] if at_or_below else None)
        before = [entry for entry in entries if entry[1] < target]
        assert index.lookup_before(target) == (before[-1] if before else None)


@given(steps, st.integers(BASE, BASE + 5000))
@settings(max_examples=50, deadline=None)
def test_truncating_an_index_keeps_the_entries_below(
    new_log_dir: Callable[[], LogTestDirectory], steps: list[tuple[int, int]], cut: int
) -> None:
    folder = str(new_log_dir().path)
    index = OffsetIndex(folder, BASE, OpenFiles(16))
    offsets = []
    offset = BASE
    for number, (step, _) in enumerate(steps):
        offset += step
        offsets.append(offset)
        index.append(offset, number)
    index.truncate(cut)
    kept = [offset for offset in offsets if offset < cut]
    assert index.count == len(kept)
    index.append(cut, 9999)
    index.flush()
    again = OffsetIndex(folder, BASE, OpenFiles(16))
    assert again.load()
    assert [again.entry(number)[0] + BASE for number in range(again.count)] == [*kept, cut]


@given(st.lists(st.integers(0, 1000), max_size=150), st.integers(-1, 1001))
@settings(max_examples=50, deadline=None)
def test_time_lookups_equal_a_linear_scan(
    new_log_dir: Callable[[], LogTestDirectory], timestamps: list[int], target: int
) -> None:
    index = TimeIndex(str(new_log_dir().path), BASE, OpenFiles(16))
    entries: list[tuple[int, int]] = []
    for number, timestamp in enumerate(timestamps):
        index.append(timestamp, BASE + number)
        if not entries or timestamp > entries[-1][0]:
            entries.append((timestamp, BASE + number))
    at = bisect_right(entries, target, key=lambda entry: entry[0])
    assert index.lookup(target) == (entries[at - 1] if at else None)
    assert index.last() == (entries[-1] if entries else None)


def test_the_files_have_kafkas_layout(tmp_path: Path, files: OpenFiles) -> None:
    offsets = OffsetIndex(str(tmp_path), 1971, files)
    offsets.append(2999, 999_772)
    offsets.flush()
    times = TimeIndex(str(tmp_path), 1971, files)
    times.append(0x01A1E1BC7FB0, 2999)
    times.flush()
    # as Kafka 4.3 wrote them for a segment at 1971
    assert (tmp_path / "00000000000000001971.index").read_bytes().hex() == "00000404000f415c"
    assert (tmp_path / "00000000000000001971.timeindex").read_bytes().hex() == (
        "000001a1e1bc7fb000000404"
    )


def test_a_file_that_is_not_an_index_is_detected(tmp_path: Path, files: OpenFiles) -> None:
    path = tmp_path / "00000000000000001000.index"
    index = OffsetIndex(str(tmp_path), BASE, files)
    assert not index.load()
    path.write_bytes(b"\0" * 7)
    assert not index.load()
    path.write_bytes(b"\0\0\0\1\0\0\0\1" + b"\0" * 80)  # preallocated by Kafka, never trimmed
    assert not index.load()
    path.write_bytes(b"")
    assert index.load()


def test_an_index_reads_entries_written_after_it_was_mapped(
    tmp_path: Path, files: OpenFiles
) -> None:
    index = OffsetIndex(str(tmp_path), BASE, files)
    for number in range(500):
        index.append(BASE + number, number)
        assert index.lookup(BASE + number) == (BASE + number, number)
    assert index.lookup(BASE) == (BASE, 0)
