"""The commit log of one partition: a folder of segments, of which the last is written to.

Everything runs on the one thread that owns the log, except `Flush.sync`. Time is given by the
caller. Offsets below `recovery_point` are on disk for certain; the rest is checked again after
an unclean stop.
"""

from typing import TYPE_CHECKING, NamedTuple

from barnabas.log import following, replay, retention, snapshots, timestamps
from barnabas.log.failures import LogDirFailure, TornWrite
from barnabas.log.flush import Flush
from barnabas.log.folder import INDEX, TIME_INDEX, TRANSACTION_INDEX, take_inventory
from barnabas.log.producers import Producer, end_marker
from barnabas.log.recovery import Loaded
from barnabas.log.rolling import must_roll
from barnabas.log.segments import Segments
from barnabas.log.slices import Slice
from barnabas.log.timestamps import TimestampOffset
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.records.batch import (
    APPEND_TIME_BIT,
    CONTROL_BIT,
    NO_TIMESTAMP,
    BatchHeader,
    Readable,
    assign_offset,
)
from barnabas.wire.records.control import EndTransactionMarker
from barnabas.wire.records.validate import ValidBatch

if TYPE_CHECKING:
    from barnabas.log.directory import LogDirectory

_NOTHING_UNFLUSHED = -1


class Appended(NamedTuple):
    """Where a batch stands in the log; `append_time_ms` is -1 where the producer's time counts."""

    first_offset: int
    last_offset: int
    duplicate: bool
    append_time_ms: int


