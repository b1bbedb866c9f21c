"""The consensus of KRaft as a state machine: roles, elections, and what is committed.

It has no clock, socket or file. Its driver calls a method for whatever happened, with the time;
performs the effects that `take_effects` returns, in order, before it answers or sends anything;
sends what `outstanding` and `fetch_from` say should be on its way; and calls `tick` when
`deadline_ms` has come. What it promises rests on two orders that the driver keeps: a `Persist`
is on disk before anything else follows, and an end offset is told to `flushed`, or to a leader by
a fetch, only when the log is durable up to there.

Apache Kafka 4.3 is the model: KIP-595, with check-quorum, dynamic voters (KIP-853) and pre-vote
(KIP-996). Where the two differ is said beside the code.
"""

from barnabas.raft.leading import Leading
from barnabas.raft.member import Timeouts
from barnabas.raft.messages import (
    Announce,
    AnnounceEnd,
    Ask,
    BeginEpoch,
    EndEpoch,
    Outgoing,
    VoteAsked,
)
from barnabas.raft.roles import (
    Candidate,
    Follower,
    Leader,
    Prospective,
    Resigned,
    Unattached,
)
from barnabas.raft.voters import ReplicaKey
from barnabas.raft.voting import Voting
from barnabas.wire.errors import ErrorCode

__all__ = ["ANYONE", "Raft", "Timeouts"]

ANYONE = -2  # to fetch from whichever voter or bootstrap server answers

_LOST_LEADER_JITTER_MS = 50


class Raft(Voting, Leading):
    """One node's part in the quorum: what it is told, and what it answers."""

    def tick(self, now_ms: int) -> None:
        """Time has passed."""
        if self.deadline_ms is None or now_ms < self.deadline_ms:
            return
        match self.role:
            case Unattached() | Candidate():
                self._stand(now_ms)
            case Prospective():
                self._stand_back(now_ms)
            case Follower() as follower if not self.is_voter:
                follower.lost_leader = True
                follower.silent_at_ms = now_ms + self._timeouts.fetch_ms
            case Follower():
                self._stand(now_ms)
            case Leader() as leader if leader.resign_at_ms <= now_ms:
                self._resign(leader, now_ms)
            case Leader() as leader:
                self._remind(leader, now_ms)
            case Resigned():
                # A new epoch, or the answers to its fetches would name itself as the leader.
                self._unattach(self.epoch + 1, now_ms)

    # Following

    def fetch_from(self) -> int | None:
        """Whom to fetch from now: the leader, ANYONE who may know it, or None: not at all."""
        match self.role:
            case Follower() as follower if follower.lost_leader:
                return None if self.is_voter else ANYONE
            case Follower(leader_id=leader_id):
                return leader_id
            case Unattached():
                return ANYONE
            case _:
                return None

    def fetch_told(self, error: ErrorCode, leader_id: int, epoch: int, now_ms: int) -> bool:
        """A fetch, of records or of a snapshot, was answered.

        Returns whether it is the leader's good answer: only then may its records be appended,
        or the log be truncated, as it says.
        """
        self.leader_told(leader_id, epoch, now_ms)
        match self.role:
            case Follower() as follower if (error, leader_id, epoch) == (
                ErrorCode.NONE,
                follower.leader_id,
                follower.epoch,
            ):
                follower.silent_at_ms = now_ms + self._timeouts.fetch_ms
                follower.hears_leader = True
                follower.lost_leader = False
                return True
            case _:
                return False

    def leader_committed(self, high_watermark: int) -> None:
        """The leader's high watermark, after what came with it was appended; -1: unknown."""
        if isinstance(self.role, Follower):
            self._raise_high_watermark(min(high_watermark, self._log.end_offset))

    def leader_lost(self, now_ms: int) -> None:
        """The connection to the leader broke, or is refused.

        Kafka waits for the rest of the fetch timeout. Here the followers find out at once
        whether a majority has lost the leader, and who has not is left in peace by pre-vote.
        """
        match self.role:
            case Follower() as follower if not follower.lost_leader:
                follower.lost_leader = True
                follower.hears_leader = False
                if self.is_voter:
                    at_ms = now_ms + self._random.randrange(_LOST_LEADER_JITTER_MS)
                    follower.silent_at_ms = min(follower.silent_at_ms, at_ms)

    def truncated(self, end_offset: int) -> None:
        """This node's log was cut, or replaced by a snapshot that ends there."""
        self._durable_end = min(self._durable_end, end_offset)

    # Sending

    def outstanding(self) -> list[Outgoing]:
        """What should be on its way to other voters now, until it is answered."""
        match self.role:
            case Prospective(ballot=ballot) | Candidate(ballot=ballot) if not ballot.is_lost:
                return [Ask(voter, self._request_vote(voter)) for voter in ballot.open()]
            case Leader(epoch=epoch, unaware=unaware):
                return [
                    Announce(voter, BeginEpoch(self.node.node_id, epoch, voter))
                    for voter in self._voters_among(unaware)
                ]
            case Resigned(epoch=epoch, unaware=unaware, candidates=candidates):
                return [
                    AnnounceEnd(voter, EndEpoch(self.node.node_id, epoch, candidates))
                    for voter in self._voters_among(unaware)
                ]
            case _:
                return []

    def _request_vote(self, voter: ReplicaKey) -> VoteAsked:
        log = self._log
        pre_vote = isinstance(self.role, Prospective)
        return VoteAsked(self.node, self.epoch, log.last_epoch, log.end_offset, pre_vote, voter)

    def _voters_among(self, node_ids: set[int]) -> list[ReplicaKey]:
        return [key for key in self.voters.replicas() if key.node_id in node_ids]
