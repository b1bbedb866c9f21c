"""Logs and batches for the tests of this package."""

import struct
from collections.abc import Iterable
from pathlib import Path

from barnabas.log import Log, LogAppendInfo, LogConfig, LogDirectory, LogSlice, OpenFiles
from barnabas.wire.records.batch import read_header
from barnabas.wire.records.build import build_batch
from barnabas.wire.records.control import build_marker
from barnabas.wire.records.read import read_records
from barnabas.wire.records.record import Record
from barnabas.wire.records.validate import ValidBatch

TOPIC_ID = bytes(range(16))
NOW_MS = 1_800_000_000_000
SMALL = LogConfig(segment_bytes=4096, index_interval_bytes=256)


class LogTestDirectory:
    """One log directory under a path, with any number of logs."""

    def __init__(self, path: Path, files: OpenFiles | None = None) -> None:
        self.path = path
        self.files = files
        LogDirectory.format(path, "a-cluster", 1, bytes(range(16, 32)))
        self.directory = LogDirectory.open(path, files)

    def create(self, config: LogConfig = SMALL, topic: str = "orders", partition: int = 0) -> Log:
        log = self.directory.create_log(topic, partition, TOPIC_ID, config)
        log.assign_epoch_start_offset(0, 0)
        return log

    def open(self, config: LogConfig = SMALL, topic: str = "orders", partition: int = 0) -> Log:
        return self.directory.open_log(topic, partition, TOPIC_ID, config)

    def folder(self, topic: str = "orders", partition: int = 0) -> Path:
        return self.path / f"{topic}-{partition}"

    def files_named(self, pattern: str) -> list[str]:
        return sorted(path.name for path in self.folder().glob(pattern))

    def delete_due(self, now_ms: int) -> int:
        """Runs the deletes that are due; returns how many."""
        deletes = self.directory.begin_deletes(now_ms)
        deletes.run()
        return len(deletes)

    def stop(self) -> None:
        self.directory.close()

    def kill(self) -> None:
        """The process crashes; what was written stays in the files."""
        self.directory.close(clean=False)

    def restart(self) -> None:
        self.directory = LogDirectory.open(self.path, self.files)

    def stop_and_reopen(self, config: LogConfig = SMALL) -> Log:
        self.stop()
        self.restart()
        return self.open(config)

    def kill_and_reopen(self, config: LogConfig = SMALL) -> Log:
        self.kill()
        self.restart()
        return self.open(config)


def batch(
    values: Iterable[bytes] = (b"value",),
    *,
    timestamp: int = NOW_MS,
    producer_id: int = -1,
    epoch: int = -1,
    sequence: int = -1,
    transactional: bool = False,
) -> ValidBatch:
    """A batch as validation hands it on."""
    content = build_batch(
        [Record(0, timestamp, None, value, []) for value in values],
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
        transactional=transactional,
    )
    return valid(content)


def numbered(
    producer_id: int, epoch: int, sequence: int, count: int = 1, **more: int
) -> ValidBatch:
    """A batch of an idempotent producer."""
    return batch([b"v"] * count, producer_id=producer_id, epoch=epoch, sequence=sequence, **more)


def marker(
    producer_id: int, epoch: int, *, committed: bool, coordinator_epoch: int = 0
) -> ValidBatch:
    return valid(
        build_marker(
            producer_id=producer_id,
            producer_epoch=epoch,
            committed=committed,
            coordinator_epoch=coordinator_epoch,
            timestamp=NOW_MS,
        )
    )


def valid(content: bytearray) -> ValidBatch:
    header = read_header(content)
    return ValidBatch(header, content, header.max_timestamp)


def batch_at(
    base_offset: int, values: Iterable[bytes] = (b"value",), leader_epoch: int = 0
) -> bytes:
    """A batch as a leader hands it to its followers."""
    records = [Record(0, NOW_MS, None, value, []) for value in values]
    return bytes(build_batch(records, base_offset=base_offset, leader_epoch=leader_epoch))


def write(log: Log, valid: ValidBatch, *, from_client: bool = True) -> LogAppendInfo:
    """Appends a batch; if it opens a transaction, that is verified first."""
    verification = None
    if valid.header.is_transactional and from_client:
        verification = log.producers.start_batch_verification(
            valid.header, from_zero=False, now_ms=NOW_MS
        )
    return log.append_as_leader(
        valid, 0, NOW_MS, from_client=from_client, verification=verification
    )


def append(log: Log, *values: bytes, timestamp: int = NOW_MS) -> int:
    """Appends one batch; its first offset."""
    return log.append_as_leader(batch(values, timestamp=timestamp), 0, NOW_MS).first_offset


def fill(log: Log, count: int, value: bytes = b"x" * 100) -> None:
    """Appends batches of one record each."""
    for _ in range(count):
        append(log, value)


def records_in(piece: LogSlice | None) -> list[Record]:
    """Every record of a slice, which must consist of whole batches."""
    records: list[Record] = []
    if piece is not None:
        content, position = piece.read(), 0
        while position < len(content):
            records += read_records(content, position)
            (length,) = struct.unpack_from(">i", content, position + 8)
            position += 12 + length
        assert position == len(content)
    return records


def read_all(log: Log, max_bytes: int = 1 << 20) -> list[tuple[int, bytes | None]]:
    """Offset and value of every record, read as a consumer does."""
    found: list[tuple[int, bytes | None]] = []
    offset = log.log_start_offset
    while (piece := log.read(offset, max_bytes, upto=log.log_end_offset)) is not None:
        found += [(r.offset, r.value) for r in records_in(piece) if r.offset >= offset]
        assert piece.next_offset > offset
        offset = piece.next_offset
    return found
