"""One partition as this broker holds it: what its leader checks, appends, serves and promises.

The partition decides, the log stores. A record counts once the high watermark has passed it:
for the only replica in sync that is the end of the log, and followers can only hold it back.
"""

from typing import NamedTuple

from barnabas.log import (
    Appended,
    Log,
    LogDirFailure,
    Slice,
    Verification,
)
from barnabas.metadata.states import PartitionState
from barnabas.replication import refusals
from barnabas.replication.ports import Caretaker, Marker, Waiting
from barnabas.replication.replica import NO_EPOCH, READ_UNCOMMITTED, Replica
from barnabas.replication.topic_rules import TopicRules
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.records.batch import BatchHeader, read_header
from barnabas.wire.records.control import build_marker
from barnabas.wire.records.validate import InvalidRecords, ProduceRules, ValidBatch, validate

ALL_IN_SYNC = -1
"""The `acks` of a producer that waits for every replica in sync."""

UP_TO_HIGH_WATERMARK = -1
"""The offset that DeleteRecords gives to delete everything it may."""


class EpochEnd(NamedTuple):
    """The largest epoch not above the one asked for, and the offset at which it ended."""

    epoch: int
    end_offset: int


class FetchedPartition(NamedTuple):
    """What a fetch of one partition found; `diverging` is set if the reader must truncate."""

    records: Slice | None
    high_watermark: int
    last_stable_offset: int
    start_offset: int
    aborted: list[tuple[int, int]] | None = None
    diverging: EpochEnd | None = None


class Partition(Replica):
    """A replica of a partition, and its leader if the metadata says so."""

    __slots__ = ("_alone", "_flush_wanted", "_short_of_replicas")

    def __init__(
        self,
        log: Log,
        rules: TopicRules,
        *,
        node_id: int,
        high_watermark: int,
        caretaker: Caretaker,
        waiting: Waiting,
    ) -> None:
        super().__init__(
            log,
            rules,
            node_id=node_id,
            high_watermark=high_watermark,
            caretaker=caretaker,
            waiting=waiting,
        )
        self._alone = False  # leading, with nobody else in sync
        self._short_of_replicas = False
        self._flush_wanted = 0  # nothing beyond is acknowledged before the disk has what is below

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
            raise refusals.not_served(self)
        if self._short_of_replicas and acks == ALL_IN_SYNC:
            raise refusals.too_few_replicas(self)
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
            raise refusals.not_served(self)
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
        """Whether an append that ended before `next_offset` may be acknowledged."""
        if acks == ALL_IN_SYNC and self.high_watermark < next_offset:
            return False
        return (
            self.log.recovery_point >= self._flush_wanted or next_offset <= self.log.recovery_point
        )

    def fetch(
        self,
        offset: int,
        max_bytes: int,
        *,
        isolation: int = READ_UNCOMMITTED,
        at_least_one: bool = True,
        leader_epoch: int = NO_EPOCH,
        last_fetched_epoch: int = NO_EPOCH,
    ) -> FetchedPartition:
        """Whole batches from `offset` on, none of them beyond what the reader may see."""
        if not self.is_leader or (leader_epoch >= 0 and leader_epoch != self.leader_epoch):
            raise refusals.not_served(self, leader_epoch)
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
            raise refusals.out_of_range(self, offset)
        aborted = None
        if isolation:
            aborted = log.aborted_transactions(offset, records.next_offset) if records else []
        return FetchedPartition(records, high_watermark, stable, start, aborted)

    def require_leader(self, leader_epoch: int = NO_EPOCH) -> None:
        """Refuse unless this replica leads, in the epoch the caller believes if it names one."""
        if not self.is_leader or (leader_epoch >= 0 and leader_epoch != self.leader_epoch):
            raise refusals.not_served(self, leader_epoch)

    def epoch_end(self, epoch: int, leader_epoch: int = NO_EPOCH) -> EpochEnd:
        """Where `epoch` ended in this log; both -1 where the log cannot tell."""
        self.require_leader(leader_epoch)
        return EpochEnd(*self.log.epoch_end_offset(epoch))

    def delete_records(self, before_offset: int) -> int:
        """Let go of the records before an offset; the offset at which the log now starts."""
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
            raise refusals.out_of_range(self, before_offset)
        try:
            self.log.advance_start(before_offset)
        except LogDirFailure as failure:
            self._caretaker.lose(self.directory, failure)
            raise
        return self.log.start_offset

    def take(self, state: PartitionState) -> None:
        """Lead or follow, as the metadata now has it."""
        self.state = state
        self.leader_epoch = state.leader_epoch
        self.is_leader = state.leader == self.node_id and self.failure is None
        self._alone = self.is_leader and state.isr == (self.node_id,)
        if self.is_leader and self.log.latest_epoch != state.leader_epoch:
            self.log.start_epoch(state.leader_epoch, self.log.end_offset)
        if self._alone:
            self.high_watermark = self.log.end_offset
        self._count_replicas()
        self._waiting.wake(self)

    def obey(self, rules: TopicRules) -> None:
        """Work by new settings from now on."""
        self.rules = rules
        self.log.config = rules.log
        self._count_replicas()

    def move_to(self, log: Log) -> None:
        """Go on with an equal log in another directory."""
        self.log = log

    def stop(self, failure: ErrorCode) -> None:
        """Answer everything with `failure` from now on, and let go of who waits."""
        self.failure = failure
        self.is_leader = False
        self._alone = False
        self._waiting.wake(self)

    def _count_replicas(self) -> None:
        state = self.state
        # KIP-966: a partition with fewer replicas than min.insync.replicas needs them all.
        self._short_of_replicas = state is not None and len(state.isr) < min(
            self.rules.min_insync_replicas, len(state.replicas)
        )

    def _divergence(self, offset: int, last_fetched_epoch: int) -> EpochEnd | None:
        """Where the reader's log left ours, if it did (KIP-595)."""
        end = EpochEnd(*self.log.epoch_end_offset(last_fetched_epoch))
        if end.epoch == NO_EPOCH or offset < self.log.start_offset:
            raise refusals.out_of_range(self, offset)
        if end.epoch < last_fetched_epoch or end.end_offset < offset:
            return end
        return None


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
