"""The consensus of KRaft as a state machine: one node's role, its transitions and its timers.

It has no clock, socket or file. Its driver calls an `on_` method for every event, with the time;
performs the effects that `take_effects` returns, in order, before it responds to or sends
anything; sends the requests that `pending_requests` and `fetch_source` name; and calls `tick` at
`deadline_ms`. Safety depends on two orders that the driver keeps: a `Persist` is on disk before
anything else is done, and an end offset is passed to `on_flushed`, or sent to a leader in a fetch,
only when the log is durable up to it.

The model is Apache Kafka 4.3: KIP-595, with check-quorum, dynamic voters (KIP-853) and pre-vote
(KIP-996). Comments mark where the two differ.
"""

from dataclasses import dataclass
from random import Random

from barnabas.raft.election import QuorumElection
from barnabas.raft.leadership import LogView, QuorumLeadership
from barnabas.raft.messages import (
    AppendLeaderChange,
    BeginEpochRequest,
    Effect,
    EndEpochRequest,
    HighWatermark,
    OutgoingRequest,
    Persist,
    QuorumState,
    RaftVoteRequest,
    RoleChanged,
    SendBeginEpoch,
    SendEndEpoch,
    SendVote,
)
from barnabas.raft.roles import (
    NO_NODE,
    Candidate,
    Follower,
    Leader,
    Prospective,
    QuorumProgress,
    Resigned,
    Role,
    Unattached,
    VoteTally,
)
from barnabas.raft.voters import ReplicaKey, VoterSet
from barnabas.wire.errors import ErrorCode

ANY_NODE = -2
"""The fetch source when no leader is known: any voter or bootstrap server."""

_LOST_LEADER_JITTER_MS = 50
_CHECK_QUORUM_FACTOR = 1.5


@dataclass(slots=True, frozen=True)
class RaftTimeouts:
    """The `controller.quorum.*` settings of these names, with Kafka's defaults."""

    election_ms: int = 1000
    fetch_ms: int = 2000
    backoff_max_ms: int = 1000