class Log:
    """One partition's records, from `start_offset` up to `end_offset`. `LogDirectory` opens it."""

    __slots__ = (
        "_cuts",
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

    # Appending

    def append_as_leader(
        self, batch: ValidBatch, leader_epoch: int, now_ms: int, *, from_client: bool = True
    ) -> Appended:
        """Gives the batch the next offsets and writes it; a producer's retry is not written."""
        header, buffer, max_timestamp = batch
        marker = None
        if header.producer_id >= 0:
            if header.attributes & CONTROL_BIT:
                marker = end_marker(buffer)
                if marker is not None:
                    self.producers.check_marker(header, marker)
            else:
                first = self.producers.check(header, from_client=from_client)
                if first is not None:
                    return Appended(first.first_offset, first.last_offset, True, first.timestamp)
        first_offset = self.end_offset
        last_offset = first_offset + header.last_offset_delta
        size_bytes = len(buffer)
        if size_bytes > self.config.segment_bytes:
            raise self._too_large(size_bytes)
        try:
            self._make_room(size_bytes, first_offset, last_offset, max_timestamp, now_ms)
            if leader_epoch != self.epochs.latest:
                self.epochs.assign(leader_epoch, first_offset)
            assign_offset(buffer, 0, first_offset, leader_epoch)
            self._segments.active.append(buffer, size_bytes)
        except OSError as error:
            raise self._failure(error) from error
        self._count(header, size_bytes, first_offset, last_offset, max_timestamp, marker)
        if self._unflushed_since_ms < 0:
            self._unflushed_since_ms = now_ms
        append_time_ms = max_timestamp if header.attributes & APPEND_TIME_BIT else NO_TIMESTAMP
        return Appended(first_offset, last_offset, False, append_time_ms)

    def append_as_follower(self, batches: Readable, now_ms: int) -> Appended:
        """Writes whole batches with the offsets and epochs the leader gave them."""
        first_offset = self.end_offset
        with memoryview(batches) as view:
            found = following.check(view, self.end_offset, self.name)
            groups = following.group(found, self.config.segment_bytes)
            for start, end, headers in groups:
                first, last = headers[0], headers[-1]
                try:
                    self._make_room(
                        end - start,
                        first.base_offset,
                        last.last_offset,
                        first.max_timestamp,
                        now_ms,
                    )
                    self._segments.active.append(view[start:end], end - start)
                except OSError as error:
                    raise self._failure(error) from error
                self._follow(view[start:end], headers)
            if found:
                first_offset = found[0][1].base_offset
        if found and self._unflushed_since_ms < 0:
            self._unflushed_since_ms = now_ms
        return Appended(first_offset, self.end_offset - 1, False, NO_TIMESTAMP)

    def _follow(self, view: memoryview, headers: list[BatchHeader]) -> None:
        """Counts batches that have been written as they came."""
        position = 0
        for header in headers:
            if header.leader_epoch > self.epochs.latest:
                self.start_epoch(header.leader_epoch, header.base_offset)
            size_bytes = header.size_bytes
            marker = None
            if header.producer_id >= 0 and header.attributes & CONTROL_BIT:
                marker = end_marker(view[position : position + size_bytes])
            first, last = header.base_offset, header.last_offset
            self._count(header, size_bytes, first, last, header.max_timestamp, marker)
            position += size_bytes

    def _count(
        self,
        header: BatchHeader,
        size_bytes: int,
        first_offset: int,
        last_offset: int,
        max_timestamp: int,
        marker: EndTransactionMarker | None,
    ) -> None:
        """The batch stands in the file: from here on it is part of the log."""
        active = self._segments.active
        active.note(size_bytes, last_offset, max_timestamp)
        self.end_offset = last_offset + 1
        if header.producer_id < 0:
            return
        if not header.attributes & CONTROL_BIT:
            self.producers.appended(header, first_offset, last_offset, max_timestamp)
        elif marker is not None:
            aborted = self.producers.ended(header, marker, last_offset)
            if aborted is not None:
                active.transactions.append(aborted)

    def _too_large(self, size_bytes: int) -> KafkaError:
        return KafkaError(
            ErrorCode.RECORD_LIST_TOO_LARGE,
            f"{self.name}: a batch of {size_bytes} bytes does not fit a segment of "
            f"{self.config.segment_bytes}; raise segment.bytes.",
        )

    # Rolling

    def roll(self, now_ms: int) -> None:
        """Begins a new segment, unless the active one has nothing in it."""
        if self._segments.active.size_bytes:
            self._roll(self.end_offset)

    def _make_room(
        self, size_bytes: int, first_offset: int, last_offset: int, max_timestamp: int, now_ms: int
    ) -> None:
        if must_roll(
            self._segments.active,
            self.config,
            self.name,
            size_bytes=size_bytes,
            last_offset=last_offset,
            max_timestamp=max_timestamp,
            now_ms=now_ms,
        ):
            self._roll(first_offset)

    def _roll(self, base_offset: int) -> None:
        active = self._segments.active
        if active.size_bytes:
            active.seal()
            active.next_offset = base_offset
            self._take_snapshot(base_offset)
            for suffix in (INDEX, TIME_INDEX, TRANSACTION_INDEX):
                self.sync_later(active.path(suffix))
        elif active.base_offset == base_offset:
            return
        else:
            self._doom(self._segments.drop([active]))
        self._segments.begin(base_offset, self.config)
        self.sync_later(self.path)

    def _take_snapshot(self, offset: int) -> None:
        """Writes the producers' state down as it is at `offset`, if that is news."""
        if offset > self._snapshot_offset:
            self.sync_later(snapshots.write(self.path, offset, self.producers))
            self._snapshot_offset = offset

    # Reading

    def read(
        self, offset: int, max_bytes: int, *, upto: int, at_least_one: bool = True
    ) -> Slice | None:
        """Whole batches from the one that has `offset`, none of which reaches `upto`.

        None if there are none, or if the first is larger than `max_bytes` and not wanted
        regardless (`at_least_one`).
        """
        if offset < self.start_offset or offset > upto:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"{self.name}: offset {offset} is not within {self.start_offset} to {upto}.",
            )
        try:
            return self._segments.read(offset, max_bytes, upto, at_least_one)
        except OSError as error:
            raise self._failure(error) from error

    def offset_for_timestamp(self, timestamp: int) -> TimestampOffset | None:
        """The first record that is at least as late as `timestamp`."""
        return timestamps.first_from(self._segments.ordered, timestamp, self.start_offset)

    def offset_of_max_timestamp(self) -> TimestampOffset | None:
        """The first record that has the largest timestamp of all."""
        return timestamps.latest(self._segments.ordered, self.start_offset)

    # Epochs, producers and transactions

    @property
    def latest_epoch(self) -> int:
        return self.epochs.latest

    def start_epoch(self, epoch: int, offset: int) -> None:
        """A leader of `epoch` writes from `offset` on."""
        try:
            self.epochs.assign(epoch, offset)
        except OSError as error:
            raise self._failure(error) from error

    def epoch_end_offset(self, epoch: int) -> tuple[int, int]:
        """The largest epoch up to `epoch` and where it ends; (-1, -1) if that is unknown."""
        return self.epochs.end_offset(epoch, self.end_offset)

    @property
    def first_unstable_offset(self) -> int | None:
        """Where the oldest open transaction begins."""
        return self.producers.first_undecided_offset

    def last_stable_offset(self, high_watermark: int) -> int:
        """Up to where a reader of committed records may go."""
        return self.producers.last_stable_offset(high_watermark)

    def aborted_transactions(self, start: int, end: int) -> list[tuple[int, int]]:
        """Producer id and first offset of each aborted transaction with records in [start, end)."""
        found: list[tuple[int, int]] = []
        _, number = self._segments.holding(start)
        for segment in self._segments.from_number(number):
            aborted, is_complete = segment.transactions.overlapping(start, end)
            found += [(entry.producer_id, entry.first_offset) for entry in aborted]
            if is_complete:
                break
        return found

    def active_producers(self) -> list[Producer]:
        """What DescribeProducers tells of each producer."""
        return list(self.producers.entries.values())

    def expire_producers(self, now_ms: int) -> int:
        """Forgets producers that were silent for `producer.id.expiration.ms`."""
        return self.producers.expire(now_ms, self.config.producer_expiration_ms)

    # Shortening, at either end

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
        try:
            if len(unwanted) == len(self._segments):
                self._roll(self.end_offset)
            self._doom(self._segments.drop(unwanted))
        except OSError as error:
            raise self._failure(error) from error
        self.advance_start(self._segments.base_offset)
        return len(unwanted)

    def truncate_to(self, offset: int) -> None:
        """Drops every batch that reaches `offset`."""
        if offset >= self.end_offset:
            return
        if offset < self._segments.base_offset:
            self.truncate_fully_and_start_at(offset)
            return
        try:
            self._lower_recovery_point(offset)
            self._doom(self._segments.truncate(offset))
            self.end_offset = self._segments.active.next_offset
            self.start_offset = min(self.start_offset, self.end_offset)
            self.epochs.truncate_end(self.end_offset)
            self._reload_producers()
        except OSError as error:
            raise self._failure(error) from error

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Drops everything; the next record has `offset`."""
        try:
            self._lower_recovery_point(min(offset, self.start_offset))
            self._doom(self._segments.drop(self._segments.ordered))
            self._segments.begin(offset, self.config)
            self.sync_later(self.path)
            self.start_offset = self.end_offset = offset
            self.epochs.clear()
            self._reload_producers()
        except OSError as error:
            raise self._failure(error) from error

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

    def begin_flush(self) -> Flush:
        """What to sync, in any thread; `finish_flush` then moves the recovery point."""
        _, number = self._segments.holding(self.recovery_point)
        logs = tuple(segment.file() for segment in self._segments.from_number(number))
        beside = tuple(self._unsynced or ())
        self._unsynced = None
        self._unflushed_since_ms = _NOTHING_UNFLUSHED
        if self.epochs.unsynced:
            beside += (self.epochs.path,)
            self.epochs.unsynced = False
        return Flush(self.end_offset, self._cuts, logs, beside)

    def finish_flush(self, flush: Flush) -> None:
        """The flush is on disk. One that was overtaken by a truncation promises nothing."""
        if flush.cuts == self._cuts and flush.upto > self.recovery_point:
            self.recovery_point = flush.upto

    def flush(self) -> None:
        """Begins, syncs and finishes a flush, here and now."""
        flush = self.begin_flush()
        try:
            flush.sync()
        except OSError as error:
            raise self._failure(error) from error
        self.finish_flush(flush)

    def close(self) -> None:
        """Leaves the folder so that opening it again needs no scan."""
        self.seal()
        if self.recovery_point < self.end_offset:
            self.flush()
        self.abandon()

    def seal(self) -> None:
        """Writes what opening the log again asks for; a flush is still due."""
        try:
            self._segments.active.seal()
            self._take_snapshot(self.end_offset)
        except OSError as error:
            raise self._failure(error) from error

    def abandon(self) -> None:
        """Lets go of the files as they are."""
        self._segments.close()

    def sync_later(self, path: str) -> None:
        """The next flush includes a file or folder that is new."""
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
