"""The commit log of one partition: a folder of segments, of which the last is written to.

Everything runs on the one thread that owns the log, except `Flush.sync`. The caller passes the
time.

`Log` appends, reads and truncates. Its parts do the rest: `maintenance` rolls and deletes segments,
`flusher` brings what was appended to disk. Code that rewrites or copies segments finds them in
`segments`.
"""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from barnabas.log import replicated_batches, timestamps
from barnabas.log._append import LogEnd, ProducerStateEntry
from barnabas.log.cleaner.compaction_state import CompactionState
from barnabas.log.errors import log_dir_failure, raises_log_dir_failure
from barnabas.log.flush import LogFlusher
from barnabas.log.leader_epochs import EpochEndOffset
from barnabas.log.maintenance import LogMaintenance, follower_base_offset, should_roll
from barnabas.log.producers import replay
from barnabas.log.producers.producer_state import (
    AppendedBatch,
    read_end_marker,
)
from barnabas.log.producers.verification import VerificationGuard
from barnabas.log.recovery import LoadedLog
from barnabas.log.segments.log_segments import LogSegments
from barnabas.log.segments.log_slice import LogSlice
from barnabas.log.segments.page_cache import PositionalRead
from barnabas.log.timestamps import TimestampOffset, TimestampSearch
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.records.batch import (
    APPEND_TIME_BIT,
    CONTROL_BIT,
    LENGTH_END,
    NO_TIMESTAMP,
    BatchHeader,
    Readable,
)
from barnabas.wire.records.control import EndTransactionMarker
from barnabas.wire.records.validate import ValidBatch

if TYPE_CHECKING:
    from barnabas.log.directory.log_directory import LogDirectory


class LogAppendInfo(NamedTuple):
    """The offsets of an appended batch.

    `append_time_ms` is -1 where the batch keeps the timestamps of its producer.
    """

    first_offset: int
    last_offset: int
    duplicate: bool
    append_time_ms: int


