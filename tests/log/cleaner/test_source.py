"""The segments that a cleaning reads: their groups, their batches, and whether they are left."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.log.cleaner.cleaner_harness import CleanerHarness
from tests.log.log_test_directory import batch_at

from barnabas.log.cleaner.source import (
    MAX_SEGMENTS_PER_GROUP,
    BatchReader,
    SourceFolder,
    SourceSegment,
    SourceSegments,
    group_segments,
)
from barnabas.log.segments.log_files import INDEX, TIME_INDEX, file_name
from barnabas.wire.records.batch import CorruptBatch, iterate_batches

MAX_INT32 = 0x7FFFFFFF


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[SourceFolder]:
    folder = SourceFolder(str(tmp_path))
    yield folder
    folder.close()


def sources(*sizes: int, offsets_each: int = 10) -> list[SourceSegment]:
    """Segments of these sizes, one after the other."""
    segment: Any = SimpleNamespace()
    return [
        SourceSegment(segment, number * offsets_each, (number + 1) * offsets_each, size)
        for number, size in enumerate(sizes)
    ]


def grouped(
    folder: SourceFolder,
    segments: Sequence[SourceSegment],
    segment_bytes: int = 100,
    index_bytes: int = 1000,
) -> list[list[int]]:
    """The sizes of the segments in each group."""
    groups = group_segments(folder, segments, segment_bytes=segment_bytes, index_bytes=index_bytes)
    assert [source for group in groups for source in group] == list(segments)
    return [[source.size_bytes for source in group] for group in groups]


def test_a_group_has_at_most_segment_bytes(folder: SourceFolder) -> None:
    assert grouped(folder, sources(40, 60, 1, 99, 2)) == [[40, 60], [1, 99], [2]]
    assert grouped(folder, []) == []


def test_a_segment_larger_than_segment_bytes_is_a_group_of_its_own(folder: SourceFolder) -> None:
    assert grouped(folder, sources(10, 150, 10, 10)) == [[10], [150], [10, 10]]


def test_empty_segments_join_a_group(folder: SourceFolder) -> None:
    assert grouped(folder, sources(0, 0, 100, 0, 1)) == [[0, 0, 100, 0], [1]]


@pytest.mark.parametrize("suffix", [INDEX, TIME_INDEX])
def test_a_group_has_at_most_segment_index_bytes(
    folder: SourceFolder, tmp_path: Path, suffix: str
) -> None:
    segments = sources(1, 1, 1, 1)
    for source in segments:
        (tmp_path / file_name(source.base_offset, suffix)).write_bytes(bytes(40))
    assert grouped(folder, segments, index_bytes=120) == [[1, 1, 1], [1]]
    assert grouped(folder, segments, index_bytes=119) == [[1, 1], [1, 1]]


def test_offsets_of_a_group_are_relative_to_its_base_in_31_bits(folder: SourceFolder) -> None:
    half = 1 << 30
    assert grouped(folder, sources(1, 1, offsets_each=half)) == [[1, 1]]
    assert grouped(folder, sources(1, 1, 1, offsets_each=half)) == [[1, 1], [1]]
    segment: Any = SimpleNamespace()
    for last_offset, groups in ((MAX_INT32, [[1, 1]]), (MAX_INT32 + 1, [[1], [1]])):
        pair = [SourceSegment(segment, 0, 5, 1), SourceSegment(segment, 5, last_offset + 1, 1)]
        assert grouped(folder, pair) == groups


def test_empty_segments_join_a_group_at_any_distance(folder: SourceFolder) -> None:
    """Or one would be left every 2^31 offsets."""
    assert grouped(folder, sources(1, 0, 0, 0, 1, offsets_each=1 << 30)) == [[1, 0, 0, 0], [1]]


def test_a_group_has_few_segments_since_the_loop_renames_them_at_once(
    folder: SourceFolder,
) -> None:
    sizes = [1] * (MAX_SEGMENTS_PER_GROUP + 1)
    assert grouped(folder, sources(*sizes), segment_bytes=1000) == [sizes[1:], [1]]


class TestBatchReader:
    """Reads of at least one whole batch, whatever the size of the buffer is."""

    @pytest.mark.parametrize("buffer_bytes", [0, 61, 100, 300, 1000, 100_000])
    def test_every_batch_is_read_whole(self, tmp_path: Path, buffer_bytes: int) -> None:
        batches = [batch_at(offset, [bytes(offset * 37)]) for offset in range(20)]
        content = b"".join(batches)
        assert self.read_all(tmp_path, content, buffer_bytes) == batches

    def test_the_buffer_is_small_again_after_a_large_batch(self, tmp_path: Path) -> None:
        large, small = batch_at(0, [bytes(5000)]), batch_at(1)
        with self.opened(tmp_path, large + small * 5) as fd:
            reader = BatchReader(200)
            assert len(reader.read(fd, 0, len(large) + 5 * len(small))) == len(large)
            assert len(reader.read(fd, len(large), len(large) + 5 * len(small))) == 200

    @pytest.mark.parametrize("kept_bytes", [0, 30, 60, 61, 65])
    def test_a_file_that_ends_within_a_batch_is_corrupt(
        self, tmp_path: Path, kept_bytes: int
    ) -> None:
        content = batch_at(0)
        with self.opened(tmp_path, content[:kept_bytes]) as fd, pytest.raises(CorruptBatch):
            BatchReader(1000).read(fd, 0, len(content))

    def test_a_batch_beyond_the_end_of_the_segment_is_corrupt(self, tmp_path: Path) -> None:
        content = batch_at(0)
        with self.opened(tmp_path, content * 2) as fd, pytest.raises(CorruptBatch):
            BatchReader(1000).read(fd, len(content), 2 * len(content) - 1)

    def read_all(self, tmp_path: Path, content: bytes, buffer_bytes: int) -> list[bytes]:
        reader, position, batches = BatchReader(buffer_bytes), 0, []
        with self.opened(tmp_path, content) as fd:
            while position < len(content):
                chunk = reader.read(fd, position, len(content))
                for at, header in iterate_batches(chunk):
                    batches.append(bytes(chunk[at : at + header.size_bytes]))
                    position += header.size_bytes
        return batches

    @contextmanager
    def opened(self, tmp_path: Path, content: bytes) -> Iterator[int]:
        path = tmp_path / "batches"
        path.write_bytes(content)
        fd = os.open(path, os.O_RDONLY)
        try:
            yield fd
        finally:
            os.close(fd)


class TestSourceSegments:
    """A cleaning ends when the log does not have its sources any more."""

    @pytest.fixture
    def segments(self, harness: CleanerHarness) -> SourceSegments:
        for _ in range(3):
            harness.write_each((b"k", b"1"), (b"k", b"2"))
            harness.roll()
        harness.write_each((b"k", b"1"), (b"k", b"2"))
        return SourceSegments(harness.log, 6)

    def test_all_closed_segments_below_the_end_are_sources(self, segments: SourceSegments) -> None:
        assert [source.base_offset for source in segments.left] == [0, 2, 4]
        assert segments.are_unchanged()

    def test_appends_and_rolls_change_nothing(
        self, harness: CleanerHarness, segments: SourceSegments
    ) -> None:
        harness.write((b"k", b"3"))
        harness.roll()
        assert segments.are_unchanged()

    @pytest.mark.parametrize("offset", [7, 5, 1])
    def test_a_truncation_changes_them(
        self, harness: CleanerHarness, segments: SourceSegments, offset: int
    ) -> None:
        harness.log.truncate_to(offset)
        harness.write((b"k", b"3"))
        harness.roll()
        assert not segments.are_unchanged()

    def test_a_new_log_in_their_position_changes_them(
        self, harness: CleanerHarness, segments: SourceSegments
    ) -> None:
        harness.log.truncate_fully_and_start_at(0)
        assert not segments.are_unchanged()

    def test_retention_changes_them_unless_the_deleted_ones_are_replaced(
        self, harness: CleanerHarness, segments: SourceSegments
    ) -> None:
        harness.log.advance_log_start_offset(2)
        harness.log.maintenance.delete_old_segments(harness.now_ms, 8)
        assert not segments.are_unchanged()
        segments.on_replaced(1)
        assert segments.are_unchanged()
