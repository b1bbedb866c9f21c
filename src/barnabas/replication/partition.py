"""One replica of a partition on this broker: what clients append, fetch and wait for.

The partition decides, the log stores. What belongs to one role only is in an object of its own:
`LeaderState` while this replica leads and has followers, `FollowerReplica` for what its leader
sends.

`append` runs for every partition of every produce request, `fetch` and `fetch_as_follower` for
every partition of every fetch request. These three are the hot path: a call or an allocation more
in them costs throughput.
"""

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from barnabas.log import (
    CorruptLog,
    EpochEndOffset,
    Log,
    LogAppendInfo,
    LogDirectory,
    LogDirFailure,
    LogSlice,
    PositionalRead,
    VerificationGuard,
)
from barnabas.metadata.states import PartitionRegistration
from barnabas.replication import errors
from barnabas.replication._append import PartitionEnd
from barnabas.replication.follower_replica import FollowerReplica
from barnabas.replication.leader_state import FollowerState, LeaderState
from barnabas.replication.ports import DelayedOperations, PartitionHost, TransactionMarker
from barnabas.replication.topic_config import TopicConfig
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.records.batch import BatchHeader, read_header
from barnabas.wire.records.control import build_marker
from barnabas.wire.records.validate import InvalidRecords, ProduceRules, ValidBatch, validate

NO_EPOCH = -1
READ_UNCOMMITTED = 0
READ_COMMITTED = 1

ACKS_ALL = -1
"""The `acks` of a producer that waits for every in-sync replica."""

UP_TO_HIGH_WATERMARK = -1
"""The offset with which DeleteRecords deletes everything it may."""

_logger = logging.getLogger(__name__)


class LogReadResult(NamedTuple):
    """The result of a fetch of one partition.

    `diverging_epoch` is set if the reader must truncate.
    """

    records: LogSlice | None
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    aborted_transactions: list[tuple[int, int]] | None = None
    diverging_epoch: EpochEndOffset | None = None


