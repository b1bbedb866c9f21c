"""Loading: everything in order, in slices, whatever kinds of batches there are."""

from typing import Any

import pytest
from tests.coordinator.environment import MemoryLog, SimulatedClock

from barnabas.coordinator import loader
from barnabas.coordinator.groups.offsets.record import OFFSET_RECORDS, CommittedOffset, OffsetKey
from barnabas.coordinator.loader import RECORDS_PER_SLICE, load
from barnabas.coordinator.records import CoordinatorRecord, RecordTypes, encode
from barnabas.metadata.delta import MetadataDelta
from barnabas.metadata.image import MetadataImage
from barnabas.wire.errors import ProtocolViolation
from barnabas.wire.messages.group_records import GroupMetadataKey
from barnabas.wire.records.batch import (
    HEADER_BYTES,
    LENGTH_END,
    CorruptBatch,
    read_header,
    write_header,
)
from barnabas.wire.records.build import Record, build_batch
from barnabas.wire.records.compression import Codec
from barnabas.wire.records.control import build_marker

TYPES = RecordTypes(OFFSET_RECORDS)


class Listener:
    """A state that records its calls."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []

    def replay(self, record: CoordinatorRecord, producer_id: int) -> None:
        self.calls.append((record.key.partition, record.value and record.value.offset, producer_id))

    def replay_end(self, producer_id: int, committed: bool) -> None:
        self.calls.append((producer_id, committed))

    def loaded(self) -> None: ...

    def follow(self, delta: MetadataDelta, image: MetadataImage) -> None: ...


@pytest.fixture
def log() -> MemoryLog:
    return MemoryLog(SimulatedClock())


def records(partitions: range, offset: int = 0) -> list[Record]:
    return [
        encode(
            CoordinatorRecord(
                OffsetKey("g", "t", partition), CommittedOffset(offset, -1, "", 0, -1, b"i" * 16), 4
            ),
            0,
        )
        for partition in partitions
    ]


def heard_in_slices(log: MemoryLog) -> list[list[tuple[Any, ...]]]:
    """What was replayed before each time that others have their turn, and at last."""
    listener = Listener()
    slices = []
    for _ in load(log, TYPES, listener):
        slices.append(listener.calls)
        listener.calls = []
    return [*slices, listener.calls]


def marker(committed: bool) -> bytearray:
    return build_marker(
        producer_id=7, producer_epoch=0, committed=committed, coordinator_epoch=0, timestamp=0
    )


def test_batches_of_all_kinds_are_replayed_in_order(log: MemoryLog) -> None:
    log.append(build_batch(records(range(2), 1)))
    log.append(build_batch(records(range(1), 2), producer_id=7, transactional=True))
    log.append(build_batch(records(range(1), 3), codec=Codec.ZSTD))
    log.append(marker(committed=True))
    log.append(build_batch(records(range(1), 4), producer_id=7, producer_epoch=0))
    log.append(marker(committed=False))
    assert heard_in_slices(log) == [
        [(0, 1, -1), (1, 1, -1), (0, 2, 7), (0, 3, -1), (7, True), (0, 4, -1), (7, False)]
    ]


def test_an_empty_log_takes_one_step(log: MemoryLog) -> None:
    assert heard_in_slices(log) == [[]]


def test_a_log_that_fits_in_a_slice_takes_one_step(log: MemoryLog) -> None:
    log.append(build_batch(records(range(RECORDS_PER_SLICE))))
    assert len(heard_in_slices(log)) == 1
    log.append(build_batch(records(range(1))))
    assert [len(received) for received in heard_in_slices(log)] == [RECORDS_PER_SLICE, 1]


@pytest.mark.parametrize("per_batch", [1, 7, 5_000])
def test_slices_are_of_one_size_whatever_the_batches_are(log: MemoryLog, per_batch: int) -> None:
    for first in range(0, 2_100, per_batch):
        log.append(build_batch(records(range(first, min(first + per_batch, 2_100)))))
    slices = heard_in_slices(log)
    assert [len(received) for received in slices[:-1]] == [RECORDS_PER_SLICE] * (len(slices) - 1)
    assert [received[0] for each in slices for received in each] == list(range(2_100))


def test_the_log_is_read_a_piece_at_a_time(log: MemoryLog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loader, "READ_BYTES", 1_000)
    for partition in range(100):
        log.append(build_batch(records(range(partition, partition + 1))))
    assert [received[0] for received in heard_in_slices(log)[0]] == list(range(100))


def test_loading_begins_at_the_log_start_offset(log: MemoryLog) -> None:
    for partition in range(3):
        log.append(build_batch(records(range(partition, partition + 1))))
    log.start_offset = 1
    assert [received[0] for received in heard_in_slices(log)[0]] == [1, 2]


def test_records_of_unknown_types_and_without_keys_are_skipped(log: MemoryLog) -> None:
    stranger = encode(CoordinatorRecord(GroupMetadataKey(group="g"), None), 0)
    (known,) = records(range(1))
    log.append(build_batch([stranger, Record(0, 0, None, b"?", []), known]))
    assert heard_in_slices(log) == [[(0, 0, -1)]]


@pytest.mark.parametrize("value", [b"\x7f\xff?", b"\0", b""])
def test_a_record_of_a_newer_version_is_not_skipped(log: MemoryLog, value: bytes) -> None:
    (known,) = records(range(1))
    log.append(build_batch([known, known._replace(value=value)]))
    with pytest.raises(ProtocolViolation, match="has no version"):
        heard_in_slices(log)


def test_a_log_that_cannot_be_read_is_not_loaded(log: MemoryLog) -> None:
    batch = build_batch(records(range(3)))
    batch[61] = 0xFF
    log.append(batch)
    with pytest.raises(CorruptBatch):
        heard_in_slices(log)


def test_a_batch_that_still_decodes_is_not_loaded_if_its_checksum_is_wrong(log: MemoryLog) -> None:
    whole = build_batch(records(range(1), 258))
    at = whole.index((258).to_bytes(8))
    whole[at] ^= 1  # the committed offset: another, and as good as any
    log.append(build_batch(records(range(1))))
    log.append(whole)
    with pytest.raises(CorruptBatch, match="offset 1 does not match its checksum"):
        heard_in_slices(log)


def emptied(batch: bytearray) -> bytearray:
    """Returns what compaction keeps of a batch for its producer, or for the end of the log."""
    header = read_header(batch)
    length = HEADER_BYTES - LENGTH_END
    empty = bytearray(HEADER_BYTES)
    write_header(empty, 0, header._replace(length=length, record_count=0, base_timestamp=-1))
    return empty


def test_a_compacted_log_with_gaps_and_empty_batches_is_loaded_to_its_end(log: MemoryLog) -> None:
    four = records(range(4), 1)
    removed_last = build_batch(four[:2])
    header = read_header(removed_last)
    write_header(removed_last, 0, header._replace(last_offset_delta=9))
    log.append(emptied(build_batch(four)))
    log.append(removed_last)
    log.append(emptied(build_batch(four, producer_id=7, transactional=True)))
    log.append(build_batch(four[2:3], producer_id=7, transactional=True))
    log.end_offset += 1_000_000  # everything in between was removed
    log.append(emptied(marker(committed=False)))
    log.append(marker(committed=True))
    log.append(emptied(build_batch(four)))
    assert heard_in_slices(log) == [[(0, 1, -1), (1, 1, -1), (2, 1, 7), (7, True)]]
