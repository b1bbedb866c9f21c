"""The state of a partition's leader: its followers, the in-sync replicas, the high watermark.

A follower's fetch says how far it is: it has everything before its fetch offset. Records that every
in-sync replica has are committed. The controller decides which replicas are in sync, when the
leader submits a change (AlterPartition). While a change is pending the leader waits for every
replica that may be in sync, by the old ISR or the new one (KIP-497), so that nothing is committed
that the next leader might not have.
"""

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from barnabas.metadata.states import PartitionRegistration
from barnabas.replication import errors
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.alter_partition import ResponsePartitionData

if TYPE_CHECKING:
    from barnabas.replication.partition import Partition

UNKNOWN_OFFSET = -1
NO_BROKER_EPOCH = -1
"""The broker epoch of a follower that speaks a version without it."""

NEVER_FETCHED = -2
"""The broker epoch of a follower that has not fetched from this leader."""

_SUPERSEDED_BY_METADATA = frozenset(
    (
        ErrorCode.NONE,  # in another leader epoch
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.INVALID_UPDATE_VERSION,
        ErrorCode.NEW_LEADER_ELECTED,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    )
)
"""Responses of the controller that mean that the metadata has changed and will arrive."""


class FollowerState:
    """The progress of one follower, known from its fetches."""

    __slots__ = (
        "broker_epoch",
        "broker_id",
        "caught_up_ms",
        "fetched_ms",
        "leader_end_offset",
        "log_end_offset",
        "log_start_offset",
    )

    def __init__(self, broker_id: int) -> None:
        self.broker_id = broker_id
        self.broker_epoch = NEVER_FETCHED
        self.log_start_offset = UNKNOWN_OFFSET
        self.log_end_offset = UNKNOWN_OFFSET
        self.caught_up_ms = 0
        """When it last had everything that the leader had at the time."""
        self.fetched_ms = 0
        self.leader_end_offset = UNKNOWN_OFFSET  # at the time of its last fetch

    def on_fetch(
        self,
        offset: int,
        log_start_offset: int,
        broker_epoch: int,
        leader_end_offset: int,
        now_ms: int,
    ) -> None:
        """The follower fetches from `offset`: it has received what it fetched the last time."""
        if now_ms < self.fetched_ms:  # the clock was set back
            self.caught_up_ms = min(self.caught_up_ms, now_ms)
            self.fetched_ms = now_ms
        if offset >= leader_end_offset:
            self.caught_up_ms = max(self.caught_up_ms, now_ms)
        elif offset >= self.leader_end_offset:
            self.caught_up_ms = max(self.caught_up_ms, self.fetched_ms)
        self.log_end_offset = offset
        self.log_start_offset = log_start_offset
        self.broker_epoch = broker_epoch
        self.fetched_ms = now_ms
        self.leader_end_offset = leader_end_offset

    def is_caught_up(self, leader_end_offset: int, now_ms: int, lag_max_ms: int) -> bool:
        # A clock that was set back must not give more time to a follower that has stopped.
        return (
            self.log_end_offset == leader_end_offset
            or abs(now_ms - self.caught_up_ms) <= lag_max_ms
        )


class PendingIsrChange(NamedTuple):
    """An ISR that was submitted, with broker epochs (KIP-903), and the state it is based on."""

    isr: tuple[tuple[int, int], ...]
    leader_epoch: int
    partition_epoch: int
    joining: int | None = None
    """The follower that the change adds."""


