"""What the leader of a partition knows of its followers, and who of them is in sync.

A follower's fetch says how far it is: it has all before the offset it asks for. What every
replica in sync has, counts. Who is in sync is for the controller to say, at the leader's proposal
(AlterPartition); while a proposal is under way the leader waits for whoever may be in sync, by the
old word or the new one (KIP-497), so that nothing counts that the next leader might not have.
"""

from collections.abc import Callable
from typing import NamedTuple

from barnabas.metadata.states import BrokerRegistration, PartitionRegistration

UNKNOWN = -1
NO_BROKER_EPOCH = -1
"""The broker epoch of a follower that speaks a version without it."""

NEVER_FETCHED = -2
"""The broker epoch of a follower that this leader has not heard of."""

Brokers = Callable[[int], BrokerRegistration | None]
"""The brokers of the cluster by their ids."""


class Follower:
    """How far one follower is, by its own fetches."""

    __slots__ = (
        "broker_epoch",
        "broker_id",
        "caught_up_ms",
        "end_offset",
        "fetched_end",
        "fetched_ms",
        "start_offset",
    )

    def __init__(self, broker_id: int) -> None:
        self.broker_id = broker_id
        self.broker_epoch = NEVER_FETCHED
        self.start_offset = UNKNOWN
        self.end_offset = UNKNOWN
        self.caught_up_ms = 0
        """When it last had everything there was at the time."""
        self.fetched_ms = 0
        self.fetched_end = UNKNOWN  # where the leader's log ended then

    def fetched(
        self, offset: int, start_offset: int, broker_epoch: int, leader_end: int, now_ms: int
    ) -> None:
        """It asked for `offset`; what it asked for the last time, it has by now."""
        if now_ms < self.fetched_ms:  # the clock was set back
            self.caught_up_ms = min(self.caught_up_ms, now_ms)
            self.fetched_ms = now_ms
        if offset >= leader_end:
            self.caught_up_ms = max(self.caught_up_ms, now_ms)
        elif offset >= self.fetched_end:
            self.caught_up_ms = max(self.caught_up_ms, self.fetched_ms)
        self.end_offset = offset
        self.start_offset = start_offset
        self.broker_epoch = broker_epoch
        self.fetched_ms = now_ms
        self.fetched_end = leader_end

    def is_caught_up(self, leader_end: int, now_ms: int, lag_max_ms: int) -> bool:
        # A clock that was set back must not prolong the time of one who says nothing any more.
        return self.end_offset == leader_end or abs(now_ms - self.caught_up_ms) <= lag_max_ms


class Proposal(NamedTuple):
    """Who shall be in sync, with broker epochs (KIP-903), and on which state that builds."""

    isr: tuple[tuple[int, int], ...]
    leader_epoch: int
    partition_epoch: int
    joining: int | None = None
    """The follower that is new among them."""


