"""The metadata log on disk, and the quorum that decides what of it is committed.

The order of life: `open`, `load` to its end, `lead`, then `append` and flushes. Everything runs
on the thread that owns it, except `Flush.sync`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from barnabas.log import Log, LogConfig, LogDirectory
from barnabas.log.flush import Flush
from barnabas.raft import quorum_state
from barnabas.raft.control import ControlRecord, control_batch, leader_change, voter_records
from barnabas.raft.core_old import Effects, Raft
from barnabas.raft.effects import QuorumState
from barnabas.raft.retention import expendable
from barnabas.raft.snapshots import (
    SnapshotId,
    SnapshotWriter,
    checked_batches,
    list_snapshots,
    read_snapshot,
)
from barnabas.raft.voters import QuorumError, Voter, Voters
from barnabas.wire.messages.raft_records import VotersRecord
from barnabas.wire.records.batch import BatchHeader, read_header
from barnabas.wire.records.build import Record, build_batch
from barnabas.wire.records.control import ControlType, read_control_type
from barnabas.wire.records.read import read_records
from barnabas.wire.records.validate import ValidBatch
from barnabas.wire.uuid import METADATA_TOPIC_ID

METADATA_TOPIC = "__cluster_metadata"
FOLDER = f"{METADATA_TOPIC}-0"

_READ_BYTES = 1024 * 1024


@dataclass(slots=True, frozen=True)
class QuorumConfig:
    """The `metadata.*` settings, with Kafka's defaults."""

    segment_bytes: int = 1 << 30
    segment_ms: int = 7 * 24 * 3600 * 1000
    retention_bytes: int = 100 * 1024 * 1024
    retention_ms: int = 7 * 24 * 3600 * 1000


@dataclass(slots=True, frozen=True)
class CommittedBatch:
    """Encoded metadata records that count together, and the offset of the last of them."""

    last_offset: int
    epoch: int
    timestamp_ms: int
    frames: list[bytes]
    is_snapshot: bool = False


@dataclass(slots=True, frozen=True)
class QuorumDescription:
    """What DescribeQuorum tells."""

    leader_id: int
    epoch: int
    high_watermark: int
    end_offset: int
    voters: Voters