class Log(LogEnd):
    """The records of one partition, from `log_start_offset` up to `log_end_offset`.

    `LogDirectory` opens it. Offsets below `recovery_point` are on disk for certain; recovery checks
    the rest again after an unclean shutdown.
    """

    __slots__ = (
        "compaction",
        "maintenance",
        "name",
        "partition",
        "path",
        "topic",
        "topic_id",
    )

    def __init__(
        self,
        directory: "LogDirectory",
        topic: str,
        partition: int,
        topic_id: bytes,
        loaded: LoadedLog,
    ) -> None:
        params = loaded.params
        self.directory = directory
        self.topic = topic
        self.partition = partition
        self.topic_id = topic_id
        self.config = params.config
        self.name = params.name
        self.path = params.folder
        self.log_start_offset = loaded.log_start_offset
        self.log_end_offset = loaded.log_end_offset
        self.recovery_point = loaded.recovery_point
        self.leader_epochs = loaded.leader_epochs
        self.producers = loaded.producers
        self.segments = LogSegments(params.folder, params.files, loaded.segments)
        self.flusher = LogFlusher(self, is_new=loaded.is_new)
        self.maintenance = LogMaintenance(self, loaded.snapshot_offset)
        self.compaction: CompactionState | None = None
        """What the cleaner knows about the log, once it has looked at it."""

    def __repr__(self) -> str:
        return f"<Log {self.path} [{self.log_start_offset}, {self.log_end_offset})>"

    @property
    def size_bytes(self) -> int:
        return self.segments.size_bytes

    # Appending

    def append_as_leader(
        self,
        batch: ValidBatch,
        leader_epoch: int,
        now_ms: int,
        *,
        from_client: bool = True,
        verification: VerificationGuard | None = None,
        transaction_version: int = 0,
    ) -> LogAppendInfo:
        """Assigns the next offsets to the batch and writes it. A producer's retry is not written.

        A client's batch that opens a transaction needs the `verification` that `producers` issued
        for it. A marker is checked by the rules of its `transaction_version`.
        """
        first_offset = self.try_append_plain(batch, leader_epoch, now_ms)
        if first_offset >= 0:
            return LogAppendInfo(
                first_offset, self.log_end_offset - 1, False, _append_time_ms(batch)
            )
        marker = None
        if batch.producer_id >= 0:
            if batch.attributes & CONTROL_BIT:
                marker = read_end_marker(batch.buffer)
                if marker is not None:
                    self.producers.check_marker(batch, marker, transaction_version)
            else:
                duplicate = self.producers.check_batch(
                    batch, from_client, verification, self.config.verify_transactions
                )
                if duplicate is not None:
                    return LogAppendInfo(
                        duplicate.first_offset, duplicate.last_offset, True, duplicate.timestamp
                    )
        config = self.config
        first_offset = self.log_end_offset
        last_offset = first_offset + batch.last_offset_delta
        size_bytes = batch.size_bytes
        max_timestamp = batch.max_timestamp
        if size_bytes > config.segment_bytes:
            raise self._batch_too_large(size_bytes)
        try:
            active = self.segments.active
            if should_roll(
                active, config, self.name, size_bytes, last_offset, max_timestamp, now_ms
            ):
                active = self.maintenance.roll_at(first_offset)
            if leader_epoch != self.leader_epochs.latest_epoch:
                self.leader_epochs.assign(leader_epoch, first_offset)
            batch.assign_offset(first_offset, leader_epoch)
            active.append(batch.buffer, size_bytes)
        except OSError as error:
            raise log_dir_failure(self.directory, error) from error
        # The batch is in the file: from here on it is part of the log.
        active.on_batch_written(size_bytes, last_offset, max_timestamp)
        self.log_end_offset = last_offset + 1
        if batch.producer_id >= 0:
            self._on_producer_wrote(batch, first_offset, last_offset, max_timestamp, marker)
        flusher = self.flusher
        if flusher.unflushed_since_ms < 0:
            flusher.unflushed_since_ms = now_ms
        return LogAppendInfo(first_offset, last_offset, False, _append_time_ms(batch))

    def append_as_follower(
        self, batches: Readable, now_ms: int, *, leader_epoch: int = replicated_batches.ANY_EPOCH
    ) -> LogAppendInfo:
        """Writes whole batches with the offsets and epochs that the leader of an epoch assigned."""
        first_offset = self.log_end_offset
        with memoryview(batches) as view:
            headers = replicated_batches.validate_batches(
                view, first_offset, self.name, leader_epoch
            )
            for start, end, group in replicated_batches.group_for_writes(
                headers, self.config.segment_bytes
            ):
                self._append_group(view[start:end], group, now_ms)
        if headers:
            first_offset = headers[0].base_offset
            if self.flusher.unflushed_since_ms < 0:
                self.flusher.unflushed_since_ms = now_ms
        return LogAppendInfo(first_offset, self.log_end_offset - 1, False, NO_TIMESTAMP)

    @raises_log_dir_failure
    def _append_group(self, view: memoryview, headers: Sequence[BatchHeader], now_ms: int) -> None:
        first, last_offset = headers[0], headers[-1].last_offset
        active = self.segments.active
        if should_roll(
            active, self.config, self.name, len(view), last_offset, first.max_timestamp, now_ms
        ):
            active = self.maintenance.roll_at(
                follower_base_offset(self.log_end_offset, first.base_offset, last_offset)
            )
        active.append(view, len(view))
        position = 0
        for header in headers:
            first_offset = header.base_offset
            if header.leader_epoch > self.leader_epochs.latest_epoch:
                self.leader_epochs.assign(header.leader_epoch, first_offset)
            size_bytes = header.length + LENGTH_END
            marker = None
            if header.attributes & CONTROL_BIT and header.producer_id >= 0:
                marker = read_end_marker(view[position : position + size_bytes])
            last_offset = first_offset + header.last_offset_delta
            self.segments.active.on_batch_written(size_bytes, last_offset, header.max_timestamp)
            self.log_end_offset = last_offset + 1
            if header.producer_id >= 0:
                self._on_producer_wrote(
                    header, first_offset, last_offset, header.max_timestamp, marker
                )
            position += size_bytes

    def _on_producer_wrote(
        self,
        batch: AppendedBatch,
        first_offset: int,
        last_offset: int,
        max_timestamp: int,
        marker: EndTransactionMarker | None,
    ) -> None:
        """A batch with a producer id was written: updates the state of the producer."""
        if not batch.attributes & CONTROL_BIT:
            self.producers.on_batch_appended(batch, first_offset, last_offset, max_timestamp)
        elif marker is not None:
            aborted = self.producers.complete_transaction(batch, marker, last_offset)
            if aborted is not None:
                self.segments.active.transaction_index.append(aborted)

    def _batch_too_large(self, size_bytes: int) -> KafkaError:
        return KafkaError(
            ErrorCode.RECORD_LIST_TOO_LARGE,
            f"{self.name}: a batch of {size_bytes} bytes does not fit a segment of "
            f"{self.config.segment_bytes}; raise segment.bytes.",
        )

    # Reading

    def read(
        self,
        offset: int,
        max_bytes: int,
        *,
        upto: int,
        at_least_one: bool = True,
        pread: PositionalRead = os.pread,
    ) -> LogSlice | None:
        """Returns whole batches from the one that has `offset`, none of which reaches `upto`.

        Returns None if there are none, or if the first is larger than `max_bytes` and
        `at_least_one` is False. With `pread_cached` it raises ColdRead instead of waiting for the
        disk.
        """
        if offset < self.log_start_offset or offset > upto:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"{self.name}: offset {offset} is not within {self.log_start_offset} to {upto}.",
            )
        if offset == upto:
            return None
        try:
            return self.segments.read(offset, max_bytes, upto, at_least_one, pread)
        except OSError as error:
            raise log_dir_failure(self.directory, error) from error

    def search_timestamps(self) -> TimestampSearch:
        """Returns a search by timestamp, for a thread; the next two methods wait for the disk."""
        return TimestampSearch(self.segments.ordered, self.log_start_offset)

    @raises_log_dir_failure
    def offset_for_timestamp(self, timestamp: int) -> TimestampOffset | None:
        """Returns the first record whose timestamp is at least `timestamp`."""
        return timestamps.find_first(self.segments.ordered, timestamp, self.log_start_offset)

    @raises_log_dir_failure
    def offset_of_max_timestamp(self) -> TimestampOffset | None:
        """Returns the first record that has the largest timestamp of all."""
        return timestamps.find_max(self.segments.ordered, self.log_start_offset)

    # Truncating, at either end

    @raises_log_dir_failure
    def advance_log_start_offset(self, offset: int) -> None:
        """Deletes the records below `offset`; `delete_old_segments` removes their files."""
        if offset > self.log_end_offset:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"{self.name}: cannot begin at offset {offset}, it ends at {self.log_end_offset}.",
            )
        if offset > self.log_start_offset:
            self.log_start_offset = offset
            self.leader_epochs.truncate_from_start(offset)

    @raises_log_dir_failure
    def truncate_to(self, offset: int) -> None:
        """Drops every batch that reaches `offset`."""
        if offset >= self.log_end_offset:
            # A leader that was replaced before it wrote anything has left its epoch behind.
            self.leader_epochs.truncate_from_end(self.log_end_offset)
            return
        segments = self.segments
        if offset < segments.base_offset:
            self.truncate_fully_and_start_at(offset)
            return
        offset = segments.batch_boundary(offset)
        self.flusher.before_truncation(offset)
        self.maintenance.lower_first_dirty_offset(offset)
        is_undone = replay.undo_from(self.producers, segments.ordered, offset)
        self.maintenance.schedule_delete(segments.truncate(offset))
        self.log_end_offset = offset
        self.log_start_offset = min(self.log_start_offset, offset)
        self.leader_epochs.truncate_from_end(offset)
        if not is_undone or offset <= self.maintenance.snapshot_offset:
            self.maintenance.reload_producers()

    @raises_log_dir_failure
    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Drops everything; the next record has `offset`."""
        self.flusher.before_truncation(min(offset, self.log_start_offset))
        self.maintenance.lower_first_dirty_offset(min(offset, self.log_start_offset))
        self.maintenance.replace_all_segments(offset)
        self.log_start_offset = self.log_end_offset = offset
        self.leader_epochs.clear()
        self.maintenance.reload_producers()

    # Epochs, producers and transactions

    @property
    def latest_epoch(self) -> int:
        return self.leader_epochs.latest_epoch

    @raises_log_dir_failure
    def assign_epoch_start_offset(self, epoch: int, offset: int) -> None:
        """The leader of `epoch` writes from `offset` on."""
        self.leader_epochs.assign(epoch, offset)

    def epoch_end_offset(self, epoch: int) -> EpochEndOffset:
        """Returns the largest epoch up to `epoch` and where it ends; (-1, -1) if unknown."""
        return self.leader_epochs.end_offset_for(epoch, self.log_end_offset)

    def last_stable_offset(self, high_watermark: int) -> int:
        """Returns the offset up to which a reader of committed records may read."""
        return self.producers.last_stable_offset(high_watermark)

    @raises_log_dir_failure
    def aborted_transactions(self, start: int, end: int) -> list[tuple[int, int]]:
        """Returns the producer id and first offset of each aborted transaction with records in
        [start, end)."""
        aborted: list[tuple[int, int]] = []
        _, number = self.segments.floor(start)
        for segment in self.segments.since(number):
            entries, is_complete = segment.transaction_index.overlapping(start, end)
            aborted += [(entry.producer_id, entry.first_offset) for entry in entries]
            if is_complete:
                break
        return aborted

    def active_producers(self) -> list[ProducerStateEntry]:
        """Returns the producers that DescribeProducers reports."""
        return list(self.producers.entries.values())

    def remove_expired_producers(self, now_ms: int) -> int:
        """Forgets producers that were silent for `producer.id.expiration.ms`; returns how many."""
        return self.producers.remove_expired(now_ms, self.config.producer_expiration_ms)

    def compaction_state(self) -> CompactionState:
        """Returns what the cleaner knows about the log."""
        if self.compaction is None:
            self.compaction = CompactionState()
        return self.compaction

    # Closing

    def close(self) -> None:
        """Leaves the folder so that opening it again needs no scan."""
        self.maintenance.seal()
        if self.recovery_point < self.log_end_offset:
            self.flusher.flush()
        self.close_files()

    def close_files(self) -> None:
        """Closes the files as they are, without flushing."""
        self.segments.close()


def _append_time_ms(batch: ValidBatch) -> int:
    return batch.max_timestamp if batch.attributes & APPEND_TIME_BIT else NO_TIMESTAMP
