"""One partition as this broker holds it: what its leader checks, appends, serves and promises.

The partition decides, the log stores. Here is what clients ask for; `leading` has what followers
ask for, and `replica` how this replica follows.
"""

from barnabas.log import Appended, EpochEnd, LogDirFailure, Verification
from barnabas.replication import errors
from barnabas.replication.leading import FetchedPartition, LeadingReplica
from barnabas.replication.ports import Marker
from barnabas.replication.replica import NO_EPOCH, READ_UNCOMMITTED
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.records.batch import BatchHeader, read_header
from barnabas.wire.records.control import build_marker
from barnabas.wire.records.validate import InvalidRecords, ProduceRules, ValidBatch, validate

ALL_IN_SYNC = -1
"""The `acks` of a producer that waits for every replica in sync."""

UP_TO_HIGH_WATERMARK = -1
"""The offset that DeleteRecords gives to delete everything it may."""


class Partition(LeadingReplica):
    """A replica of a partition, and its leader if the metadata says so."""

    __slots__ = ()

    def append(
        self,
        records: memoryview,
        *,
        acks: int,
        now_ms: int,
        from_client: bool = True,
        verification: Verification | None = None,
        transaction_version: int = 0,
    ) -> Appended:
        """Append one batch as its leader. `has_promised` says when it may be acknowledged.

        A client's batch that opens a transaction needs what `verify` gave. What a coordinator of
        this broker writes is not looked through as a client's batch is, and has no sequence
        numbers; a marker among it is judged by its `transaction_version`.
        """
        if not self.is_leader:
            raise errors.not_served(self)
        if self._short_of_replicas and acks == ALL_IN_SYNC:
            raise errors.too_few_replicas(self)
        log = self.log
        rules = self.rules
        if from_client:
            batch = validate(records, rules.produce, now_ms)
        else:
            batch = _own_batch(records, rules.produce)
        try:
            appended = log.append_as_leader(
                batch,
                self.leader_epoch,
                now_ms,
                from_client=from_client,
                verification=verification,
                transaction_version=transaction_version,
            )
        except LogDirFailure as failure:
            self._caretaker.lose(self.directory, failure)
            raise
        if self._alone:
            self.high_watermark = log.end_offset
            self._waiting.poke(self, len(batch.buffer))
        elif not appended.duplicate:
            self._grew(appended.first_offset, len(batch.buffer), now_ms)
        if rules.flushes_by_count and log.flush_due(now_ms):
            self._flush_wanted = log.end_offset
            self._caretaker.flush(self)
        return appended

    def verify(self, batch: BatchHeader, *, from_zero: bool, now_ms: int) -> Verification | None:
        """Begin to verify a transactional batch: its coordinator is to be asked for its word.

        None if there is nothing to ask, since the transaction is open here. `from_zero` says that
        each transaction has an epoch of its own.
        """
        if not self.is_leader:
            raise errors.not_served(self)
        return self.log.producers.verify(batch, from_zero=from_zero, now_ms=now_ms)

    def end_transaction(self, marker: Marker, *, now_ms: int) -> Appended:
        """Append the marker that decides a producer's transaction, to be kept by all in sync."""
        batch = build_marker(
            producer_id=marker.producer_id,
            producer_epoch=marker.producer_epoch,
            committed=marker.committed,
            coordinator_epoch=marker.coordinator_epoch,
            timestamp=now_ms,
        )
        appended = self.append(
            memoryview(batch),
            acks=ALL_IN_SYNC,
            now_ms=now_ms,
            from_client=False,
            transaction_version=marker.transaction_version,
        )
        self.log.producers.replicated(self.high_watermark)
        return appended

    def has_promised(self, next_offset: int, acks: int) -> bool:
        """Whether an append that ended before `next_offset` is as safe as its producer wants."""
        if acks == ALL_IN_SYNC and self.high_watermark < next_offset:
            return False
        return (
            self.log.recovery_point >= self._flush_wanted or next_offset <= self.log.recovery_point
        )

    def outcome(self, next_offset: int, acks: int) -> ErrorCode | None:
        """What to tell the producer of such an append; None while it is to wait."""
        if not self.is_leader:
            return self.failure or ErrorCode.NOT_LEADER_OR_FOLLOWER
        if not self.has_promised(next_offset, acks):
            return None
        if acks == ALL_IN_SYNC and self._short_of_replicas:
            return ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
        return ErrorCode.NONE

    def fetch(
        self,
        offset: int,
        max_bytes: int,
        *,
        isolation: int = READ_UNCOMMITTED,
        at_least_one: bool = True,
        only_leader: bool = True,
        leader_epoch: int = NO_EPOCH,
        last_fetched_epoch: int = NO_EPOCH,
    ) -> FetchedPartition:
        """Whole batches from `offset` on, none of them beyond what the reader may see."""
        if not self.is_leader or (leader_epoch >= 0 and leader_epoch != self.leader_epoch):
            self._require_readable(only_leader, leader_epoch)
        log = self.log
        high_watermark = self.high_watermark
        stable = log.last_stable_offset(high_watermark)
        start = log.start_offset
        if last_fetched_epoch >= 0:
            diverging = self._divergence(offset, last_fetched_epoch)
            if diverging is not None:
                return FetchedPartition(None, high_watermark, stable, start, None, diverging)
        upto = stable if isolation else high_watermark
        if start <= offset < upto and (max_bytes > 0 or at_least_one):
            records = self._read(offset, max_bytes, upto, at_least_one)
        elif start <= offset <= log.end_offset:
            records = None
        else:
            raise errors.out_of_range(self, offset)
        aborted = None
        if isolation:
            aborted = log.aborted_transactions(offset, records.next_offset) if records else []
        return FetchedPartition(records, high_watermark, stable, start, aborted)

    def _require_readable(self, only_leader: bool, leader_epoch: int) -> None:
        """Refuse unless consumers may read here: from the leader, or any replica (KIP-392)."""
        is_current = leader_epoch in (NO_EPOCH, self.leader_epoch)
        if only_leader or self.failure is not None or not is_current:
            raise errors.not_served(self, leader_epoch)

    def epoch_end(self, epoch: int, leader_epoch: int = NO_EPOCH) -> EpochEnd:
        """Where `epoch` ended in this log; both -1 where the log cannot tell."""
        self.require_leader(leader_epoch)
        return self.log.epoch_end(epoch)

    def delete_records(self, before_offset: int) -> int:
        """Let go of the records before an offset; the offset at which the log now starts.

        Followers learn of it: once `low_watermark` is there, the records are gone everywhere.
        """
        self.require_leader()
        if self.rules.only_compacted:
            raise KafkaError(
                ErrorCode.POLICY_VIOLATION,
                f"{self.topic}-{self.index} is compacted: its records cannot be deleted by offset. "
                "Add 'delete' to its cleanup.policy, or write tombstones.",
            )
        if before_offset == UP_TO_HIGH_WATERMARK:
            before_offset = self.high_watermark
        if not 0 <= before_offset <= self.high_watermark:
            raise errors.out_of_range(self, before_offset)
        self.advance_start(before_offset)
        return self.log.start_offset


def _own_batch(records: memoryview, rules: ProduceRules) -> ValidBatch:
    """A batch that this broker built itself; only its size is not for it to choose."""
    if len(records) > rules.max_message_bytes:
        raise InvalidRecords(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"The batch takes {len(records)} bytes; max.message.bytes allows "
            f"{rules.max_message_bytes}.",
        )
    header = read_header(records)
    return ValidBatch(header, records, header.max_timestamp)
