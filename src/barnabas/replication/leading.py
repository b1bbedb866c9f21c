"""A replica in its role: it leads, and then knows how far the others are, or it does not.

A record counts once the high watermark has passed it: for the only replica that is the end of the
log, and followers can only hold it back.
"""

from dataclasses import replace
from typing import NamedTuple

from barnabas.log import EpochEnd, Log, Slice
from barnabas.metadata.states import PartitionRegistration
from barnabas.replication import errors
from barnabas.replication.leadership import Follower, Leadership, Proposal
from barnabas.replication.ports import Caretaker, Waiting
from barnabas.replication.replica import NO_EPOCH, Replica
from barnabas.replication.topic_config import TopicRules
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.alter_partition import ResponsePartitionData

_TOLD_BY_METADATA = frozenset(
    (
        ErrorCode.NONE,  # in another leader's epoch
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.INVALID_UPDATE_VERSION,
        ErrorCode.NEW_LEADER_ELECTED,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    )
)
"""The controller's answers that say that the metadata has moved on: it will tell the rest."""


class FetchedPartition(NamedTuple):
    """What a fetch of one partition found; `diverging` is set if the reader must truncate."""

    records: Slice | None
    high_watermark: int
    last_stable_offset: int
    start_offset: int
    aborted: list[tuple[int, int]] | None = None
    diverging: EpochEnd | None = None


