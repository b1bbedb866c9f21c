"""A process that ends at any file operation of a cleaning leaves a log that recovery completes.

The crash is an exception that nothing handles, before the nth operation. Then the directory is
opened again from its files, as after kill -9.
"""

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import count, pairwise
from pathlib import Path
from typing import Any

import pytest
from tests.log.cleaner.cleaner_harness import COMPACTED, DAY_MS, CleanerHarness
from tests.log.cleaner.committed_view import committed_records, last_values
from tests.os_faults import fault_in_this_thread

from barnabas.log.cleaner.segment_writer import CleanedSegment, CleanedSegmentWriter
from barnabas.wire.records.compression import Codec
from barnabas.wire.records.record import Record

NAME_CHANGES = ("rename", "replace", "unlink")
OPERATIONS = (*NAME_CHANGES, "open", "pwrite", "fsync", "utime", "ftruncate")
A, B, C, D = b"a", b"b", b"c", b"d"


class Crash(BaseException):
    """The process ends here."""


@contextmanager
def crash_before(
    number: int | None, monkeypatch: pytest.MonkeyPatch, operations: Sequence[str] = OPERATIONS
) -> Iterator[list[str]]:
    """Ends the process before its nth file operation; yields the operations that were done."""
    done: list[str] = []
    numbers = count()

    def intercept(name: str) -> Callable[..., Any]:
        real = getattr(os, name)

        def call(*args: Any, **named: Any) -> Any:
            if next(numbers) == number:
                raise Crash
            done.append(name)
            return real(*args, **named)

        return call

    with monkeypatch.context() as patch:
        for name in operations:
            patch.setattr(os, name, fault_in_this_thread(name, intercept(name)))
        yield done


# Logs to be cleaned


def new_log(harness: CleanerHarness) -> None:
    """Several segments that become one: replaced keys, tombstones, an aborted transaction."""
    harness.write_each((A, b"1"), (B, b"1"), (C, b"1"))
    harness.write((D, b"0"), producer_id=5, producer_epoch=0, base_sequence=0)
    harness.roll()
    harness.write_in_transaction((A, b"aborted"), (D, b"aborted"))
    harness.write((B, b"2"), (C, b"2"), (b"gone", b"1"), codec=Codec.LZ4)
    harness.end_transaction(committed=False)
    harness.roll()
    harness.write_in_transaction((A, b"2"), sequence=2)
    harness.end_transaction(committed=True)
    harness.roll()
    harness.write_each((B, b"3"), (b"gone", None), (D, b"1"))
    harness.roll()


def several_groups(harness: CleanerHarness) -> None:
    new_log(harness)
    harness.config = harness.log.config = replace(COMPACTED, segment_bytes=600)


def without_first_segment(harness: CleanerHarness) -> None:
    """The first segment becomes empty, and the next ones have no gaps between their batches."""
    for value in (b"1", b"2", b"3"):
        harness.write_each((A, value), (B, value))
        harness.roll()
    harness.config = harness.log.config = replace(COMPACTED, segment_bytes=200)


def cleaned_once(harness: CleanerHarness) -> None:
    """The data of the aborted transaction is gone; its index entry goes now."""
    new_log(harness)
    harness.clean()
    harness.write((C, b"3"))
    harness.write_in_transaction((A, b"3"), sequence=3)
    harness.end_transaction(committed=True)
    harness.roll()


def cleaned_twice(harness: CleanerHarness) -> None:
    """The marker of the aborted transaction and the tombstone go now.

    The producer has a committed transaction after it, which must not look aborted.
    """
    cleaned_once(harness)
    harness.clean()
    harness.now_ms += 2 * DAY_MS
    harness.write((C, b"4"))
    harness.roll()


# What must hold afterwards


@dataclass(slots=True, frozen=True)
class LogState:
    """What a reader, a producer and the next cleaning see of a log."""

    records: Sequence[Record]
    committed: Sequence[Record]
    end_offset: int
    stable_offset: int
    sequences: dict[int, tuple[int, int]]
    aborted: Sequence[tuple[int, int]]

    @classmethod
    def of(cls, harness: CleanerHarness) -> "LogState":
        log = harness.log
        return cls(
            harness.records(),
            committed_records(log),
            log.log_end_offset,
            harness.last_stable_offset(log),
            {p.producer_id: (p.epoch, p.last_sequence) for p in log.producers.entries.values()},
            log.aborted_transactions(0, log.log_end_offset),
        )

    def within(self, first: int, end: int) -> list[Record]:
        return [record for record in self.records if first <= record.offset < end]


def check(state: LogState, before: LogState, after: LogState, bases: Sequence[int]) -> None:
    """Each source segment has its old or its new content, and nothing else has changed."""
    for first, end in pairwise((*bases, before.end_offset)):
        contents = before.within(first, end), after.within(first, end)
        assert state.within(first, end) in contents, f"offsets {first} to {end}"
    assert last_values(state.committed) == last_values(before.committed)
    for name in ("end_offset", "stable_offset", "sequences"):
        assert getattr(state, name) == getattr(before, name), name
    for other in (before, after):
        if state.records == other.records:
            assert state.aborted == other.aborted


def check_indexes(harness: CleanerHarness) -> None:
    """Offsets and timestamps are found, whatever the indexes were."""
    log, records = harness.log, harness.records()
    for offset in range(log.log_end_offset):
        batches = harness.batches(offset=offset)
        found = [r.offset for h, batch in batches for r in batch if not h.is_control]
        expected = [record.offset for record in records if record.offset >= offset]
        assert [o for o in found if o >= offset] == expected
    for timestamp in {record.timestamp for record in records}:
        first = log.offset_for_timestamp(timestamp)
        assert first is not None
        assert first.offset <= min(r.offset for r in records if r.timestamp >= timestamp)