class RaftNode:
    """One node of the quorum. `election` and `leadership` handle the requests of their concern."""

    def __init__(
        self,
        key: ReplicaKey,
        voters: VoterSet,
        state: QuorumState,
        log: LogView,
        timeouts: RaftTimeouts,
        random: Random,
        now_ms: int,
    ) -> None:
        """Continues from `state`. The whole log must be durable.

        `voters` are those of the newest record in the log or snapshot, else the static ones.
        A sole voter becomes leader at once.
        """
        self.key = key
        self.voters = voters
        self.voters_offset = -1
        """The offset of the record that named `voters`."""
        self.high_watermark = log.newest_snapshot.end_offset if log.newest_snapshot else 0
        """Every record below it is committed. It never decreases."""
        self.leader_high_watermark = self.high_watermark
        """As leaders have reported it: the own log may end before it."""
        self.log = log
        self.durable_end_offset = log.end_offset
        self.timeouts = timeouts
        self.random = random
        self.election = QuorumElection(self)
        self.leadership = QuorumLeadership(self)
        self._effects: list[Effect] = []
        self._persisted = state
        self.role: Role = self._initial_role(state, now_ms)
        self.persist_state()
        if self.is_voter and len(voters) == 1:
            self.become_prospective(now_ms)

    def _initial_role(self, state: QuorumState, now_ms: int) -> Role:
        epoch, leader_id = state.epoch, state.leader_id
        election_at_ms = now_ms + self.random_election_timeout_ms()
        if epoch < self.log.last_epoch:
            return Unattached(self.log.last_epoch, election_at_ms=election_at_ms)
        if leader_id == self.key.node_id:
            # It must not lead this epoch again: this log may have lost records of the epoch that
            # other replicas have.
            return Resigned(epoch, leader_id, (), self.other_voter_ids(), election_at_ms)
        if self.voters.get(leader_id) is not None:
            return Follower(epoch, leader_id, state.voted_key, now_ms + self.timeouts.fetch_ms)
        # Kafka continues as Candidate if the vote was its own. But a log whose end was not yet
        # durable may be shorter now than when the other voters granted their votes.
        return Unattached(epoch, leader_id, state.voted_key, election_at_ms)

    # State

    @property
    def epoch(self) -> int:
        return self.role.epoch

    @property
    def leader_id(self) -> int:
        """The leader of the epoch if it is known; also this node after it resigned."""
        match self.role:
            case Leader():
                return self.key.node_id
            case Candidate():
                return NO_NODE
            case role:
                return role.leader_id

    @property
    def is_leader(self) -> bool:
        return isinstance(self.role, Leader)

    @property
    def is_voter(self) -> bool:
        return self.voters.includes(self.key)

    def other_voter_ids(self) -> set[int]:
        return set(self.voters.ids()) - {self.key.node_id}

    def take_effects(self) -> list[Effect]:
        """Returns what to do, in this order, before responding to or sending anything."""
        effects, self._effects = self._effects, []
        return effects

    # Time

    @property
    def deadline_ms(self) -> int | None:
        """When `tick` is due; None if no timer runs."""
        match self.role:
            case Leader() as leader:
                is_sole_voter = len(self.voters) == 1 and self.is_voter
                return None if is_sole_voter else min(leader.resign_at_ms, leader.announce_at_ms)
            case Unattached(election_at_ms=at_ms):
                return at_ms if self.is_voter else None
            case Prospective(timeout_at_ms=at_ms) | Candidate(timeout_at_ms=at_ms):
                return at_ms
            case Follower(fetch_timeout_at_ms=at_ms) | Resigned(unattach_at_ms=at_ms):
                return at_ms

    def tick(self, now_ms: int) -> None:
        """Acts on the timer of the current role if it is due."""
        if self.deadline_ms is None or now_ms < self.deadline_ms:
            return
        match self.role:
            case Unattached() | Candidate():
                self.become_prospective(now_ms)
            case Prospective():
                self.abandon_election(now_ms)
            case Follower() as follower if not self.is_voter:
                follower.has_lost_leader = True
                follower.fetch_timeout_at_ms = now_ms + self.timeouts.fetch_ms
            case Follower():
                self.become_prospective(now_ms)
            case Leader() as leader if leader.resign_at_ms <= now_ms:
                self.become_resigned(leader, now_ms)
            case Leader() as leader:
                self.leadership.announce_again(leader, now_ms)
            case Resigned():
                # In the same epoch, responses to its fetches would name this node as the leader.
                self.become_unattached(self.epoch + 1, now_ms)

    def random_election_timeout_ms(self) -> int:
        return self.timeouts.election_ms + self.random.randrange(self.timeouts.election_ms)

    def check_quorum_timeout_ms(self) -> int:
        return int(self.timeouts.fetch_ms * _CHECK_QUORUM_FACTOR)

    # Following

    def fetch_source(self) -> int | None:
        """Returns the node to fetch from: the leader, ANY_NODE, or None to fetch from no node."""
        match self.role:
            case Follower() as follower if follower.has_lost_leader:
                return None if self.is_voter else ANY_NODE
            case Follower(leader_id=leader_id):
                return leader_id
            case Unattached():
                return ANY_NODE
            case _:
                return None

    def on_fetch_response(self, error: ErrorCode, leader_id: int, epoch: int, now_ms: int) -> bool:
        """Handles a response to Fetch or FetchSnapshot.

        Returns whether it is a successful response of the leader: only then may its records be
        appended, or the log be truncated, as it says.
        """
        self.on_leader_and_epoch(leader_id, epoch, now_ms)
        match self.role:
            case Follower() as follower if (error, leader_id, epoch) == (
                ErrorCode.NONE,
                follower.leader_id,
                follower.epoch,
            ):
                follower.fetch_timeout_at_ms = now_ms + self.timeouts.fetch_ms
                follower.is_leader_reachable = True
                follower.has_lost_leader = False
                return True
            case _:
                return False

    def on_leader_high_watermark(self, high_watermark: int) -> None:
        """Adopts the leader's high watermark, -1 if unknown, after its records were appended."""
        if isinstance(self.role, Follower):
            self.leader_high_watermark = max(self.leader_high_watermark, high_watermark)
            self.raise_high_watermark(min(high_watermark, self.log.end_offset))

    def on_leader_lost(self, now_ms: int) -> None:
        """Handles a connection to the leader that broke or is refused.

        Kafka waits for the rest of the fetch timeout. Here the followers find out at once
        whether a majority has lost the leader; pre-vote protects those that have not.
        """
        match self.role:
            case Follower() as follower if not follower.has_lost_leader:
                follower.has_lost_leader = True
                follower.is_leader_reachable = False
                if self.is_voter:
                    at_ms = now_ms + self.random.randrange(_LOST_LEADER_JITTER_MS)
                    follower.fetch_timeout_at_ms = min(follower.fetch_timeout_at_ms, at_ms)

    def on_leader_and_epoch(self, leader_id: int, epoch: int, now_ms: int) -> None:
        """Handles the epoch and its leader, or NO_NODE, that a request or response names."""
        is_other = leader_id not in (NO_NODE, self.key.node_id)
        if epoch > self.epoch:
            if is_other:
                self.become_follower(epoch, leader_id, now_ms)
            else:
                self.become_unattached(epoch, now_ms)
        elif epoch == self.epoch and is_other:
            match self.role:
                case Unattached(leader_id=own) if own in (NO_NODE, leader_id):
                    self.become_follower(epoch, leader_id, now_ms)
                case Prospective(leader_id=own) if own == NO_NODE:
                    self.become_follower(epoch, leader_id, now_ms)
                case Candidate():
                    self.become_follower(epoch, leader_id, now_ms)
                case Follower() as follower if not self.is_voter:
                    follower.has_lost_leader = False

    # The log

    def on_flushed(self, end_offset: int, now_ms: int) -> None:
        """The log is durable up to `end_offset`, by a flush that began after any truncation."""
        self.durable_end_offset = end_offset
        if isinstance(self.role, Leader):
            self.leadership.advance_high_watermark(self.role, now_ms)

    def on_truncated(self, end_offset: int) -> None:
        """The log was truncated to `end_offset`, or replaced by a snapshot that ends there."""
        self.durable_end_offset = min(self.durable_end_offset, end_offset)

    def on_voters_changed(self, voters: VoterSet, offset: int, now_ms: int) -> None:
        """Adopts the newest voters in the log, committed or not (KIP-853).

        `offset` is that of the record that names them; -1 if a snapshot or a setting does. After
        a truncation, these are the voters that are the newest again.
        """
        self.voters = voters
        self.voters_offset = offset
        match self.role:
            case Leader() as leader:
                self.leadership.on_voters_changed(leader, now_ms)
            case Unattached() as role if role.election_at_ms is None:
                role.election_at_ms = now_ms + self.random_election_timeout_ms()

    def raise_high_watermark(self, offset: int) -> None:
        if offset > self.high_watermark:
            self.high_watermark = offset
            self._effects.append(HighWatermark(offset))

    # Transitions, as the table in `roles` names them

    def _become(self, role: Role) -> None:
        self.role = role
        self.persist_state()
        self._effects.append(RoleChanged(role))

    def persist_state(self) -> None:
        """Has epoch, leader and vote written to disk before any other node learns of them."""
        match self.role:
            case Leader() | Resigned():
                state = QuorumState(self.epoch, self.key.node_id)
            case Candidate():
                state = QuorumState.of_vote(self.epoch, NO_NODE, self.key)
            case role:
                state = QuorumState.of_vote(role.epoch, role.leader_id, role.voted_key)
        if state != self._persisted:
            self._persisted = state
            self._effects.append(Persist(state))

    def become_unattached(self, epoch: int, now_ms: int) -> None:
        """Enters a newer epoch whose leader is not known."""
        match self.role:
            case (
                Unattached(election_at_ms=int(at_ms))
                | Prospective(timeout_at_ms=at_ms)
                | Candidate(timeout_at_ms=at_ms)
                | Resigned(unattach_at_ms=at_ms)
            ):
                # Candidates with ever newer epochs must not defer this node's election for ever.
                election_at_ms = at_ms
            case _:
                election_at_ms = now_ms + self.random_election_timeout_ms()
        self._become(Unattached(epoch, election_at_ms=election_at_ms))

    def become_follower(self, epoch: int, leader_id: int, now_ms: int) -> None:
        voted_key = self._persisted.voted_key if epoch == self.epoch else None
        self._become(Follower(epoch, leader_id, voted_key, now_ms + self.timeouts.fetch_ms))

    def become_prospective(self, now_ms: int) -> None:
        """Begins to find out whether a majority would vote for this node."""
        lost_elections = self.role.lost_elections + 1 if isinstance(self.role, Candidate) else 0
        prospective = Prospective(
            self.epoch,
            self.leader_id,
            self._persisted.voted_key,
            VoteTally(self.voters, self.key.node_id),
            now_ms + self.random_election_timeout_ms(),
            lost_elections,
        )
        self._become(prospective)
        if prospective.votes.is_won:
            self.become_candidate(prospective, now_ms)

    def abandon_election(self, now_ms: int) -> None:
        """Leaves Prospective, as no majority would vote for this node: a leader may exist."""
        if self.leader_id not in (NO_NODE, self.key.node_id):
            self.become_follower(self.epoch, self.leader_id, now_ms)
        else:
            election_at_ms = now_ms + self.random_election_timeout_ms()
            voted_key = self._persisted.voted_key
            self._become(Unattached(self.epoch, voted_key=voted_key, election_at_ms=election_at_ms))

    def become_candidate(self, prospective: Prospective, now_ms: int) -> None:
        """Requests votes in a new epoch."""
        candidate = Candidate(
            self.epoch + 1,
            VoteTally(self.voters, self.key.node_id),
            now_ms + self.random_election_timeout_ms(),
            prospective.lost_elections,
        )
        self._become(candidate)
        if candidate.votes.is_won:
            self.become_leader(candidate, now_ms)

    def become_leader(self, candidate: Candidate, now_ms: int) -> None:
        leader = Leader(
            candidate.epoch,
            self.log.end_offset,
            QuorumProgress(self.voters),
            resign_at_ms=now_ms + self.check_quorum_timeout_ms(),
            announce_at_ms=now_ms + self.timeouts.fetch_ms // 2,
            unacknowledged=self.other_voter_ids(),
        )
        self._become(leader)
        granting_voters = sorted(candidate.votes.granted)
        self._effects.append(
            AppendLeaderChange(leader.epoch, self.key.node_id, self.voters.ids(), granting_voters)
        )

    def become_resigned(self, leader: Leader, now_ms: int) -> None:
        ranked = leader.progress.voters_by_end_offset()
        candidates = tuple(key for key in ranked if key.node_id != self.key.node_id)
        self._become(
            Resigned(
                leader.epoch,
                self.key.node_id,
                candidates,
                self.other_voter_ids(),
                now_ms + self.random_election_timeout_ms(),
            )
        )

    # Sending

    def pending_requests(self) -> list[OutgoingRequest]:
        """Returns the requests to other voters that should be in flight now."""
        match self.role:
            case Prospective(votes=votes) | Candidate(votes=votes) if not votes.is_lost:
                return [SendVote(key, self._vote_request(key)) for key in votes.pending_voters()]
            case Leader(epoch=epoch, unacknowledged=unacknowledged):
                return [
                    SendBeginEpoch(key, BeginEpochRequest(self.key.node_id, epoch, key))
                    for key in self._voters_among(unacknowledged)
                ]
            case Resigned(epoch=epoch, unacknowledged=unacknowledged, candidates=candidates):
                return [
                    SendEndEpoch(key, EndEpochRequest(self.key.node_id, epoch, candidates))
                    for key in self._voters_among(unacknowledged)
                ]
            case _:
                return []

    def _vote_request(self, voter: ReplicaKey) -> RaftVoteRequest:
        log = self.log
        pre_vote = isinstance(self.role, Prospective)
        return RaftVoteRequest(
            self.key, self.epoch, log.last_epoch, log.end_offset, pre_vote, voter
        )

    def _voters_among(self, node_ids: set[int]) -> list[ReplicaKey]:
        return [key for key in self.voters.replicas() if key.node_id in node_ids]