class LeadingReplica(Replica):
    """A replica that leads if the metadata says so, with the followers it then has."""

    __slots__ = ("_alone", "_flush_wanted", "_leadership", "_short_of_replicas")

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
        self._alone = False  # leading, and the only replica there is
        self._leadership: Leadership | None = None  # leading, with other replicas
        self._short_of_replicas = False
        self._flush_wanted = 0  # nothing beyond is acknowledged before the disk has what is below

    def require_leader(self, leader_epoch: int = NO_EPOCH) -> None:
        """Refuse unless this replica leads, in the epoch the caller believes if it names one."""
        if not self.is_leader or (leader_epoch >= 0 and leader_epoch != self.leader_epoch):
            raise errors.not_served(self, leader_epoch)

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
        start_offset: int,
        now_ms: int,
    ) -> FetchedPartition:
        """Whole batches from `offset` on, up to the log's end; all before it the follower has."""
        self.require_leader(leader_epoch)
        follower = self._follower(replica_id, replica_epoch, leader_epoch)
        log = self.log
        diverging = None
        if last_fetched_epoch >= 0:
            diverging = self._divergence(offset, last_fetched_epoch)
        if not log.start_offset <= offset <= log.end_offset and diverging is None:
            raise errors.out_of_range(self, offset)
        records = None
        if diverging is None:
            self._note(follower, offset, start_offset, replica_epoch, now_ms)
            if offset < log.end_offset and (max_bytes > 0 or at_least_one):
                records = self._read(offset, max_bytes, log.end_offset, at_least_one)
        high_watermark = self.high_watermark
        stable = log.last_stable_offset(high_watermark)
        return FetchedPartition(records, high_watermark, stable, log.start_offset, None, diverging)

    def take(self, state: PartitionRegistration, now_ms: int) -> None:
        """Lead or follow, as the metadata now has it."""
        if self.state is not None and state.partition_epoch < self.state.partition_epoch:
            return  # an answer of the controller was faster than the metadata
        was_leader, old_epoch = self.is_leader, self.leader_epoch
        self.state = state
        self.leader_epoch = state.leader_epoch
        self.is_leader = state.leader == self.node_id and self.failure is None
        self._count_replicas()
        if self.is_leader:
            self._lead(state, now_ms, is_new=not was_leader or state.leader_epoch != old_epoch)
        else:
            self._resign()
        if (self.is_leader, self.leader_epoch) != (was_leader, old_epoch):
            self.let_all_look()
        elif self._leadership is not None and self._leadership.has_outsiders:
            self._waiting.poke(self.log)  # they may have what it takes to be in sync

    # Who is in sync

    @property
    def proposal(self) -> Proposal | None:
        """What the controller has not decided yet of who is in sync."""
        return self._leadership.proposal if self._leadership is not None else None

    @property
    def has_followers(self) -> bool:
        """Whether others follow this replica."""
        return self._leadership is not None

    def has_in_sync(self, replica_id: int) -> bool:
        """Whether a follower is in sync, or will be if the controller agrees."""
        return self._leadership is not None and replica_id in self._leadership.in_sync

    def in_sync_followers(self) -> list[Follower]:
        """The followers that the controller has in sync."""
        if self._leadership is None or self.state is None:
            return []
        isr = self.state.isr
        return [each for each in self._leadership.followers.values() if each.broker_id in isr]

    @property
    def is_catching_up(self) -> bool:
        """Whether it cannot tell yet how much counted under former leaders."""
        return self._leadership is not None and self._leadership.epoch_start > self.high_watermark

    @property
    def low_watermark(self) -> int:
        """Below it, nobody whose broker lives has any record left."""
        start_offset = self.log.start_offset
        leadership = self._leadership
        return start_offset if leadership is None else leadership.low_watermark(start_offset)

    def drop_laggards(self, now_ms: int) -> None:
        """Propose to go on without the followers that have not caught up for too long."""
        leadership = self._leadership
        if leadership is not None and leadership.propose_to_drop(self.log.end_offset, now_ms):
            self._caretaker.propose(self)
        self._advance(now_ms)  # who was about to join may have lagged for too long, too

    def isr_answered(self, proposal: Proposal, outcome: ResponsePartitionData, now_ms: int) -> bool:
        """The controller's word on a proposal; whether to ask once more."""
        leadership, state = self._leadership, self.state
        if leadership is None or state is None or leadership.proposal is not proposal:
            return False  # the metadata has overtaken the answer
        match outcome.error_code:
            case ErrorCode.NONE if outcome.leader_epoch == self.leader_epoch:
                leadership.take_back()
                isr, partition_epoch = tuple(outcome.isr), outcome.partition_epoch
                self.take(replace(state, isr=isr, partition_epoch=partition_epoch), now_ms)
            case ErrorCode.OPERATION_NOT_ATTEMPTED | ErrorCode.INELIGIBLE_REPLICA:
                leadership.take_back()
                self._advance(now_ms)
            case code:
                return code not in _TOLD_BY_METADATA
        return False

    def obey(self, rules: TopicRules, now_ms: int) -> None:
        """Work by new settings from now on."""
        self.rules = rules
        self.log.config = rules.log
        self._count_replicas()
        self._advance(now_ms)

    def move_to(self, log: Log) -> None:
        """Go on with an equal log in another directory."""
        old, self.log = self.log, log
        self._waiting.poke(old)

    def stop(self, failure: ErrorCode) -> None:
        """Answer everything with `failure` from now on, and let go of who waits."""
        self.failure = failure
        self.is_leader = False
        self._resign()
        self.let_all_look()

    def _lead(self, state: PartitionRegistration, now_ms: int, *, is_new: bool) -> None:
        log = self.log
        if log.latest_epoch != state.leader_epoch:
            log.start_epoch(state.leader_epoch, log.end_offset)
        self._alone = state.replicas == (self.node_id,)
        if self._alone:
            self._leadership = None
            self.high_watermark = log.end_offset
            self._waiting.poke(self)
            return
        leadership = self._leadership
        if leadership is None:
            is_new = True
            leadership = self._leadership = Leadership(
                self.node_id, self._caretaker.broker, self._caretaker.replica_lag_max_ms
            )
        leadership.adopt(state)
        if is_new:
            leadership.begin_epoch(log.end_offset, now_ms)
        self._advance(now_ms)

    def _resign(self) -> None:
        self._alone = False
        self._leadership = None
        self._flush_wanted = 0

    def _count_replicas(self) -> None:
        state = self.state
        # KIP-966: a partition with fewer replicas than min.insync.replicas needs them all.
        self._short_of_replicas = state is not None and len(state.isr) < min(
            self.rules.min_insync_replicas, len(state.replicas)
        )

    def _follower(self, replica_id: int, replica_epoch: int, leader_epoch: int) -> Follower:
        """Who fetches, if it may."""
        leadership = self._leadership
        follower = leadership.followers.get(replica_id) if leadership is not None else None
        if leadership is None or follower is None:
            raise errors.no_replica(self, replica_id, leader_epoch)
        if leadership.is_stale(replica_id, replica_epoch):
            raise errors.stale_replica(self, replica_id, replica_epoch)
        return follower

    def _note(
        self, follower: Follower, offset: int, start_offset: int, epoch: int, now_ms: int
    ) -> None:
        """A follower is this far: more may count, and it may be in sync."""
        leadership = self._leadership
        assert leadership is not None
        old_start = follower.start_offset
        follower.fetched(offset, start_offset, epoch, self.log.end_offset, now_ms)
        if leadership.propose_to_add(follower, self.high_watermark):
            self._caretaker.propose(self)
        self._advance(now_ms)
        if start_offset > old_start:
            self._waiting.poke(self)  # what is deleted here may be deleted everywhere now

    def _grew(self, first_offset: int, size_bytes: int, now_ms: int) -> None:
        leadership = self._leadership
        assert leadership is not None
        leadership.grew(first_offset, now_ms)
        if len(leadership.in_sync) == 1:
            self._advance(now_ms)
        self._waiting.poke(self.log, size_bytes)

    def _advance(self, now_ms: int) -> None:
        """Let count what everybody has, unless too few are in sync to keep it (KIP-966)."""
        leadership = self._leadership
        if leadership is None or self._short_of_replicas:
            return
        high_watermark = leadership.replicated_end(self.log.end_offset, now_ms)
        if high_watermark > self.high_watermark:
            self.high_watermark = high_watermark
            self._waiting.poke(self)

    def _divergence(self, offset: int, last_fetched_epoch: int) -> EpochEnd | None:
        """Where the reader's log left ours, if it did (KIP-595)."""
        end = self.log.epoch_end(last_fetched_epoch)
        if end.epoch == NO_EPOCH or offset < self.log.start_offset:
            raise errors.out_of_range(self, offset)
        if end.epoch < last_fetched_epoch or end.end_offset < offset:
            return end
        return None
