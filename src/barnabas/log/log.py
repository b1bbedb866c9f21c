"""The commit log of one partition: a folder of segments, of which the last is written to.

Everything runs on the one thread that owns the log, except `Flush.sync`. Time is given by the
caller.
"""

from collections.abc import Sequence
from typing import NamedTuple

from barnabas.log import timestamps
from barnabas.log import replicated_batches
from barnabas.log.leader_epochs import EpochEnd
from barnabas.log.producers.producer_state import Producer, end_marker
from barnabas.log.maintenance import must_roll
from barnabas.log.segments.log_slice import Slice
from barnabas.log.timestamps import TimestampOffset
from barnabas.log.maintenance import KeptLog, on_disk
from barnabas.log.producers.verification import Verification
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.records.batch import (
    APPEND_TIME_BIT,
    CONTROL_BIT,
    LENGTH_END,
    NO_TIMESTAMP,
    BatchHeader,
    Readable,
    assign_offset,
)
from barnabas.wire.records.control import EndTransactionMarker
from barnabas.wire.records.validate import ValidBatch


class Appended(NamedTuple):
    """Where a batch stands in the log; `append_time_ms` is -1 where the producer's time counts."""

    first_offset: int
    last_offset: int
    duplicate: bool
    append_time_ms: int


class Log(KeptLog):
    """One partition's records, from `start_offset` up to `end_offset`. `LogDirectory` opens it."""

    __slots__ = ()

    # Appending

    def append_as_leader(
        self,
        batch: ValidBatch,
        leader_epoch: int,
        now_ms: int,
        *,
        from_client: bool = True,
        verification: Verification | None = None,
        transaction_version: int = 0,
    ) -> Appended:
        """Gives the batch the next offsets and writes it; a producer's retry is not written.

        A client's batch that opens a transaction needs the `verification` that `producers` gave
        out for it. A marker is judged by its `transaction_version`.
        """
        header, buffer, max_timestamp = batch
        marker = None
        if header.producer_id >= 0:
            if header.attributes & CONTROL_BIT:
                marker = end_marker(buffer)
                if marker is not None:
                    self.producers.check_marker(header, marker, transaction_version)
            else:
                first = self.producers.check(
                    header,
                    from_client=from_client,
                    verification=verification,
                    must_verify=self.config.verify_transactions,
                )
                if first is not None:
                    return Appended(first.first_offset, first.last_offset, True, first.timestamp)
        first_offset = self.end_offset
        last_offset = first_offset + header.last_offset_delta
        size_bytes = len(buffer)
        if size_bytes > self.config.segment_bytes:
            raise self._too_large(size_bytes)
        try:
            active = self._segments.active
            if must_roll(
                active, self.config, self.name, size_bytes, last_offset, max_timestamp, now_ms
            ):
                active = self._roll(first_offset)
            if leader_epoch != self.epochs.latest:
                self.epochs.assign(leader_epoch, first_offset)
            assign_offset(buffer, 0, first_offset, leader_epoch)
            active.append(buffer, size_bytes)
        except OSError as error:
            raise self._failure(error) from error
        self._count(header, size_bytes, first_offset, last_offset, max_timestamp, marker)
        if self._unflushed_since_ms < 0:
            self._unflushed_since_ms = now_ms
        append_time_ms = max_timestamp if header.attributes & APPEND_TIME_BIT else NO_TIMESTAMP
        return Appended(first_offset, last_offset, False, append_time_ms)

    def append_as_follower(
        self, batches: Readable, now_ms: int, *, leader_epoch: int = replicated_batches.ANY_EPOCH
    ) -> Appended:
        """Writes whole batches with the offsets and epochs the leader of an epoch gave them."""
        first_offset = self.end_offset
        with memoryview(batches) as view:
            found = replicated_batches.check(view, first_offset, self.name, leader_epoch)
            for start, end, headers in replicated_batches.group(found, self.config.segment_bytes):
                self._append_group(view[start:end], headers, now_ms)
        if found:
            first_offset = found[0].base_offset
            if self._unflushed_since_ms < 0:
                self._unflushed_since_ms = now_ms
        return Appended(first_offset, self.end_offset - 1, False, NO_TIMESTAMP)

    @on_disk
    def _append_group(self, view: memoryview, headers: Sequence[BatchHeader], now_ms: int) -> None:
        first, last_offset = headers[0], headers[-1].last_offset
        active = self._segments.active
        if must_roll(
            active, self.config, self.name, len(view), last_offset, first.max_timestamp, now_ms
        ):
            active = self._roll(first.base_offset)
        active.append(view, len(view))
        position = 0
        for header in headers:
            first_offset = header.base_offset
            if header.leader_epoch > self.epochs.latest:
                self.epochs.assign(header.leader_epoch, first_offset)
            size_bytes = header.length + LENGTH_END
            marker = None
            if header.attributes & CONTROL_BIT and header.producer_id >= 0:
                marker = end_marker(view[position : position + size_bytes])
            last_offset = first_offset + header.last_offset_delta
            self._count(header, size_bytes, first_offset, last_offset, header.max_timestamp, marker)
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
        if offset == upto:
            return None
        try:
            return self._segments.read(offset, max_bytes, upto, at_least_one)
        except OSError as error:
            raise self._failure(error) from error

    @on_disk
    def offset_for_timestamp(self, timestamp: int) -> TimestampOffset | None:
        """The first record that is at least as late as `timestamp`."""
        return timestamps.first_from(self._segments.ordered, timestamp, self.start_offset)

    @on_disk
    def offset_of_max_timestamp(self) -> TimestampOffset | None:
        """The first record that has the largest timestamp of all."""
        return timestamps.latest(self._segments.ordered, self.start_offset)

    # Epochs, producers and transactions

    @property
    def latest_epoch(self) -> int:
        return self.epochs.latest

    @on_disk
    def start_epoch(self, epoch: int, offset: int) -> None:
        """A leader of `epoch` writes from `offset` on."""
        self.epochs.assign(epoch, offset)

    def epoch_end(self, epoch: int) -> EpochEnd:
        """The largest epoch up to `epoch` and where it ends; (-1, -1) if that is unknown."""
        return self.epochs.end_of(epoch, self.end_offset)

    @property
    def first_unstable_offset(self) -> int | None:
        """Where the oldest open transaction begins."""
        return self.producers.first_undecided_offset

    def last_stable_offset(self, high_watermark: int) -> int:
        """Up to where a reader of committed records may go."""
        return self.producers.last_stable_offset(high_watermark)

    @on_disk
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