class LeaderState:
    """The followers of a partition that this broker leads, and their part in its high watermark."""

    __slots__ = (
        "_partition",
        "_state",
        "epoch_start_offset",
        "followers",
        "maximal_isr",
        "pending_isr_change",
    )

    def __init__(self, partition: "Partition", state: PartitionRegistration) -> None:
        self._partition = partition
        self._state = state
        self.epoch_start_offset = 0
        """The log end offset when the current leader epoch began."""
        self.followers: dict[int, FollowerState] = {}
        self.maximal_isr: frozenset[int] = frozenset()
        """The replicas that may be in sync: the ISR and the follower that a pending change adds."""
        self.pending_isr_change: PendingIsrChange | None = None

    def update(self, state: PartitionRegistration) -> None:
        """Applies the newest replicas and ISR of the metadata."""
        existing = self.followers
        self._state = state
        self.followers = {
            broker_id: existing.get(broker_id) or FollowerState(broker_id)
            for broker_id in state.replicas
            if broker_id != self._partition.node_id
        }
        pending = self.pending_isr_change
        if pending is not None and state.partition_epoch > pending.partition_epoch:
            self.pending_isr_change = None
        self._update_maximal_isr()

    def begin_epoch(self, log_end_offset: int, now_ms: int) -> None:
        """The controller elected this leader: the lag of followers is measured from now on."""
        self.epoch_start_offset = log_end_offset
        for follower in self.followers.values():
            is_in_sync = follower.broker_id in self._state.isr
            follower.caught_up_ms = follower.fetched_ms = now_ms if is_in_sync else 0
            follower.leader_end_offset = log_end_offset

    @property
    def has_out_of_sync_followers(self) -> bool:
        return len(self.maximal_isr) <= len(self.followers)

    # The progress of followers

    def on_append(self, first_offset: int, size_bytes: int, now_ms: int) -> None:
        """A batch was appended: followers that had everything were caught up until now."""
        for follower in self.followers.values():
            if follower.log_end_offset == first_offset:
                follower.caught_up_ms = now_ms
        if len(self.maximal_isr) == 1:
            self.maybe_increment_high_watermark(now_ms)
        partition = self._partition
        partition.purgatory.notify(partition.log, size_bytes)

    def follower_of_fetch(
        self, replica_id: int, replica_epoch: int, leader_epoch: int
    ) -> FollowerState:
        """Returns the follower that fetches. Raises KafkaError if it may not."""
        follower = self.followers.get(replica_id)
        if follower is None:
            raise errors.unknown_replica(self._partition, replica_id, leader_epoch)
        broker = self._partition.host.broker(replica_id)
        # KIP-903: a fetch that its broker sent before it registered again.
        if broker is not None and NO_BROKER_EPOCH < replica_epoch < broker.epoch:
            raise errors.stale_broker_epoch(self._partition, replica_id, replica_epoch)
        return follower

    def on_fetch(
        self,
        follower: FollowerState,
        offset: int,
        log_start_offset: int,
        broker_epoch: int,
        now_ms: int,
    ) -> None:
        """A follower has everything before `offset`: more may be committed, and the follower may
        be in sync."""
        partition = self._partition
        old_log_start_offset = follower.log_start_offset
        follower.on_fetch(
            offset, log_start_offset, broker_epoch, partition.log.log_end_offset, now_ms
        )
        if self._may_join(follower, partition.high_watermark):
            self._submit((*self._state.isr, follower.broker_id), joining=follower.broker_id)
        self.maybe_increment_high_watermark(now_ms)
        if log_start_offset > old_log_start_offset:
            partition.purgatory.notify(partition)  # DeleteRecords may be complete now

    def maybe_increment_high_watermark(self, now_ms: int) -> None:
        """Commits what every replica has, unless too few are in sync to keep it (KIP-966)."""
        partition = self._partition
        if partition.is_under_min_isr:
            return
        high_watermark = self._replicated_end_offset(partition.log.log_end_offset, now_ms)
        if high_watermark > partition.high_watermark:
            partition.high_watermark = high_watermark
            partition.purgatory.notify(partition)

    def _replicated_end_offset(self, end_offset: int, now_ms: int) -> int:
        """Returns the offset up to which every relevant replica has the log.

        A follower that is about to join is relevant too: it would never reach the high watermark if
        that ran ahead of it with every append.
        """
        lag_max_ms = self._partition.host.replica_lag_max_ms
        for follower in self.followers.values():
            if follower.log_end_offset < end_offset and (
                follower.broker_id in self.maximal_isr
                or (
                    follower.is_caught_up(end_offset, now_ms, lag_max_ms)
                    and self._is_eligible(follower)
                )
            ):
                end_offset = follower.log_end_offset
        return end_offset

    def low_watermark(self, log_start_offset: int) -> int:
        """Returns the smallest log start offset of the replicas on live brokers."""
        for follower in self.followers.values():
            broker = self._partition.host.broker(follower.broker_id)
            if broker is not None and not broker.fenced:
                log_start_offset = min(log_start_offset, follower.log_start_offset)
        return log_start_offset

    # Changes of the ISR

    def shrink_isr(self, now_ms: int) -> None:
        """Submits an ISR without the followers that lag for `replica.lag.time.max.ms`."""
        if self.pending_isr_change is None:
            end_offset = self._partition.log.log_end_offset
            lag_max_ms = self._partition.host.replica_lag_max_ms
            isr = self._state.isr
            kept = tuple(
                broker_id
                for broker_id in isr
                if broker_id == self._partition.node_id
                or (
                    broker_id in self.followers
                    and self.followers[broker_id].is_caught_up(end_offset, now_ms, lag_max_ms)
                )
            )
            if len(kept) < len(isr):
                self._submit(kept)
        # A follower that was about to join may have lagged for too long, too.
        self.maybe_increment_high_watermark(now_ms)

    def on_alter_partition_response(
        self, change: PendingIsrChange, response: ResponsePartitionData, now_ms: int
    ) -> bool:
        """Applies the controller's decision on a change; returns whether to submit it again."""
        if self.pending_isr_change is not change:
            return False  # the metadata was faster than the response
        match response.error_code:
            case ErrorCode.NONE if response.leader_epoch == self._state.leader_epoch:
                self._clear_pending_change()
                self._partition.make_leader_or_follower(
                    replace(
                        self._state,
                        isr=tuple(response.isr),
                        partition_epoch=response.partition_epoch,
                    ),
                    now_ms,
                )
            case ErrorCode.OPERATION_NOT_ATTEMPTED | ErrorCode.INELIGIBLE_REPLICA:
                self._clear_pending_change()
                self.maybe_increment_high_watermark(now_ms)
            case code:
                return code not in _SUPERSEDED_BY_METADATA
        return False

    def _may_join(self, follower: FollowerState, high_watermark: int) -> bool:
        """Returns whether a follower has everything that is or may be committed, also under former
        leaders."""
        return (
            self.pending_isr_change is None
            and follower.broker_id not in self.maximal_isr
            and follower.log_end_offset >= high_watermark
            and follower.log_end_offset >= self.epoch_start_offset
            and self._is_eligible(follower)
        )

    def _submit(self, isr: tuple[int, ...], joining: int | None = None) -> None:
        self.pending_isr_change = PendingIsrChange(
            tuple((broker_id, self._broker_epoch(broker_id)) for broker_id in isr),
            self._state.leader_epoch,
            self._state.partition_epoch,
            joining,
        )
        self._update_maximal_isr()
        self._partition.host.submit_isr_change(self._partition)

    def _clear_pending_change(self) -> None:
        self.pending_isr_change = None
        self._update_maximal_isr()

    def _update_maximal_isr(self) -> None:
        """A follower leaves once the controller has said so; one that joins counts at once."""
        joining = self.pending_isr_change.joining if self.pending_isr_change is not None else None
        isr = self._state.isr
        self.maximal_isr = frozenset(isr if joining is None else (*isr, joining))

    def _broker_epoch(self, broker_id: int) -> int:
        if broker_id == self._partition.node_id:
            broker = self._partition.host.broker(broker_id)
            return broker.epoch if broker is not None else NO_BROKER_EPOCH
        return max(self.followers[broker_id].broker_epoch, NO_BROKER_EPOCH)

    def _is_eligible(self, follower: FollowerState) -> bool:
        broker = self._partition.host.broker(follower.broker_id)
        return (
            broker is not None
            and broker.active
            and follower.broker_epoch in (NO_BROKER_EPOCH, broker.epoch)
        )