class Quorum:
    """This node's copy of the metadata log."""

    def __init__(
        self,
        log: Log,
        node: Voter,
        cluster_id: str,
        static_voters: Voters | None,
        config: QuorumConfig,
    ) -> None:
        self._log = log
        self._folder = log.path
        self._cluster_id = cluster_id
        self._static_voters = static_voters
        self._config = config
        self._snapshots = list_snapshots(self._folder)
        # Voters as the newest control record has them; None while none was seen.
        self._logged_voters: Voters | None = None
        self._voters_are_in_log = False
        self._node = node
        self._raft: Raft | None = None
        self.bytes_since_snapshot = 0
        self.last_timestamp_ms = 0

    @classmethod
    def open(
        cls,
        directory: LogDirectory,
        node: Voter,
        *,
        static_voters: Voters | None = None,
        config: QuorumConfig | None = None,
    ) -> "Quorum":
        """Open, or begin, the metadata log in a formatted directory."""
        config = config or QuorumConfig()
        log_config = LogConfig(
            segment_bytes=config.segment_bytes,
            segment_ms=config.segment_ms,
            retention_ms=-1,
            retention_bytes=-1,
        )
        folder = Path(directory.path, FOLDER)
        find = directory.open_log if folder.is_dir() else directory.create_log
        log = find(METADATA_TOPIC, 0, METADATA_TOPIC_ID, log_config)
        return cls(log, node, directory.meta.cluster_id, static_voters, config)

    # Loading

    def load(self) -> Iterator[CommittedBatch]:
        """The newest snapshot and everything after it, in order; to be read to its end."""
        if self._snapshots:
            yield from self._load_snapshot(self._snapshots[-1])
        yield from self._load_log()

    def _load_snapshot(self, newest: SnapshotId) -> Iterator[CommittedBatch]:
        # The snapshot that formatting wrote is the only one whose voters the log never had.
        in_log = newest.end_offset > 0
        for records in read_snapshot(Path(self._folder, newest.file_name)):
            frames = self._take_in(records, in_log=in_log)
            timestamp_ms = records[0].timestamp
            yield CommittedBatch(newest.end_offset - 1, newest.epoch, timestamp_ms, frames, True)
        if self._log.end_offset < newest.end_offset:
            self._log.truncate_fully_and_start_at(newest.end_offset)

    def _load_log(self) -> Iterator[CommittedBatch]:
        log = self._log
        offset = self._snapshots[-1].end_offset if self._snapshots else 0
        if log.start_offset > offset:
            raise QuorumError(
                f"{self._folder}: the log begins at offset {log.start_offset}, but the newest "
                f"snapshot ends at {offset}; restore the missing files from a copy."
            )
        while offset < log.end_offset:
            piece = log.read(offset, _READ_BYTES, upto=log.end_offset)
            if piece is None:
                break
            content = piece.read()
            for position, header in checked_batches(self._folder, content):
                if header.base_offset >= offset:
                    records = read_records(content, position)
                    yield self._batch(header, self._take_in(records, in_log=True))
                offset = header.next_offset

    def _batch(self, header: BatchHeader, frames: list[bytes]) -> CommittedBatch:
        self.bytes_since_snapshot += header.size_bytes
        self.last_timestamp_ms = header.max_timestamp
        return CommittedBatch(header.last_offset, header.leader_epoch, header.max_timestamp, frames)

    def _take_in(self, records: list[Record], *, in_log: bool) -> list[bytes]:
        """Notes voters in control records; returns what is for the image."""
        frames = []
        for record in records:
            if record.value is None:
                continue
            if record.key is None:
                frames.append(record.value)
            elif read_control_type(record.key) is ControlType.KRAFT_VOTERS:
                self._logged_voters = Voters.from_record(VotersRecord.read(record.value, 0)[0])
                self._voters_are_in_log |= in_log
        return frames

    # Leading

    @property
    def is_leader(self) -> bool:
        return self._raft is not None and self._raft.leader_id == self._node.node_id

    @property
    def epoch(self) -> int:
        return self._raft.epoch if self._raft else 0

    @property
    def high_watermark(self) -> int:
        return self._raft.high_watermark if self._raft else 0

    @property
    def end_offset(self) -> int:
        return self._log.end_offset

    @property
    def kraft_version(self) -> int:
        """1 where voters are kept in the log, 0 where they are a setting."""
        return 0 if self._logged_voters is None else 1

    @property
    def is_new(self) -> bool:
        """Whether no controller has written anything yet."""
        return self._log.end_offset == 0

    def lead(self, now_ms: int) -> None:
        """Win the election of a quorum of one, and make the new epoch durable."""
        voters = self._voters()
        state = quorum_state.read_state(self._folder)
        epoch = max(state.epoch, self._log.latest_epoch)
        raft = Raft(self._node, voters, QuorumState(epoch), self._log.end_offset)
        self._raft = raft
        for effects in raft.campaign():
            self._perform(effects, now_ms)
        if not self.is_leader:
            raise QuorumError(
                f"The quorum has voters {raft.voters.ids()}; node {self._node.node_id} alone is "
                "no majority of them."
            )
        self.flush()

    def _voters(self) -> Voters:
        voters = self._logged_voters or self._static_voters
        if voters is None:
            raise QuorumError(
                "No voters are known: format the directory with --standalone, or set "
                "controller.quorum.voters."
            )
        known = voters.get(self._node.node_id)
        if known is None:
            raise QuorumError(
                f"Node {self._node.node_id} is not a voter; the voters are {voters.ids()}."
            )
        if self._logged_voters is not None and known.directory_id != self._node.directory_id:
            raise QuorumError(
                f"Node {self._node.node_id} votes with another directory than this one: "
                "was its metadata directory replaced?"
            )
        return voters

    def _perform(self, effects: Effects, now_ms: int) -> None:
        if effects.persist is not None:
            static: list[int] = []
            if self._logged_voters is None and self._static_voters is not None:
                static = self._static_voters.ids()
            quorum_state.write_state(self._folder, effects.persist, self._cluster_id, static)
        if effects.append is not None:
            self._append_control([leader_change(effects.append), *self._voter_update()], now_ms)

    def _voter_update(self) -> list[ControlRecord]:
        """The voters, if the log does not have them yet or has another address of this node."""
        logged = self._logged_voters
        if logged is None or self._raft is None:
            return []
        if self._voters_are_in_log and logged.get(self._node.node_id) == self._node:
            return []
        self._logged_voters = self._raft.voters = logged.with_voter(self._node)
        self._voters_are_in_log = True
        return voter_records(self._logged_voters)

    # Appending

    def append(self, frames: Sequence[bytes], now_ms: int) -> int:
        """Write encoded records as one batch; returns the offset of the last."""
        batch = build_batch([Record(0, now_ms, None, frame, []) for frame in frames])
        return self._append(batch, now_ms)

    def _append_control(self, records: Sequence[ControlRecord], now_ms: int) -> None:
        self._append(control_batch(records, now_ms), now_ms)

    def _append(self, batch: bytearray, now_ms: int) -> int:
        assert self._raft is not None, "a node appends only after it leads"
        valid = ValidBatch(read_header(batch), batch, now_ms)
        appended = self._log.append_as_leader(valid, self._raft.epoch, now_ms, from_client=False)
        self._raft.appended(appended.last_offset + 1)
        self.bytes_since_snapshot += len(batch)
        self.last_timestamp_ms = now_ms
        return appended.last_offset

    def begin_flush(self) -> Flush:
        """What to sync in a thread; `finish_flush` then moves the high watermark."""
        return self._log.begin_flush()

    def finish_flush(self, flush: Flush) -> None:
        assert self._raft is not None, "a node flushes only after it leads"
        self._log.finish_flush(flush)
        self._raft.durable(self._node.node_id, flush.upto)

    def flush(self) -> None:
        flush = self.begin_flush()
        flush.sync()
        self.finish_flush(flush)

    # Snapshots

    @property
    def newest_snapshot(self) -> SnapshotId | None:
        return self._snapshots[-1] if self._snapshots else None

    def begin_snapshot(self, end_offset: int, epoch: int, now_ms: int) -> SnapshotWriter:
        """A writer for a snapshot of everything below `end_offset`; see `finish_snapshot`."""
        return SnapshotWriter(
            self._folder,
            SnapshotId(end_offset, epoch),
            self._logged_voters,
            last_timestamp_ms=self.last_timestamp_ms,
            now_ms=now_ms,
        )

    def finish_snapshot(self, writer: SnapshotWriter) -> None:
        writer.finish()
        self._snapshots.append(writer.snapshot_id)
        self.bytes_since_snapshot = 0

    def clean(self, now_ms: int) -> None:
        """Remove old snapshots and the part of the log that newer ones stand for."""
        paths = {each: Path(self._folder, each.file_name) for each in self._snapshots}
        sizes = {each: path.stat().st_size for each, path in paths.items()}
        ages_ms = {each: now_ms - int(path.stat().st_mtime * 1000) for each, path in paths.items()}
        for snapshot in expendable(
            sizes,
            ages_ms,
            self._log.size_bytes,
            self._config.retention_bytes,
            self._config.retention_ms,
        ):
            paths[snapshot].unlink()
            self._snapshots.remove(snapshot)
        oldest = self._snapshots[0].end_offset if self._snapshots else 0
        if oldest > self._log.start_offset:
            self._log.advance_start(oldest)
            self._log.delete_old_segments(now_ms, self.high_watermark)

    def describe(self) -> QuorumDescription:
        assert self._raft is not None, "a quorum is described only after it is formed"
        return QuorumDescription(
            self._raft.leader_id,
            self._raft.epoch,
            self._raft.high_watermark,
            self._log.end_offset,
            self._raft.voters,
        )
