"""A cleaned log has holes: offsets without records, within batches, between them, at either end."""

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.log.cleaner.cleaner_harness import CleanerHarness
from tests.log.log_test_directory import LogTestDirectory, records_in

from barnabas.wire.records.batch import read_header
from barnabas.wire.records.compression import Codec

A, B, C = b"a", b"b", b"c"


@pytest.fixture
def holes(tmp_path: Path) -> CleanerHarness:
    """A log of 16 offsets in two segments, of which 4, 9, 10 and 14 are left."""
    return log_with_holes(tmp_path)


def log_with_holes(path: Path) -> CleanerHarness:
    harness = CleanerHarness(path / "data")
    harness.write((A, b"0"), (B, b"1"), (C, b"2"))
    harness.write((A, b"3"), (b"kept", b"4"), (B, b"5"))
    harness.roll()
    harness.write((A, b"6"), (B, b"7"), codec=Codec.ZSTD)
    harness.write((A, b"8"), (B, b"9"), (C, b"10"), codec=Codec.GZIP)
    harness.write((b"other", b"11"))
    harness.now_ms += 5
    harness.write((A, b"12"), (b"other", b"13"))
    harness.now_ms -= 3
    harness.write((A, b"14"), (b"other", b"15"), producer_id=5, producer_epoch=0, base_sequence=0)
    harness.roll()
    harness.write((b"other", b"16"))
    harness.roll_and_clean()
    assert [r.offset for r in harness.records()] == [4, 9, 10, 14, 16]
    return harness


def test_a_reader_from_any_offset_gets_the_records_after_it(holes: CleanerHarness) -> None:
    for offset in range(18):
        read = [r.offset for _, records in holes.batches(offset=offset) for r in records]
        assert [o for o in read if o >= offset] == [o for o in (4, 9, 10, 14, 16) if o >= offset]


def test_a_fetch_of_any_size_makes_progress(holes: CleanerHarness) -> None:
    for max_bytes in (1, 70, 100, 200, 1000):
        offset, read = 0, []
        while (piece := holes.log.read(offset, max_bytes, upto=17)) is not None:
            assert piece.next_offset > offset
            read += [record.offset for record in records_in(piece)]
            offset = piece.next_offset
        assert read == [4, 9, 10, 14, 16]


def test_batches_keep_their_offsets_and_sequences(holes: CleanerHarness) -> None:
    extents = [(h.base_offset, h.last_offset, h.record_count) for h, _ in holes.batches()]
    assert extents == [(3, 5, 1), (8, 10, 2), (14, 15, 1), (16, 16, 1)]
    assert [h.last_sequence for h, _ in holes.batches()] == [-1, -1, 1, -1]


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("offset", range(18))
def test_a_log_that_is_truncated_in_a_hole_has_the_same_end_after_a_restart(
    holes: CleanerHarness, offset: int, clean: bool
) -> None:
    """Also if everything up to its end is on disk, which recovery checks."""
    left = [record for record in holes.records() if record.offset < offset]
    holes.log.truncate_to(offset)
    end_offset = holes.log.log_end_offset
    assert end_offset <= offset
    holes.log.flusher.flush()
    holes.log_dir.directory.checkpoint()
    if clean:
        holes.stop()
    else:
        holes.kill()
    holes.start()
    assert holes.log.log_end_offset == end_offset
    kept = holes.records()
    assert kept == left[: len(kept)]
    assert all(record.offset >= end_offset for record in left[len(kept) :])
    assert holes.write((A, b"next")) == end_offset


def test_timestamps_are_found_though_the_batch_that_had_them_is_empty(
    tmp_path: Path,
) -> None:
    harness = CleanerHarness(tmp_path / "data")
    start_ms = harness.now_ms
    harness.write((A, b"0"))
    harness.now_ms += 10
    harness.write((B, b"1"), producer_id=5, producer_epoch=0, base_sequence=0)
    harness.now_ms -= 5
    harness.write((B, b"2"))
    harness.roll_and_clean()
    assert [h.record_count for h, _ in harness.batches()] == [1, 0, 1]
    log = harness.log
    for timestamp, offset in ((0, 0), (start_ms, 0), (start_ms + 1, 2), (start_ms + 5, 2)):
        found = log.offset_for_timestamp(timestamp)
        assert found is not None
        assert found.offset == offset
    assert log.offset_for_timestamp(start_ms + 6) is None
    latest = log.offset_of_max_timestamp()
    assert latest is not None
    assert (latest.timestamp, latest.offset) == (start_ms + 5, 2)
    harness.kill()


def test_a_follower_copies_a_log_with_holes(
    holes: CleanerHarness, new_log_dir: Callable[[], LogTestDirectory]
) -> None:
    """It has the same offsets, and the sequence of a producer whose records are gone."""
    holes.write((A, b"17"))
    holes.roll_and_clean()
    log_dir = new_log_dir()
    follower = log_dir.create(holes.config)
    while (piece := holes.log.read(follower.log_end_offset, 100, upto=18)) is not None:
        follower.append_as_follower(piece.read(), holes.now_ms)
    assert follower.log_end_offset == 18
    assert list(holes.batches(follower)) == list(holes.batches())
    assert follower.producers.entries[5].last_sequence == 1
    empty = [h for h, _ in holes.batches(follower) if h.record_count == 0]
    assert [(h.base_offset, h.last_offset) for h in empty] == [(14, 15)]
    log_dir.kill()


def test_the_end_of_the_log_stays_though_its_last_records_are_replaced(
    tmp_path: Path,
) -> None:
    """The last batch before the uncleanable part is kept without records."""
    harness = CleanerHarness(tmp_path / "data")
    harness.write_each((A, b"1"), (B, b"1"), (A, None))
    harness.roll_and_clean()
    harness.now_ms += 2 * 24 * 60 * 60 * 1000
    harness.clean()
    assert [(h.base_offset, h.record_count) for h, _ in harness.batches()] == [(1, 1), (2, 0)]
    header = read_header((harness.log_dir.folder("prices") / f"{0:020d}.log").read_bytes())
    assert header.base_offset == 1
    harness.kill()
    (harness.log_dir.folder("prices") / f"{3:020d}.log").unlink()  # the active segment
    harness.start()
    assert harness.log.log_end_offset == 3
    harness.kill()