class PreparedLog:
    """A log directory that is copied for each crash."""

    def __init__(self, path: Path, prepare: Callable[[CleanerHarness], None]) -> None:
        self._path = path
        harness = CleanerHarness(path / "prepared")
        prepare(harness)
        self.before = LogState.of(harness)
        self.bases = [segment.base_offset for segment in harness.log.segments]
        self._config, self._now_ms = harness.log.config, harness.now_ms
        # Recovery rebuilds the indexes of what may not be on disk: everything is.
        harness.log.flusher.flush()
        harness.log_dir.directory.checkpoint()
        harness.kill()
        self._copies = count()
        copy = self.copy()
        copy.clean()
        self.after = LogState.of(copy)
        copy.kill()
        assert self.after.records != self.before.records

    def copy(self) -> CleanerHarness:
        """Opens a copy of the log as it was before the cleaning."""
        harness = CleanerHarness(self.copy_folder(self._path / "prepared"), self._config)
        harness.now_ms = self._now_ms
        return harness

    def copy_folder(self, folder: Path) -> Path:
        return shutil.copytree(folder, self._path / str(next(self._copies)))

    def check(self, harness: CleanerHarness) -> None:
        assert (harness.files(".cleaned"), harness.files(".swap")) == ([], [])
        check(LogState.of(harness), self.before, self.after, self.bases)
        check_indexes(harness)


@pytest.fixture(
    params=[new_log, several_groups, without_first_segment, cleaned_once, cleaned_twice]
)
def prepared(request: pytest.FixtureRequest, memory_path: Path) -> PreparedLog:
    return PreparedLog(memory_path, request.param)


def test_a_crash_at_any_operation_leaves_the_old_or_the_new_content(
    prepared: PreparedLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    outcomes = set()
    for number in count():
        harness = prepared.copy()
        with crash_before(number, monkeypatch) as done:
            has_ended = ends(harness.clean)
        harness.kill()
        harness.start()
        prepared.check(harness)
        outcomes.add(tuple(harness.records()) == tuple(prepared.before.records))
        harness.clean()
        harness.clean()
        assert harness.records() == prepared.after.records
        harness.kill()
        if has_ended:
            break
    assert {"rename", "fsync", "open", "utime"} <= set(done)
    assert outcomes == {True, False}


@pytest.mark.parametrize("prepared", [new_log, cleaned_twice], indirect=True)
def test_a_second_crash_during_the_recovery_changes_nothing(
    prepared: PreparedLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(name_changes_of_a_cleaning(prepared, monkeypatch)):
        harness = prepared.copy()
        with crash_before(number, monkeypatch, NAME_CHANGES):
            assert not ends(harness.clean)
        harness.kill()
        crashed = harness.log_dir.path
        for second in count():
            harness.log_dir.path = prepared.copy_folder(crashed)
            with crash_before(second, monkeypatch, NAME_CHANGES):
                has_ended = ends(harness.start)
            harness.log_dir.kill()
            harness.start()
            prepared.check(harness)
            harness.kill()
            if has_ended:
                break


def ends(work: Callable[[], None]) -> bool:
    """Whether the process does not crash before the end of the work."""
    try:
        work()
    except Crash:
        return False
    return True


def name_changes_of_a_cleaning(prepared: PreparedLog, monkeypatch: pytest.MonkeyPatch) -> int:
    harness = prepared.copy()
    with crash_before(None, monkeypatch, NAME_CHANGES) as done:
        harness.clean()
    harness.kill()
    return len(done)


def test_a_group_that_becomes_several_segments_is_replaced_as_a_whole_or_not(
    memory_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cleaned segment that would be too large is continued in another one."""
    prepared = PreparedLog(memory_path, new_log)
    for number in count():
        harness = prepared.copy()
        cleaned = split(harness)
        segments = list(harness.log.segments.ordered[:-1])
        with crash_before(number, monkeypatch):
            has_ended = ends(
                lambda harness=harness, segments=segments, cleaned=cleaned: (
                    harness.log.maintenance.put_in_place(segments, cleaned)
                )
            )
        harness.kill()
        harness.start()
        assert (harness.files(".cleaned"), harness.files(".swap")) == ([], [])
        assert LogState.of(harness) == prepared.before
        assert len(harness.log.segments) in (3, len(prepared.bases))
        harness.kill()
        if has_ended:
            break


def split(harness: CleanerHarness) -> list[CleanedSegment]:
    """Writes all closed segments again, as two."""
    folder_fd = os.open(harness.log.path, os.O_RDONLY)
    cleaned = []
    for batches in halves(harness):
        writer = CleanedSegmentWriter(folder_fd, batches[0][0], 200, lambda _: None)
        for _, last_offset, max_timestamp, content in batches:
            writer.write(memoryview(content))
            writer.indexes.on_batch(len(content), last_offset, max_timestamp)
        for segment in harness.log.segments.ordered[:-1]:
            for aborted in segment.transaction_index.overlapping(0, 1000)[0]:
                if batches[0][0] <= aborted.last_offset <= batches[-1][1]:
                    writer.add_aborted(aborted)
        cleaned.append(writer.finish(1))
    os.close(folder_fd)
    return cleaned


def halves(harness: CleanerHarness) -> Iterator[list[tuple[int, int, int, bytes]]]:
    """The batches of the closed segments: base offset, last offset, timestamp, bytes."""
    batches = [
        (
            header.base_offset,
            header.last_offset,
            header.max_timestamp,
            segment.read_batch(at, header),
        )
        for segment in harness.log.segments.ordered[:-1]
        for at, header in segment.batch_headers()
    ]
    yield batches[: len(batches) // 2]
    yield batches[len(batches) // 2 :]
