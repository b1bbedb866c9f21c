"""Snapshots of the metadata log: `<end offset>-<epoch>.checkpoint`.

A snapshot replaces all records below its end offset. It is a file of record batches:

    control batch   snapshot header; kraft.version and voters, if the voters are in the log
    batches         the records of an image
    control batch   snapshot footer; without it the file is incomplete

While it is written, its name ends in `.part`, and no reader uses it. `bootstrap.checkpoint`, which
formatting writes, has the same format.
"""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from barnabas.log.checkpoint_file import sync_path
from barnabas.log.directory.directory_files import (
    write_partition_metadata as write_partition_metadata,
)
from barnabas.raft.control_records import control_batch, snapshot_footer, snapshot_header
from barnabas.raft.voters import VoterSet
from barnabas.wire.records.batch import (
    HEADER_BYTES,
    BatchHeader,
    CorruptBatch,
    crc_is_valid,
    iterate_batches,
    read_header,
)
from barnabas.wire.records.build import Record, build_batch
from barnabas.wire.records.control import ControlType, read_control_type
from barnabas.wire.records.read import read_records
from barnabas.wire.uuid import METADATA_TOPIC_ID

METADATA_TOPIC = "__cluster_metadata"
FOLDER = f"{METADATA_TOPIC}-0"
BOOTSTRAP_FILE = "bootstrap.checkpoint"
"""The feature levels that the first active controller writes into the log of a new cluster."""

_MAX_BATCH_RECORDS = 1024
_NAME = re.compile(r"(\d{20})-(\d{10})\.checkpoint")


class SnapshotId(NamedTuple):
    """The first offset after the snapshot, and the epoch of the record before that offset."""

    end_offset: int
    epoch: int

    @property
    def file_name(self) -> str:
        return f"{self.end_offset:020}-{self.epoch:010}.checkpoint"


class SnapshotWriter:
    """Writes one snapshot in steps; it exists only after `finish`."""

    def __init__(
        self,
        folder: str,
        snapshot_id: SnapshotId,
        voters: VoterSet | None,
        *,
        last_timestamp_ms: int,
        now_ms: int,
        file_name: str | None = None,
    ) -> None:
        self.snapshot_id = snapshot_id
        self._file = _PartFile(Path(folder, file_name or snapshot_id.file_name))
        self._offset = 0
        self._now_ms = now_ms
        self._write_control(snapshot_header(voters, last_timestamp_ms))

    def append(self, frames: Sequence[bytes]) -> None:
        """Adds encoded metadata records, in batches of a bounded size."""
        for start in range(0, len(frames), _MAX_BATCH_RECORDS):
            self._write_records(frames[start : start + _MAX_BATCH_RECORDS])

    def finish(self) -> None:
        """Completes the file, syncs it and renames it; may run in any thread.

        Finishing again has no effect.
        """
        if not self._file.is_closed:
            self._write_control(snapshot_footer())
            self._file.finish()

    def abandon(self) -> None:
        self._file.abandon()

    def _write_control(self, records: Sequence[tuple[ControlType, bytes]]) -> None:
        batch = control_batch(
            records, self._now_ms, base_offset=self._offset, epoch=self.snapshot_id.epoch
        )
        self._file.write(batch)
        self._offset += len(records)

    def _write_records(self, frames: Sequence[bytes]) -> None:
        batch = build_batch(
            [Record(0, self._now_ms, None, frame, []) for frame in frames],
            base_offset=self._offset,
            leader_epoch=self.snapshot_id.epoch,
        )
        self._file.write(batch)
        self._offset += len(frames)


def list_snapshots(folder: str) -> list[SnapshotId]:
    """Returns the snapshots in a folder, oldest first; deletes files of interrupted writes."""
    snapshots = []
    for path in Path(folder).iterdir():
        if match := _NAME.fullmatch(path.name):
            snapshots.append(SnapshotId(int(match[1]), int(match[2])))
        elif path.name.endswith((".checkpoint.part", ".checkpoint.deleted")):
            path.unlink()
    return sorted(snapshots)


def read_snapshot(path: Path) -> Iterator[list[Record]]:
    """Yields the records of a snapshot, batch by batch; only control records have keys.

    Raises CorruptBatch if the file is corrupt or incomplete.
    """
    content = path.read_bytes()
    end = 0
    last: list[Record] = []
    for position, header in checked_batches(path, content):
        end = position + header.size_bytes
        last = read_records(content, position)
        yield last
    is_complete = (
        end == len(content)
        and bool(last)
        and last[-1].key is not None
        and read_control_type(last[-1].key) is ControlType.SNAPSHOT_FOOTER
    )
    if not is_complete:
        raise CorruptBatch(f"{path} is incomplete: it does not end with a footer.")


