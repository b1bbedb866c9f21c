"""A scan that skips most batches finds what a scan of every single batch finds."""

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.log.log_test_directory import NOW_MS, LogTestDirectory, batch_at
from tests.uncompiled import compiled_and_plain

from barnabas.log import OpenFiles
from barnabas.log.producers import replay
from barnabas.log.producers.producer_state import ProducerStateManager
from barnabas.log.segments import _batch_walk
from barnabas.log.segments.index import AbortedTransaction
from barnabas.log.segments.scan import ValidBatches
from barnabas.log.segments.segment import LogSegment
from barnabas.wire.records.batch import BatchHeader, assign_offset, iterate_batches, read_header
from barnabas.wire.records.build import build_batch
from barnabas.wire.records.control import build_marker
from barnabas.wire.records.record import Record

loops = compiled_and_plain(_batch_walk)

INTERVAL_BYTES = 300


PRODUCER_FIELDS = (
    "producer_id",
    "epoch",
    "coordinator_epoch",
    "last_timestamp",
    "transaction_first_offset",
    "next_sequence",
    "batches",
)


@dataclass(slots=True)
class ScanResult:
    """What a scan has found out about a segment."""

    index: list[tuple[int, ...]] = field(default_factory=list)
    time_index: list[tuple[int, ...]] = field(default_factory=list)
    leader_epochs: list[tuple[int, int]] = field(default_factory=list)
    producers: ProducerStateManager = field(default_factory=lambda: ProducerStateManager("orders"))
    aborted: list[AbortedTransaction] = field(default_factory=list)
    totals: tuple[int, ...] = ()

    def add_producer_batch(self, header: BatchHeader, content: memoryview) -> None:
        aborted = replay.replay_batch(self.producers, header, content)
        if aborted is not None:
            self.aborted.append(aborted)

    def complete(self, segment: LogSegment) -> "ScanResult":
        for index, entries in (
            (segment.offset_index, self.index),
            (segment.time_index, self.time_index),
        ):
            entries += [index.entry(number) for number in range(index.count)]
        self.totals = (
            segment.size_bytes,
            segment.next_offset,
            segment.unindexed_bytes,
            segment.max_timestamp,
            segment.offset_of_max_timestamp,
        )
        return self

    def described(self) -> tuple[object, ...]:
        entries = self.producers.entries.values()
        states = [[getattr(entry, name) for name in PRODUCER_FIELDS] for entry in entries]
        first_undecided = self.producers.first_undecided_offset
        return (
            self.index,
            self.time_index,
            self.leader_epochs,
            self.aborted,
            self.totals,
            states,
            first_undecided,
        )


def scan(segment: LogSegment, file_bytes: int) -> ScanResult:
    result = ScanResult()
    segment.reset()
    for walk, view in ValidBatches(segment, file_bytes, None, leader_epoch=-1):
        segment.on_batches_scanned(walk)
        result.leader_epochs += walk.leader_epochs
        for position in walk.producer_batches:
            _, header = next(iterate_batches(view, position))
            result.add_producer_batch(header, view[position : position + header.size_bytes])
    return result.complete(segment)


def scan_every_batch(segment: LogSegment, content: bytes) -> ScanResult:
    result = ScanResult()
    segment.reset()
    latest = -1
    for position, header in iterate_batches(content):
        segment.on_batch_written(header.size_bytes, header.last_offset, header.max_timestamp)
        if header.leader_epoch > latest:
            latest = header.leader_epoch
            result.leader_epochs.append((latest, header.base_offset))
        if header.producer_id >= 0:
            end = position + header.size_bytes
            result.add_producer_batch(header, memoryview(content)[position:end])
    return result.complete(segment)


@st.composite
def segments(draw: st.DrawFn) -> bytes:
    """Rows of batches of a few producers, with and without transactions, and their markers."""
    content, offset, leader_epoch = bytearray(), 0, 0
    for _ in range(draw(st.integers(1, 12))):
        producer_id = draw(st.sampled_from((-1, 1, 2)))
        epoch = draw(st.integers(0, 1)) if producer_id >= 0 else -1
        is_marker = producer_id >= 0 and draw(st.integers(0, 3)) == 0
        is_transactional = draw(st.booleans())
        leader_epoch += draw(st.sampled_from((0, 0, 2)))
        for _ in range(1 if is_marker else draw(st.integers(1, 9))):
            timestamp = NOW_MS + draw(st.integers(0, 20))
            if is_marker:
                batch = build_marker(
                    producer_id=producer_id,
                    producer_epoch=epoch,
                    committed=draw(st.booleans()),
                    coordinator_epoch=0,
                    timestamp=timestamp,
                )
            else:
                batch = build_batch(
                    [Record(0, timestamp, None, b"value", [])] * draw(st.integers(1, 3)),
                    producer_id=producer_id,
                    producer_epoch=epoch,
                    base_sequence=offset if producer_id >= 0 else -1,
                    transactional=producer_id == 2 and is_transactional,
                )
            assign_offset(batch, 0, offset, leader_epoch)
            content += batch
            offset = read_header(batch).next_offset
    return bytes(content)


def write_segment(folder: Path, content: bytes) -> LogSegment:
    segment = LogSegment.new(str(folder), 0, OpenFiles(), INTERVAL_BYTES)
    os.pwrite(segment.file().fd, content, 0)
    return segment


@given(segments(), st.integers(100, 4000))
@settings(max_examples=150, deadline=None)
def test_a_scan_finds_what_a_replay_of_every_batch_finds(
    new_log_dir: Callable[[], LogTestDirectory], content: bytes, buffer_bytes: int
) -> None:
    segment = write_segment(new_log_dir().path, content)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("barnabas.log.segments.scan._BUFFER_BYTES", buffer_bytes)
        scanned = scan(segment, len(content))
    assert scanned.described() == scan_every_batch(segment, content).described()


def test_the_batch_that_opens_a_transaction_is_never_skipped(log_dir: LogTestDirectory) -> None:
    content = bytearray()
    for offset in range(20):
        batch = build_batch(
            [Record(0, NOW_MS, None, b"value", [])],
            base_offset=offset,
            producer_id=1,
            producer_epoch=0,
            base_sequence=offset,
            transactional=offset >= 5,
        )
        content += batch
    scanned = scan(write_segment(log_dir.path, content), len(content))
    assert scanned.producers.first_undecided_offset == 5


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (batch_at(2)[:30], "the file ends within a batch"),
        (batch_at(2)[:-1], "the file ends within a batch"),
        (bytes(100), "there is no batch"),
        (batch_at(1), "offsets 1 to 1 are out of order"),
        (batch_at(1 << 31), "are out of order"),
        (batch_at(2)[:-1] + b"?", "the checksum of the batch does not match"),
    ],
)
def test_a_scan_ends_at_the_first_damage_and_says_why(
    log_dir: LogTestDirectory, damage: bytes, reason: str
) -> None:
    valid = batch_at(0) + batch_at(1)
    content = valid + damage
    segment = write_segment(log_dir.path, content)
    batches = ValidBatches(segment, len(content), None, leader_epoch=-1)
    ends = [walk.position for walk, _ in batches]
    assert ends == [len(valid)]
    assert reason in batches.reason


def test_a_batch_that_reaches_the_next_segment_is_out_of_order(log_dir: LogTestDirectory) -> None:
    content = batch_at(0) + batch_at(1) + batch_at(2)
    segment = write_segment(log_dir.path, content)
    batches = ValidBatches(segment, len(content), limit=2, leader_epoch=-1)
    assert [walk.next_offset for walk, _ in batches] == [2]
    assert batches.reason == "offsets 2 to 2 are out of order"
