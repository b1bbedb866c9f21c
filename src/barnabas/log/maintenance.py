"""What a log consists of, and what keeps it in shape: rolling, flushing, cutting, closing."""

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar
from zlib import crc32

from barnabas.log import retention
from barnabas.log.config import LogConfig
from barnabas.log.directory import partition_metadata
from barnabas.log.errors import LogDirFailure, TornWrite
from barnabas.log.flush import Flush
from barnabas.log.producers import replay, snapshots
from barnabas.log.recovery import Loaded
from barnabas.log.segments.log_files import INDEX, TIME_INDEX, TRANSACTION_INDEX, take_inventory
from barnabas.log.segments.log_segments import Segments
from barnabas.log.segments.segment import Segment
from barnabas.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from barnabas.log.directory.log_directory import LogDirectory

_NOTHING_UNFLUSHED = -1

_L = TypeVar("_L", bound="KeptLog")
_P = ParamSpec("_P")
_R = TypeVar("_R")


def on_disk(
    method: Callable[Concatenate[_L, _P], _R],
) -> Callable[Concatenate[_L, _P], _R]:
    """A disk that refuses is a failure of the log's directory."""

    @wraps(method)
    def guarded(self: _L, /, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        try:
            return method(self, *args, **kwargs)
        except OSError as error:
            raise self._failure(error) from error

    return guarded


class KeptLog:
    """The state of one partition's log, and all that is done to it but appending and reading.

    Offsets below `recovery_point` are on disk for certain; the rest is checked again after an
    unclean stop.
    """

    __slots__ = (
        "_cuts",
        "_is_new",
        "_segments",
        "_snapshot_offset",
        "_unflushed_since_ms",
        "_unsynced",
        "config",
        "directory",
        "end_offset",
        "epochs",
        "name",
        "partition",
        "path",
        "producers",
        "recovery_point",
        "start_offset",
        "topic",
        "topic_id",
    )

    def __init__(
        self, directory: "LogDirectory", topic: str, partition: int, topic_id: bytes, loaded: Loaded
    ) -> None:
        opening = loaded.opening
        self.directory = directory
        self.topic = topic
        self.partition = partition
        self.topic_id = topic_id
        self.config = opening.config
        self.name = opening.name
        self.path = opening.folder
        self.start_offset = loaded.start_offset
        self.end_offset = loaded.end_offset
        self.recovery_point = loaded.recovery_point
        self.epochs = loaded.epochs
        self.producers = loaded.producers
        self._segments = Segments(opening.folder, opening.files, loaded.segments)
        self._snapshot_offset = loaded.snapshot_offset
        self._cuts = 0  # how often the log was truncated
        self._is_new = loaded.is_new  # its folder itself may not be on disk yet
        self._unflushed_since_ms = _NOTHING_UNFLUSHED
        self._unsynced: set[str] | None = None  # files and folders a flush must not forget

    def __repr__(self) -> str:
        return f"<Log {self.path} [{self.start_offset}, {self.end_offset})>"

    @property
    def size_bytes(self) -> int:
        return self._segments.size_bytes

    @property
    def first_segment_offset(self) -> int:
        return self._segments.base_offset

    # Rolling

    @on_disk
    def roll(self) -> None:
        """Begins a new segment, unless the active one has nothing in it."""
        if self._segments.active.size_bytes:
            self._roll(self.end_offset)

    def _roll(self, base_offset: int) -> Segment:
        active = self._segments.active
        if active.size_bytes:
            active.seal()
            active.next_offset = base_offset
            self._take_snapshot(base_offset)
            for suffix in (INDEX, TIME_INDEX, TRANSACTION_INDEX):
                self._sync_later(active.path(suffix))
        elif active.base_offset == base_offset:
            return active
        else:
            self._doom(self._segments.drop([active]))
        self._sync_later(self.path)
        return self._segments.begin(base_offset, self.config)

    def _take_snapshot(self, offset: int) -> None:
        """Writes the producers' state down as it is at `offset`, if that is news."""
        if offset > self._snapshot_offset:
            self._sync_later(snapshots.write(self.path, offset, self.producers))
            self._snapshot_offset = offset

    # Shortening, at either end

    @on_disk
    def advance_start(self, offset: int) -> None:
        """Records below `offset` are deleted; their files go with `delete_old_segments`."""
        if offset > self.end_offset:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"{self.name}: cannot begin at offset {offset}, it ends at {self.end_offset}.",
            )
        if offset > self.start_offset:
            self.start_offset = offset
            self.epochs.truncate_start(offset)

    @on_disk
    def delete_old_segments(self, now_ms: int, high_watermark: int) -> int:
        """Drops the segments that retention no longer wants; how many went."""
        unwanted = retention.deletable(
            self._segments.ordered,
            self.config,
            now_ms=now_ms,
            start_offset=self.start_offset,
            high_watermark=high_watermark,
        )
        if not unwanted:
            return 0
        if len(unwanted) == len(self._segments):
            self._roll(self.end_offset)
        self._doom(self._segments.drop(unwanted))
        self.advance_start(self._segments.base_offset)
        return len(unwanted)

    @on_disk
    def truncate_to(self, offset: int) -> None:
        """Drops every batch that reaches `offset`."""
        if offset >= self.end_offset:
            # A leader that was replaced before it wrote anything has left its epoch behind.
            self.epochs.truncate_end(self.end_offset)
            return
        if offset < self._segments.base_offset:
            self.truncate_fully_and_start_at(offset)
            return
        offset = self._segments.boundary(offset)
        self._lower_recovery_point(offset)
        is_taken_back = replay.take_back(self.producers, self._segments.ordered, offset)
        self._doom(self._segments.truncate(offset))
        self.end_offset = offset
        self.start_offset = min(self.start_offset, offset)
        self.epochs.truncate_end(offset)
        if not is_taken_back or offset <= self._snapshot_offset:
            self._reload_producers()

    @on_disk
    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Drops everything; the next record has `offset`."""
        self._lower_recovery_point(min(offset, self.start_offset))
        self._doom(self._segments.drop(self._segments.ordered))
        self._segments.begin(offset, self.config)
        self._sync_later(self.path)
        self.start_offset = self.end_offset = offset
        self.epochs.clear()
        self._reload_producers()

    def _lower_recovery_point(self, offset: int) -> None:
        """Before the log is cut: the checkpoint must not claim what will not be there."""
        self._cuts += 1
        if offset < self.recovery_point:
            self.recovery_point = offset
            self.directory.checkpoint()

    def _reload_producers(self) -> None:
        segments = self._segments.ordered
        found = take_inventory(self.path).snapshots
        self.producers, self._snapshot_offset = replay.load_producers(
            self.name, self.path, segments, found, self.end_offset
        )
        kept = [self._snapshot_offset, *(segment.base_offset for segment in segments)]
        snapshots.remove_stray(self.path, found, kept)

    # Flushing and closing

    def flush_due(self, now_ms: int) -> bool:
        """Whether a segment was rolled, or the settings ask for it by number or by time."""
        if self.recovery_point >= self.end_offset:
            return False
        config = self.config
        return (
            self.recovery_point < self._segments.active.base_offset
            or self.end_offset - self.recovery_point >= config.flush_messages
            or 0 <= self._unflushed_since_ms <= now_ms - config.flush_ms
        )

    @on_disk
    def begin_flush(self) -> Flush:
        """What to sync, in any thread; `finish_flush` then moves the recovery point."""
        _, number = self._segments.holding(self.recovery_point)
        unflushed = self._segments.from_number(number)
        logs = tuple(segment.file() for segment in unflushed if segment.is_on_disk)
        epochs: tuple[str, ...] = ()
        if self.epochs.unsynced:
            self.epochs.save()
            self.epochs.unsynced = False
            epochs = (self.epochs.path,)
        # Forgotten from here on, where nothing can fail any more.
        beside = (*(self._unsynced or ()), *epochs)
        self._unsynced = None
        self._unflushed_since_ms = _NOTHING_UNFLUSHED
        if self._is_new:
            self._is_new = False
            beside += (f"{self.path}/{partition_metadata.FILE_NAME}", self.path)
            beside += (self.directory.path,)
        return Flush(self.directory.path, self.end_offset, self._cuts, logs, beside)

    def finish_flush(self, flush: Flush) -> None:
        """The flush is on disk. One that was overtaken by a truncation promises nothing."""
        if flush.cuts == self._cuts and flush.upto > self.recovery_point:
            self.recovery_point = flush.upto

    def take_back(self, flush: Flush) -> None:
        """The flush could not open its files: the next one has all of it to do."""
        for path in flush.beside:
            self._sync_later(path)
        self._unflushed_since_ms = 0  # overdue

    def flush(self) -> None:
        """Begins, syncs and finishes a flush, here and now."""
        flush = self.begin_flush()
        try:
            flush.sync()
        except LogDirFailure as failure:
            self.directory.failed = failure
            raise
        self.finish_flush(flush)

    def close(self) -> None:
        """Leaves the folder so that opening it again needs no scan."""
        self.seal()
        if self.recovery_point < self.end_offset:
            self.flush()
        self.abandon()

    @on_disk
    def seal(self) -> None:
        """Writes what opening the log again asks for; a flush is still due."""
        self._segments.active.seal()
        self._take_snapshot(self.end_offset)
        self.epochs.save()

    def abandon(self) -> None:
        """Lets go of the files as they are."""
        self._segments.close()

    def _sync_later(self, path: str) -> None:
        """The next flush includes a file that is new, or a folder with a new name in it."""
        if self._unsynced is None:
            self._unsynced = set()
        self._unsynced.add(path)

    def _doom(self, paths: list[str]) -> None:
        self.directory.doom(paths, self.config.delete_delay_ms)

    def _failure(self, error: OSError) -> LogDirFailure:
        """The disk refused. The log is as it was, unless even that could not be had."""
        if isinstance(error, LogDirFailure):
            return error
        failure = LogDirFailure(self.directory.path, error)
        if isinstance(error, TornWrite):
            self.directory.failed = failure
        return failure


_MAX_RELATIVE_OFFSET = 0x7FFFFFFF


def must_roll(
    active: Segment,
    config: LogConfig,
    name: str,
    size_bytes: int,
    last_offset: int,
    max_timestamp: int,
    now_ms: int,
) -> bool:
    """Whether bytes up to `last_offset` must not go into the active segment any more."""
    if active.size_bytes > config.segment_bytes - size_bytes:
        return True
    if last_offset - active.base_offset > _MAX_RELATIVE_OFFSET:
        return True
    if active.is_full(config.segment_index_bytes):
        return True
    if not active.size_bytes:
        return False
    roll_ms = config.segment_ms
    if config.segment_jitter_ms:
        roll_ms -= _jitter_ms(active, config, name)
    return active.age_ms(max_timestamp, now_ms) > roll_ms


def _jitter_ms(active: Segment, config: LogConfig, name: str) -> int:
    """How much earlier this segment is rolled, so that not all partitions roll at once."""
    span_ms = min(config.segment_jitter_ms, config.segment_ms)
    return crc32(f"{name}:{active.base_offset}".encode()) % span_ms