def read_snapshot_head(path: Path) -> list[Record]:
    """Returns the records of the first batch: the header, and the voters if it has them."""
    with path.open("rb") as file:
        head = file.read(HEADER_BYTES)
        size_bytes = read_header(head).size_bytes if len(head) == HEADER_BYTES else 0
        content = head + file.read(max(size_bytes - HEADER_BYTES, 0))
    for position, _ in checked_batches(path, content):
        return read_records(content, position)
    return []


def checked_batches(path: str | Path, content: bytes) -> Iterator[tuple[int, BatchHeader]]:
    """Yields the batches in `content`, which was read from `path`, after checking their CRC.

    Nodes act on every metadata record, so a corrupt batch must not be used. Raises CorruptBatch,
    which names the file.
    """
    try:
        for position, header in iterate_batches(content):
            if not crc_is_valid(content, position, header):
                raise CorruptBatch(
                    f"the CRC of the batch at offset {header.base_offset} does not match."
                )
            yield position, header
    except CorruptBatch as corruption:
        raise CorruptBatch(
            f"{path} is corrupt: {corruption.message} Restore the file from a copy."
        ) from None


class SnapshotDownload:
    """A leader's snapshot that is fetched into a `.part` file; it exists only after `finish`."""

    __slots__ = ("_file", "position", "snapshot")

    def __init__(self, folder: str, snapshot: SnapshotId) -> None:
        self.snapshot = snapshot
        self.position = 0
        self._file = _PartFile(Path(folder, snapshot.file_name))

    def append(self, chunk: bytes | memoryview) -> None:
        self._file.write(chunk)
        self.position += len(chunk)

    def finish(self) -> None:
        """Checks the file, syncs it and renames it; may run in any thread.

        Raises CorruptBatch if it is not a complete snapshot.
        """
        for _ in read_snapshot(self._file.flush()):
            pass
        self._file.finish()

    def abandon(self) -> None:
        self._file.abandon()


class _PartFile:
    """A file that has a `.part` name while it is written."""

    __slots__ = ("_file", "_part", "_path")

    def __init__(self, path: Path) -> None:
        self._path = path
        self._part = path.with_name(path.name + ".part")
        self._file = self._part.open("wb")

    @property
    def is_closed(self) -> bool:
        return self._file.closed

    def write(self, content: bytes | bytearray | memoryview) -> None:
        self._file.write(content)

    def flush(self) -> Path:
        """Makes what was written readable. Returns the path of the `.part` file."""
        self._file.flush()
        return self._part

    def finish(self) -> None:
        """Syncs the file and gives it its name."""
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        self._part.chmod(0o400)
        self._part.rename(self._path)
        sync_path(str(self._path.parent))

    def abandon(self) -> None:
        self._file.close()
        self._part.unlink(missing_ok=True)


def expired_snapshots(
    sizes: Mapping[SnapshotId, int],
    ages_ms: Mapping[SnapshotId, int],
    log_bytes: int,
    retention_bytes: int,
    retention_ms: int,
) -> list[SnapshotId]:
    """Returns the oldest snapshots beyond a retention limit, never the newest one.

    A negative retention sets no limit.
    """
    total_bytes = log_bytes + sum(sizes.values())
    expired = []
    for snapshot in sorted(sizes)[:-1]:
        exceeds_size = 0 <= retention_bytes < total_bytes
        exceeds_age = 0 <= retention_ms < ages_ms[snapshot]
        if not exceeds_size and not exceeds_age:
            break
        total_bytes -= sizes[snapshot]
        expired.append(snapshot)
    return expired


_SNAPSHOT_AT_START = SnapshotId(0, 0)


def format_metadata(
    directory: str, bootstrap_frames: Sequence[bytes], voters: VoterSet | None, now_ms: int
) -> None:
    """Prepares a formatted log directory for the metadata log.

    A node formatted with the voters of a new quorum gets a snapshot at offset 0, which names them.
    """
    bootstrap = SnapshotWriter(
        directory,
        _SNAPSHOT_AT_START,
        None,
        last_timestamp_ms=0,
        now_ms=now_ms,
        file_name=BOOTSTRAP_FILE,
    )
    bootstrap.append(bootstrap_frames)
    bootstrap.finish()
    Path(directory, BOOTSTRAP_FILE).chmod(0o644)
    if voters is None:
        return
    folder = Path(directory, FOLDER)
    folder.mkdir(exist_ok=True)
    write_partition_metadata(str(folder), METADATA_TOPIC_ID)
    SnapshotWriter(
        str(folder),
        _SNAPSHOT_AT_START,
        voters,
        last_timestamp_ms=now_ms,
        now_ms=now_ms,
    ).finish()


def read_bootstrap(directory: str) -> list[bytes]:
    """Returns the encoded records that a new cluster begins with; none if there is no file."""
    path = Path(directory, BOOTSTRAP_FILE)
    if not path.exists():
        return []
    return [
        record.value
        for records in read_snapshot(path)
        for record in records
        if record.key is None and record.value is not None
    ]
