"""What only a leader does: it commits records, and resigns when no majority fetches from it.

It also finds where the log of a fetcher diverges from its own.
"""

from typing import TYPE_CHECKING, Protocol

from barnabas.log import EpochEndOffset
from barnabas.raft.messages import FetchOutcome
from barnabas.raft.roles import Leader
from barnabas.raft.snapshots import SnapshotId
from barnabas.raft.voters import ReplicaKey
from barnabas.wire.errors import ErrorCode

if TYPE_CHECKING:
    from barnabas.raft.raft_node import RaftNode


class QuorumLeadership:
    """Handles the fetches of other replicas, and derives the high watermark from them."""

    __slots__ = ("_node",)

    def __init__(self, node: "RaftNode") -> None:
        self._node = node

    def on_fetch_request(
        self, replica: ReplicaKey, epoch: int, offset: int, last_fetched_epoch: int, now_ms: int
    ) -> FetchOutcome:
        """Handles a fetch from `offset`, up to which the log of `replica` is durable.

        A consumer has a negative id: it may fetch, but its progress is not recorded.
        """
        node = self._node
        if offset < 0 or not 0 <= last_fetched_epoch <= epoch:
            return FetchOutcome(ErrorCode.INVALID_REQUEST)
        error = self.leader_error(epoch)
        if not isinstance(node.role, Leader):
            return FetchOutcome(error)
        if replica.node_id == node.key.node_id:
            return FetchOutcome(ErrorCode.UNKNOWN_SERVER_ERROR)
        if error is not ErrorCode.NONE:
            return FetchOutcome(error)
        outcome = check_position(node.log, offset, last_fetched_epoch)
        if outcome.has_records and replica.node_id >= 0:
            progress = node.role.progress.get_or_add(replica, now_ms)
            progress.on_fetch(offset, node.log.end_offset, now_ms)
            self._on_contact(node.role, replica, now_ms)
            self.advance_high_watermark(node.role, now_ms)
        return outcome

    def on_fetch_snapshot_request(self, replica: ReplicaKey, epoch: int, now_ms: int) -> ErrorCode:
        error = self.leader_error(epoch)
        if error is ErrorCode.NONE and isinstance(self._node.role, Leader):
            self._on_contact(self._node.role, replica, now_ms)
        return error

    def leader_error(self, epoch: int) -> ErrorCode:
        """Returns the error for a request to the leader of `epoch`; NONE if this node is it."""
        if epoch < self._node.epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        if epoch > self._node.epoch:
            return ErrorCode.UNKNOWN_LEADER_EPOCH
        return ErrorCode.NONE if self._node.is_leader else ErrorCode.NOT_LEADER_OR_FOLLOWER

    def resign(self, now_ms: int) -> None:
        """Resigns and announces it to the other voters. Has no effect unless this node leads."""
        if isinstance(self._node.role, Leader):
            self._node.become_resigned(self._node.role, now_ms)

    def on_voters_changed(self, leader: Leader, now_ms: int) -> None:
        others = self._node.other_voter_ids()
        leader.unacknowledged = (leader.unacknowledged | others) & others
        leader.fetched_voters &= others
        leader.progress.update_voters(self._node.voters)
        # A sole voter has no check-quorum timeout; voters that join it have had no time to fetch.
        resign_at_ms = now_ms + self._node.check_quorum_timeout_ms()
        leader.resign_at_ms = max(leader.resign_at_ms, resign_at_ms)
        self.advance_high_watermark(leader, now_ms)

    def announce_again(self, leader: Leader, now_ms: int) -> None:
        """Announces the epoch again to voters that have not fetched for half a fetch timeout."""
        period_ms = self._node.timeouts.fetch_ms // 2
        leader.announce_at_ms = now_ms + period_ms
        for replica in leader.progress.voters_progress():
            is_other = replica.key.node_id != self._node.key.node_id
            if replica.last_fetch_ms <= now_ms - period_ms and is_other:
                leader.unacknowledged.add(replica.key.node_id)

    def _on_contact(self, leader: Leader, replica: ReplicaKey, now_ms: int) -> None:
        """Check-quorum: defers the resignation once a majority has fetched again."""
        node = self._node
        if not node.voters.includes(replica):
            return
        leader.unacknowledged.discard(replica.node_id)
        leader.fetched_voters.add(replica.node_id)
        # A leader that was removed from the voters is not part of the majority (KIP-853).
        in_contact = leader.fetched_voters | ({node.key.node_id} if node.is_voter else set())
        if node.voters.is_majority(in_contact):
            leader.fetched_voters.clear()
            leader.resign_at_ms = now_ms + node.check_quorum_timeout_ms()

    def advance_high_watermark(self, leader: Leader, now_ms: int) -> None:
        """Commits what a majority has on disk, once that includes a record of this epoch.

        Records of earlier leaders are committed together with that record, never before it.
        """
        node = self._node
        if node.is_voter:
            progress = leader.progress.get_or_add(node.key, now_ms)
            progress.end_offset = node.durable_end_offset
        majority_end_offset = leader.progress.majority_end_offset()
        if majority_end_offset > max(leader.start_offset, leader.high_watermark):
            leader.high_watermark = majority_end_offset
            node.raise_high_watermark(majority_end_offset)
        if not node.is_voter and leader.high_watermark > node.voters_offset:
            # The removal of this node from the voters is committed.
            node.become_resigned(leader, now_ms)


class LogView(Protocol):
    """A replica's log, including the records that a snapshot replaces."""

    @property
    def start_offset(self) -> int: ...

    @property
    def end_offset(self) -> int: ...

    @property
    def last_epoch(self) -> int:
        """The epoch of the last record; 0 if the log never had one."""

    @property
    def oldest_snapshot(self) -> SnapshotId | None: ...

    @property
    def newest_snapshot(self) -> SnapshotId | None: ...

    def epoch_end(self, epoch: int) -> EpochEndOffset:
        """Returns the largest epoch up to `epoch` that has records, and its end offset."""


def check_position(log: LogView, offset: int, last_fetched_epoch: int) -> FetchOutcome:
    """Returns the outcome of a fetch by a replica whose log ends at `offset` in that epoch."""
    oldest, newest = log.oldest_snapshot, log.newest_snapshot
    if offset == 0 and newest is not None and newest.end_offset > 0:
        # A snapshot fills an empty log faster than the records that it replaces.
        return FetchOutcome(snapshot=newest)
    if offset == 0 and log.start_offset == 0:
        return FetchOutcome()
    if oldest is not None and _is_before(log.start_offset, oldest, offset, last_fetched_epoch):
        return FetchOutcome(snapshot=newest)
    end = log.epoch_end(last_fetched_epoch)
    if end.epoch != last_fetched_epoch or end.end_offset < offset:
        return FetchOutcome(diverging=end)
    return FetchOutcome()


def _is_before(start_offset: int, oldest: SnapshotId, offset: int, epoch: int) -> bool:
    """Whether this log no longer has the offset up to which the two logs may agree."""
    return (
        offset < start_offset
        or (offset == start_offset and epoch != oldest.epoch)
        or epoch < oldest.epoch
    )