class Partition(PartitionEnd):
    """A replica of a partition, which leads or follows as the metadata says."""

    __slots__ = (
        "_reported_damage",
        "error_code",
        "follower",
        "node_id",
        "state",
        "topic_id",
    )

    def __init__(
        self,
        log: Log,
        config: TopicConfig,
        *,
        node_id: int,
        high_watermark: int,
        host: PartitionHost,
        purgatory: DelayedOperations,
    ) -> None:
        self.topic = log.topic
        self.topic_id = log.topic_id
        self.index = log.partition
        self.log = log
        self.config = config
        self.high_watermark = max(log.log_start_offset, min(high_watermark, log.log_end_offset))
        """Records below it are committed: every replica that may lead has them."""
        self.is_leader = False
        self.is_under_min_isr = False
        self.leader_epoch = NO_EPOCH
        self.leader_state = None
        """None while this replica follows, and while it is the only one."""
        self.follower = FollowerReplica(self)
        self.error_code: ErrorCode | None = None
        """The error of every request, once the disk has failed or the partition is deleted."""
        self.state: PartitionRegistration | None = None
        self.node_id = node_id
        self.host = host
        self.purgatory = purgatory
        # Appends up to here are acknowledged once they are on disk.
        self.flush_before_ack_offset = 0
        self._reported_damage = ""

    def __repr__(self) -> str:
        offsets = f"[{self.log.log_start_offset}, {self.high_watermark}, {self.log.log_end_offset})"
        return f"<Partition {self.topic}-{self.index} {offsets}>"

    @property
    def directory(self) -> LogDirectory:
        return self.log.directory

    @property
    def last_stable_offset(self) -> int:
        """Every transaction below it has ended."""
        return self.log.last_stable_offset(self.high_watermark)

    def last_fetchable_offset(self, isolation: int) -> int:
        """Returns the offset up to which a consumer sees records."""
        return self.last_stable_offset if isolation == READ_COMMITTED else self.high_watermark

    # Producing

    def append(
        self,
        records: memoryview,
        *,
        acks: int,
        now_ms: int,
        from_client: bool = True,
        verification: VerificationGuard | None = None,
        transaction_version: int = 0,
    ) -> LogAppendInfo:
        """Appends one batch as the leader. `is_committed` says when it may be acknowledged.

        A client's batch that opens a transaction needs the guard that `start_verification`
        returned. The records of a coordinator on this broker are not validated as a client's are,
        and have no sequence numbers; a marker among them is checked by its `transaction_version`.
        """
        if not self.is_leader:
            raise errors.not_leader(self)
        if self.is_under_min_isr and acks == ACKS_ALL:
            raise errors.not_enough_replicas(self)
        if from_client:
            batch = validate(records, self.config.produce, now_ms)
        else:
            batch = _own_batch(records, self.config.produce)
        return self.append_validated(
            batch,
            acks,
            now_ms,
            from_client=from_client,
            verification=verification,
            transaction_version=transaction_version,
        )

    def append_validated(
        self,
        batch: ValidBatch,
        acks: int,
        now_ms: int,
        *,
        from_client: bool = True,
        verification: VerificationGuard | None = None,
        transaction_version: int = 0,
    ) -> LogAppendInfo:
        """Appends a batch that fulfils the rules of the topic. See `append` for the rest."""
        if not self.is_leader:
            raise errors.not_leader(self)
        if self.is_under_min_isr and acks == ACKS_ALL:
            raise errors.not_enough_replicas(self)
        log = self.log
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
            self.host.handle_log_dir_failure(self.directory, failure)
            raise
        if not appended.duplicate:
            self.on_appended(appended.first_offset, batch.size_bytes, now_ms)
        if self.config.flushes_by_count and log.flusher.is_due(now_ms):
            self.flush_before_ack_offset = log.log_end_offset
            self.host.request_flush(self)
        return appended

    def start_verification(
        self, batch: BatchHeader, *, from_zero: bool, now_ms: int
    ) -> VerificationGuard | None:
        """Starts to verify a transactional batch with the transaction's coordinator (KIP-890).

        Returns None if the transaction is open here: it needs no verification. `from_zero` says
        that each transaction has an epoch of its own.
        """
        if not self.is_leader:
            raise errors.not_leader(self)
        return self.log.producers.start_batch_verification(
            batch, from_zero=from_zero, now_ms=now_ms
        )

    def end_transaction(self, marker: TransactionMarker, *, now_ms: int) -> LogAppendInfo:
        """Appends the marker that commits or aborts a producer's transaction, with acks=all."""
        batch = build_marker(
            producer_id=marker.producer_id,
            producer_epoch=marker.producer_epoch,
            committed=marker.committed,
            coordinator_epoch=marker.coordinator_epoch,
            timestamp=now_ms,
        )
        appended = self.append(
            memoryview(batch),
            acks=ACKS_ALL,
            now_ms=now_ms,
            from_client=False,
            transaction_version=marker.transaction_version,
        )
        self.log.producers.on_high_watermark_updated(self.high_watermark)
        return appended

    def is_committed(self, next_offset: int, acks: int) -> bool:
        """Returns whether an append that ended before `next_offset` fulfils its `acks`."""
        if acks == ACKS_ALL and self.high_watermark < next_offset:
            return False
        return (
            self.log.recovery_point >= self.flush_before_ack_offset
            or next_offset <= self.log.recovery_point
        )

    def commit_result(self, next_offset: int, acks: int) -> ErrorCode | None:
        """Returns the response to the producer of such an append; None while it must wait."""
        if not self.is_leader:
            return self.error_code or ErrorCode.NOT_LEADER_OR_FOLLOWER
        if not self.is_committed(next_offset, acks):
            return None
        if acks == ACKS_ALL and self.is_under_min_isr:
            return ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
        return ErrorCode.NONE

    # Fetching

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
        pread: PositionalRead = os.pread,
    ) -> LogReadResult:
        """Returns whole batches from `offset` on that a consumer may see.

        With `pread_cached` it raises ColdRead instead of waiting for the disk.
        """
        if not self.is_leader or (leader_epoch >= 0 and leader_epoch != self.leader_epoch):
            self._require_readable(only_leader, leader_epoch)
        log = self.log
        high_watermark = self.high_watermark
        stable = log.last_stable_offset(high_watermark)
        start = log.log_start_offset
        if last_fetched_epoch >= 0:
            diverging = self._diverging_epoch(offset, last_fetched_epoch)
            if diverging is not None:
                return LogReadResult(None, high_watermark, stable, start, None, diverging)
        upto = stable if isolation else high_watermark
        if start <= offset < upto and (max_bytes > 0 or at_least_one):
            records = self._read(offset, max_bytes, upto, at_least_one, pread)
        elif start <= offset <= log.log_end_offset:
            records = None
        else:
            raise errors.offset_out_of_range(self, offset)
        aborted = None
        if isolation:
            aborted = log.aborted_transactions(offset, records.next_offset) if records else []
        return LogReadResult(records, high_watermark, stable, start, aborted)

    def fetch_as_follower(
        self,
        replica_id: int,
        replica_epoch: int,
        offset: int,
        max_bytes: int,
        *,
        at_least_one: bool = True,
        leader_epoch: int = NO_EPOCH,
        last_fetched_epoch: int = NO_EPOCH,
        log_start_offset: int,
        now_ms: int,
        pread: PositionalRead = os.pread,
    ) -> LogReadResult:
        """Returns whole batches from `offset` up to the log end offset.

        The follower has everything before `offset`: its fetch is its acknowledgement. With
        `pread_cached` it raises ColdRead, after that, instead of waiting for the disk.
        """
        self.require_leader(leader_epoch)
        leader_state = self.leader_state
        if leader_state is None:
            raise errors.unknown_replica(self, replica_id, leader_epoch)
        follower = leader_state.follower_of_fetch(replica_id, replica_epoch, leader_epoch)
        log = self.log
        diverging = None
        if last_fetched_epoch >= 0:
            diverging = self._diverging_epoch(offset, last_fetched_epoch)
        if not log.log_start_offset <= offset <= log.log_end_offset and diverging is None:
            raise errors.offset_out_of_range(self, offset)
        records = None
        if diverging is None:
            leader_state.on_fetch(follower, offset, log_start_offset, replica_epoch, now_ms)
            if offset < log.log_end_offset and (max_bytes > 0 or at_least_one):
                records = self._read(offset, max_bytes, log.log_end_offset, at_least_one, pread)
        high_watermark = self.high_watermark
        stable = log.last_stable_offset(high_watermark)
        return LogReadResult(records, high_watermark, stable, log.log_start_offset, None, diverging)

    def epoch_end_offset(self, epoch: int, leader_epoch: int = NO_EPOCH) -> EpochEndOffset:
        """Returns where `epoch` ended in this log; both fields are -1 if that is unknown."""
        self.require_leader(leader_epoch)
        return self.log.epoch_end_offset(epoch)

    def require_leader(self, leader_epoch: int = NO_EPOCH) -> None:
        """Raises KafkaError unless this replica leads, in `leader_epoch` if it is not NO_EPOCH."""
        if not self.is_leader or (leader_epoch >= 0 and leader_epoch != self.leader_epoch):
            raise errors.not_leader(self, leader_epoch)

    def _require_readable(self, only_leader: bool, leader_epoch: int) -> None:
        """Raises KafkaError unless consumers may read here: from the leader, or from any replica
        (KIP-392)."""
        is_current = leader_epoch in (NO_EPOCH, self.leader_epoch)
        if only_leader or self.error_code is not None or not is_current:
            raise errors.not_leader(self, leader_epoch)

    def _diverging_epoch(self, offset: int, last_fetched_epoch: int) -> EpochEndOffset | None:
        """Returns where the reader's log diverged from this one, if it did (KIP-595)."""
        end = self.log.epoch_end_offset(last_fetched_epoch)
        if end.epoch == NO_EPOCH or offset < self.log.log_start_offset:
            raise errors.offset_out_of_range(self, offset)
        if end.epoch < last_fetched_epoch or end.end_offset < offset:
            return end
        return None

    def _read(
        self, offset: int, max_bytes: int, upto: int, at_least_one: bool, pread: PositionalRead
    ) -> LogSlice | None:
        try:
            return self.log.read(
                offset, max_bytes, upto=upto, at_least_one=at_least_one, pread=pread
            )
        except LogDirFailure as failure:
            self.host.handle_log_dir_failure(self.directory, failure)
            raise
        except CorruptLog as damage:
            # Logged once: the readers will come back to the same offset.
            if damage.message != self._reported_damage:
                self._reported_damage = damage.message
                _logger.error("%s-%d cannot be read: %s", self.topic, self.index, damage.message)
            raise

    # Deleting records

    def delete_records(self, before_offset: int) -> int:
        """Deletes the records before an offset; returns the new log start offset.

        Followers learn of it from their fetches. Once `low_watermark` is there, the records are
        gone everywhere.
        """
        self.require_leader()
        if self.config.only_compacted:
            raise KafkaError(
                ErrorCode.POLICY_VIOLATION,
                f"{self.topic}-{self.index} is compacted: its records cannot be deleted by offset. "
                "Add 'delete' to its cleanup.policy, or write tombstones.",
            )
        if before_offset == UP_TO_HIGH_WATERMARK:
            before_offset = self.high_watermark
        if not 0 <= before_offset <= self.high_watermark:
            raise errors.offset_out_of_range(self, before_offset)
        if before_offset > self.log.log_start_offset:
            self.advance_log_start_offset(before_offset)
            _logger.info(
                "%s: incremented log start offset to %d due to client delete records request",
                self.log.name,
                before_offset,
            )
        return self.log.log_start_offset

    def advance_log_start_offset(self, offset: int) -> None:
        with self.reporting_log_dir_failure():
            self.log.advance_log_start_offset(offset)
        self.high_watermark = max(self.high_watermark, offset)
        self.notify_all()

    @property
    def low_watermark(self) -> int:
        """No replica on a live broker has any record below it."""
        log_start_offset = self.log.log_start_offset
        if self.leader_state is None:
            return log_start_offset
        return self.leader_state.low_watermark(log_start_offset)

    # Leading and following

    def make_leader_or_follower(self, state: PartitionRegistration, now_ms: int) -> None:
        """Leads or follows, as the metadata now says."""
        if self.state is not None and state.partition_epoch < self.state.partition_epoch:
            return  # a response of the controller was faster than the metadata
        was_leader, old_epoch = self.is_leader, self.leader_epoch
        self.state = state
        self.leader_epoch = state.leader_epoch
        self.is_leader = state.leader == self.node_id and self.error_code is None
        self._update_is_under_min_isr()
        if self.is_leader:
            self._make_leader(
                state, now_ms, is_new=not was_leader or state.leader_epoch != old_epoch
            )
        else:
            self._make_follower()
        if (self.is_leader, self.leader_epoch) != (was_leader, old_epoch):
            self.notify_all()
        elif self.leader_state is not None and self.leader_state.has_out_of_sync_followers:
            self.purgatory.notify(self.log)  # their next fetch may bring them in sync

    def _make_leader(self, state: PartitionRegistration, now_ms: int, *, is_new: bool) -> None:
        log = self.log
        if log.latest_epoch != state.leader_epoch:
            log.assign_epoch_start_offset(state.leader_epoch, log.log_end_offset)
        if state.replicas == (self.node_id,):
            self.leader_state = None
            self.high_watermark = log.log_end_offset
            self.purgatory.notify(self)
            return
        leader_state = self.leader_state
        if leader_state is None or is_new:
            # A broker that leads again may have missed that another one led meanwhile: followers
            # may have truncated what they fetched in the former epoch.
            is_new = True
            leader_state = self.leader_state = LeaderState(self, state)
        leader_state.update(state)
        if is_new:
            leader_state.begin_epoch(log.log_end_offset, now_ms)
        leader_state.maybe_increment_high_watermark(now_ms)

    def _make_follower(self) -> None:
        self.leader_state = None
        self.flush_before_ack_offset = 0

    def apply_config(self, config: TopicConfig, now_ms: int) -> None:
        """Uses new settings of the topic from now on."""
        self.config = config
        self.log.config = config.log
        self._update_is_under_min_isr()
        if self.leader_state is not None:
            self.leader_state.maybe_increment_high_watermark(now_ms)

    def replace_log(self, log: Log) -> None:
        """Continues with an equal log in another directory."""
        old, self.log = self.log, log
        self.purgatory.notify(old)

    def stop(self, error_code: ErrorCode) -> None:
        """Responds to every request with an error from now on, also to those that wait."""
        self.error_code = error_code
        self.is_leader = False
        self._make_follower()
        self.notify_all()

    def on_flushed(self) -> None:
        """The log is on disk: acknowledgements that waited for it can be sent."""
        self.purgatory.notify(self)

    def notify_all(self) -> None:
        """Makes every request that waits for this partition look at it again."""
        self.purgatory.notify(self)
        self.purgatory.notify(self.log)

    @contextmanager
    def reporting_log_dir_failure(self) -> Iterator[None]:
        """Reports a failure of the disk to the host, and raises it."""
        try:
            yield
        except LogDirFailure as failure:
            self.host.handle_log_dir_failure(self.directory, failure)
            raise

    def _update_is_under_min_isr(self) -> None:
        state = self.state
        # KIP-966: a partition with fewer replicas than min.insync.replicas needs them all.
        self.is_under_min_isr = state is not None and len(state.isr) < min(
            self.config.min_insync_replicas, len(state.replicas)
        )

    # The in-sync replicas

    @property
    def has_stale_high_watermark(self) -> bool:
        """Whether it does not know yet everything that was committed under former leaders."""
        leader_state = self.leader_state
        return leader_state is not None and leader_state.epoch_start_offset > self.high_watermark

    def is_in_sync(self, replica_id: int) -> bool:
        """Returns whether a follower is in sync, or will be if the controller agrees."""
        return self.leader_state is not None and replica_id in self.leader_state.maximal_isr

    def in_sync_followers(self) -> list[FollowerState]:
        """Returns the followers that are in sync according to the controller."""
        if self.leader_state is None or self.state is None:
            return []
        isr = self.state.isr
        return [
            follower
            for follower in self.leader_state.followers.values()
            if follower.broker_id in isr
        ]


def _own_batch(records: memoryview, rules: ProduceRules) -> ValidBatch:
    """A batch that this broker built itself: only its size is checked."""
    if len(records) > rules.max_message_bytes:
        raise InvalidRecords(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"The batch takes {len(records)} bytes; max.message.bytes allows "
            f"{rules.max_message_bytes}.",
        )
    header = read_header(records)
    return ValidBatch(header, records, header.max_timestamp)
