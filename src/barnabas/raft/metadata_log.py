"""`__cluster_metadata-0` on disk: the log, and the snapshots that replace its beginning.

It is the `LogView` of the consensus. `VoterHistory` follows its control records and knows the
voters at every offset.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from barnabas.log import EpochEndOffset, Log, LogConfig, LogDirectory
from barnabas.log.flush import Flush
from barnabas.log.segments.log_slice import LogSlice
from barnabas.raft.quorum_config import QuorumConfig
from barnabas.raft.snapshots import (
    FOLDER,
    METADATA_TOPIC,
    SnapshotDownload,
    SnapshotId,
    SnapshotWriter,
    checked_batches,
    expired_snapshots,
    list_snapshots,
    read_snapshot,
    read_snapshot_head,
)
from barnabas.raft.voters import OFFSET_BEFORE_LOG, QuorumError, VoterHistory, VoterSet
from barnabas.wire.records.batch import CorruptBatch, iterate_batches, read_header
from barnabas.wire.records.read import read_records
from barnabas.wire.records.record import Record
from barnabas.wire.records.validate import ValidBatch
from barnabas.wire.uuid import METADATA_TOPIC_ID

_READ_BYTES = 1024 * 1024
_NO_EPOCH = -1


@dataclass(slots=True, frozen=True)
class CommittedBatch:
    """Encoded metadata records that were appended together, and the offset of the last one."""

    last_offset: int
    epoch: int
    timestamp_ms: int
    frames: list[bytes]
    is_snapshot: bool = False


class MetadataLog:
    """This node's replica of the metadata log."""

    def __init__(self, log: Log, config: QuorumConfig, static_voters: VoterSet | None) -> None:
        self._log = log
        self._config = config
        self.folder = log.path
        self.snapshots = list_snapshots(log.path)
        self.history = VoterHistory(static_voters)
        self.last_timestamp_ms = 0
        # The committed bytes that were read since the newest snapshot.
        self.bytes_since_snapshot = 0

    @classmethod
    def open(
        cls, directory: LogDirectory, config: QuorumConfig, static_voters: VoterSet | None
    ) -> "MetadataLog":
        """Opens or creates the metadata log in a formatted directory, and reads its voters."""
        log_config = LogConfig(
            segment_bytes=config.segment_bytes,
            segment_ms=config.segment_ms,
            retention_ms=-1,
            retention_bytes=-1,
        )
        open_or_create = (
            directory.open_log if Path(directory.path, FOLDER).is_dir() else directory.create_log
        )
        log = open_or_create(METADATA_TOPIC, 0, METADATA_TOPIC_ID, log_config)
        metadata_log = cls(log, config, static_voters)
        metadata_log._check_gapless()
        metadata_log._read_history()
        return metadata_log

    def _check_gapless(self) -> None:
        newest = self.newest_snapshot or SnapshotId(0, 0)
        snapshot_end = newest.end_offset
        if (newest.epoch, snapshot_end) > (self.last_epoch, self._log.log_end_offset):
            # The snapshot was fetched from a leader, and this node stopped before it cut its log.
            self._log.truncate_fully_and_start_at(snapshot_end)
        if self._log.log_start_offset > snapshot_end:
            raise QuorumError(
                f"{self.folder}: the log start offset is {self._log.log_start_offset}, but the "
                f"newest snapshot ends at {snapshot_end}; restore the missing files from a copy."
            )

    def _read_history(self) -> None:
        self.history.clear()
        offset = 0
        newest = self.newest_snapshot
        if newest is not None:
            offset = newest.end_offset
            # The voters of formatting are in no log yet; see `OFFSET_BEFORE_LOG`.
            at = offset - 1 if offset > 0 else OFFSET_BEFORE_LOG
            self.history.update(read_snapshot_head(self.path_of(newest)), at)
        while (content_slice := self.read(offset, _READ_BYTES)) is not None:
            content = content_slice.read()
            for position, header in iterate_batches(content):
                self.last_timestamp_ms = max(self.last_timestamp_ms, header.max_timestamp)
                if header.is_control and header.base_offset >= offset:
                    self.history.update(read_records(content, position))
            offset = content_slice.next_offset

    # What the consensus reads

    @property
    def start_offset(self) -> int:
        return self._log.log_start_offset

    @property
    def end_offset(self) -> int:
        return self._log.log_end_offset

    @property
    def durable_end_offset(self) -> int:
        """The offset up to which the log is durable."""
        return self._log.recovery_point

    @property
    def last_epoch(self) -> int:
        """The epoch of the last record, in the log or else in the newest snapshot."""
        if self._log.latest_epoch != _NO_EPOCH:
            return self._log.latest_epoch
        newest = self.newest_snapshot
        return newest.epoch if newest else 0

    def epoch_end(self, epoch: int) -> EpochEndOffset:
        """Returns the largest epoch up to `epoch` that has records, and its end offset."""
        end = self._log.epoch_end_offset(epoch)
        if end.epoch == _NO_EPOCH:
            return EpochEndOffset(self.last_epoch, self.end_offset)
        oldest = self.oldest_snapshot
        if oldest and end == (epoch, oldest.end_offset):
            # The epoch is older than the log, which begins after the snapshot.
            return EpochEndOffset(oldest.epoch, oldest.end_offset)
        return end

    @property
    def oldest_snapshot(self) -> SnapshotId | None:
        return self.snapshots[0] if self.snapshots else None

    @property
    def newest_snapshot(self) -> SnapshotId | None:
        return self.snapshots[-1] if self.snapshots else None

    # Writing

    def append_as_leader(self, batch: bytearray, epoch: int, now_ms: int) -> int:
        """Appends a batch at the next offsets. Returns the last of them."""
        valid = ValidBatch(read_header(batch), batch, now_ms)
        appended = self._log.append_as_leader(valid, epoch, now_ms, from_client=False)
        self.last_timestamp_ms = now_ms
        if valid.header.is_control:
            self.history.update(read_records(batch))
        return appended.last_offset

    def append_as_follower(self, batches: memoryview, epoch: int, now_ms: int) -> bool:
        """Appends batches that the leader of `epoch` sent. Returns whether voters changed.

        Raises CorruptBatch unless they continue this log exactly. Batches of a later epoch are
        left out: the leader of `epoch` cannot have written them.
        """
        size_bytes = 0
        next_offset = self.end_offset
        control: list[Record] = []
        for position, header in iterate_batches(batches):
            if header.base_offset != next_offset or header.last_offset_delta < 0:
                raise CorruptBatch(
                    f"{FOLDER}: a batch at offset {header.base_offset} cannot follow "
                    f"{next_offset - 1}."
                )
            if header.leader_epoch > epoch:
                break
            next_offset = header.next_offset
            size_bytes = position + header.size_bytes
            self.last_timestamp_ms = max(self.last_timestamp_ms, header.max_timestamp)
            if header.is_control:
                control += read_records(batches, position)
        self._log.append_as_follower(batches[:size_bytes], now_ms)
        return self.history.update(control)

    def find_divergence(self, leader_end: EpochEndOffset) -> int:
        """Returns the offset to truncate to, given an epoch of the leader's log and its end."""
        if leader_end.epoch == 0:
            return min(leader_end.end_offset, self.end_offset)
        own_end = self.epoch_end(leader_end.epoch)
        return (
            min(own_end, leader_end).end_offset
            if own_end.epoch == leader_end.epoch
            else own_end.end_offset
        )

    def truncate_to(self, offset: int) -> bool:
        """Removes every batch that reaches `offset`. Returns whether voters changed."""
        self._log.truncate_to(offset)
        return self.history.truncate(self.end_offset)

    def begin_flush(self) -> Flush:
        """Returns what to sync in a thread; `finish_flush` then advances `durable_end_offset`."""
        return self._log.flusher.begin()

    def finish_flush(self, flush: Flush) -> None:
        self._log.flusher.finish(flush)

    def flush(self) -> None:
        """Blocks until the whole log is on disk."""
        if self.durable_end_offset < self.end_offset:
            self._log.flusher.flush()

    # Reading

    def read(self, offset: int, max_bytes: int, upto: int | None = None) -> LogSlice | None:
        """Returns whole batches from `offset` on; None if there are none."""
        return self._log.read(offset, max_bytes, upto=self.end_offset if upto is None else upto)

    def read_committed(self, offset: int, upto: int) -> tuple[list[CommittedBatch], int]:
        """Returns batches from `offset` to `upto`, of bounded size, and the offset after them."""
        content_slice = self.read(offset, _READ_BYTES, upto)
        if content_slice is None:
            return [], offset
        content = content_slice.read()
        self.bytes_since_snapshot += len(content)
        batches = []
        for position, header in checked_batches(self.folder, content):
            offset = header.next_offset
            frames: list[bytes] = []
            if not header.is_control:
                records = read_records(content, position)
                frames = [record.value for record in records if record.value is not None]
            batches.append(
                CommittedBatch(
                    header.last_offset, header.leader_epoch, header.max_timestamp, frames
                )
            )
        return batches, offset

    # Snapshots

    def path_of(self, snapshot: SnapshotId) -> Path:
        return Path(self.folder, snapshot.file_name)

    def read_snapshot(self, snapshot: SnapshotId) -> Iterator[CommittedBatch]:
        last_offset = snapshot.end_offset - 1
        for records in read_snapshot(self.path_of(snapshot)):
            frames = [r.value for r in records if r.key is None and r.value is not None]
            timestamp_ms = records[0].timestamp
            yield CommittedBatch(last_offset, snapshot.epoch, timestamp_ms, frames, True)

    def begin_snapshot(self, end_offset: int, epoch: int, now_ms: int) -> SnapshotWriter:
        """Returns a writer for the snapshot below `end_offset`; see `finish_snapshot`."""
        return SnapshotWriter(
            self.folder,
            SnapshotId(end_offset, epoch),
            self.history.voters_below(end_offset),
            last_timestamp_ms=self.last_timestamp_ms,
            now_ms=now_ms,
        )

    def finish_snapshot(self, writer: SnapshotWriter) -> None:
        writer.finish()
        snapshot = writer.snapshot_id
        if snapshot.end_offset < self.start_offset:
            # While it was written, a newer snapshot of the leader replaced the log.
            self.path_of(snapshot).unlink(missing_ok=True)
        elif snapshot not in self.snapshots:
            self.snapshots = sorted([*self.snapshots, snapshot])
            self.bytes_since_snapshot = 0

    def begin_download(self, snapshot: SnapshotId) -> SnapshotDownload:
        """Returns the download of a leader's snapshot; see `install_snapshot`."""
        return SnapshotDownload(self.folder, snapshot)

    def install_snapshot(self, snapshot: SnapshotId) -> None:
        """Replaces the whole log by a downloaded snapshot."""
        self._log.truncate_fully_and_start_at(snapshot.end_offset)
        for old in self.snapshots:
            self.path_of(old).unlink(missing_ok=True)
        self.snapshots = [snapshot]
        self.bytes_since_snapshot = 0
        self._read_history()

    def clean(self, now_ms: int, high_watermark: int) -> None:
        """Deletes old snapshots, and the part of the log that newer ones replace."""
        paths = {snapshot: self.path_of(snapshot) for snapshot in self.snapshots}
        sizes = {snapshot: path.stat().st_size for snapshot, path in paths.items()}
        ages_ms = {
            snapshot: now_ms - int(path.stat().st_mtime * 1000) for snapshot, path in paths.items()
        }
        for snapshot in expired_snapshots(
            sizes,
            ages_ms,
            self._log.size_bytes,
            self._config.retention_bytes,
            self._config.retention_ms,
        ):
            paths[snapshot].unlink()
            self.snapshots.remove(snapshot)
        oldest = self.snapshots[0].end_offset if self.snapshots else 0
        if oldest > self._log.log_start_offset:
            self._log.advance_log_start_offset(oldest)
            self._log.maintenance.delete_old_segments(now_ms, high_watermark)
            self.history.remove_below(oldest)