class Leadership:
    """One broker's time as the leader of a partition that others have replicas of."""

    __slots__ = (
        "_brokers",
        "_lag_max_ms",
        "_node_id",
        "_state",
        "epoch_start",
        "followers",
        "in_sync",
        "proposal",
    )

    def __init__(self, node_id: int, brokers: Brokers, lag_max_ms: int) -> None:
        self._node_id = node_id
        self._brokers = brokers
        self._lag_max_ms = lag_max_ms
        self._state: PartitionRegistration
        self.epoch_start = 0
        """Where the log ended when the present epoch began."""
        self.followers: dict[int, Follower] = {}
        self.in_sync: frozenset[int] = frozenset()
        """Those who may be in sync, as far as the leader knows."""
        self.proposal: Proposal | None = None

    def adopt(self, state: PartitionRegistration) -> None:
        """The controller's newest word on who holds the partition and who is in sync."""
        known = self.followers
        self._state = state
        self.followers = {
            broker_id: known.get(broker_id) or Follower(broker_id)
            for broker_id in state.replicas
            if broker_id != self._node_id
        }
        if self.proposal is not None and state.partition_epoch > self.proposal.partition_epoch:
            self.proposal = None
        self._count_in_sync()

    def begin_epoch(self, end_offset: int, now_ms: int) -> None:
        """The controller chose this leader, anew or again: time is counted from now on."""
        self.epoch_start = end_offset
        for follower in self.followers.values():
            is_in_sync = follower.broker_id in self._state.isr
            follower.caught_up_ms = follower.fetched_ms = now_ms if is_in_sync else 0
            follower.fetched_end = end_offset

    @property
    def has_outsiders(self) -> bool:
        """Whether some follower is not in sync."""
        return len(self.in_sync) <= len(self.followers)

    # The followers' progress

    def grew(self, old_end: int, now_ms: int) -> None:
        """Something was appended: who had everything, had it until now."""
        for follower in self.followers.values():
            if follower.end_offset == old_end:
                follower.caught_up_ms = now_ms

    def is_stale(self, broker_id: int, broker_epoch: int) -> bool:
        """Whether a fetch is of an earlier life of its broker (KIP-903)."""
        broker = self._brokers(broker_id)
        return broker is not None and NO_BROKER_EPOCH < broker_epoch < broker.epoch

    def replicated_end(self, end_offset: int, now_ms: int) -> int:
        """Up to where everybody has the log, of those to wait for.

        That includes a follower that is about to join: it would never be as far as the high
        watermark if that ran ahead of it with every append.
        """
        for follower in self.followers.values():
            if follower.end_offset < end_offset and (
                follower.broker_id in self.in_sync
                or (
                    follower.is_caught_up(end_offset, now_ms, self._lag_max_ms)
                    and self._is_eligible(follower)
                )
            ):
                end_offset = follower.end_offset
        return end_offset

    def low_watermark(self, start_offset: int) -> int:
        """Below it, no replica on a broker that lives has anything any more."""
        for follower in self.followers.values():
            broker = self._brokers(follower.broker_id)
            if broker is not None and not broker.fenced:
                start_offset = min(start_offset, follower.start_offset)
        return start_offset

    # Who is in sync

    def propose_to_add(self, follower: Follower, high_watermark: int) -> Proposal | None:
        """Take a follower in that has what counts, and whatever counted under former leaders."""
        if (
            self.proposal is not None
            or follower.broker_id in self.in_sync
            or follower.end_offset < high_watermark
            or follower.end_offset < self.epoch_start
            or not self._is_eligible(follower)
        ):
            return None
        return self._propose((*self._state.isr, follower.broker_id), follower.broker_id)

    def propose_to_drop(self, end_offset: int, now_ms: int) -> Proposal | None:
        """Leave out who has not caught up for `replica.lag.time.max.ms`."""
        if self.proposal is not None:
            return None
        isr = self._state.isr
        kept = tuple(
            broker_id
            for broker_id in isr
            if broker_id == self._node_id
            or (
                broker_id in self.followers
                and self.followers[broker_id].is_caught_up(end_offset, now_ms, self._lag_max_ms)
            )
        )
        return self._propose(kept) if len(kept) < len(isr) else None

    def take_back(self) -> None:
        """The controller did not do as proposed, and never will."""
        self.proposal = None
        self._count_in_sync()

    def _propose(self, isr: tuple[int, ...], joining: int | None = None) -> Proposal:
        self.proposal = Proposal(
            tuple((broker_id, self._epoch_of(broker_id)) for broker_id in isr),
            self._state.leader_epoch,
            self._state.partition_epoch,
            joining,
        )
        self._count_in_sync()
        return self.proposal

    def _count_in_sync(self) -> None:
        """Nobody leaves before the controller has said so; who joins is waited for at once."""
        joining = self.proposal.joining if self.proposal is not None else None
        isr = self._state.isr
        self.in_sync = frozenset(isr if joining is None else (*isr, joining))

    def _epoch_of(self, broker_id: int) -> int:
        if broker_id == self._node_id:
            broker = self._brokers(broker_id)
            return broker.epoch if broker is not None else NO_BROKER_EPOCH
        return max(self.followers[broker_id].broker_epoch, NO_BROKER_EPOCH)

    def _is_eligible(self, follower: Follower) -> bool:
        broker = self._brokers(follower.broker_id)
        return (
            broker is not None
            and broker.active
            and follower.broker_epoch in (NO_BROKER_EPOCH, broker.epoch)
        )
