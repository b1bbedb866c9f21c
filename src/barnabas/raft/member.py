"""A member of the quorum: its role, what it must not forget, and how one role becomes another."""

from dataclasses import dataclass
from random import Random

from barnabas.raft.effects import (
    AppendLeaderChange,
    Effect,
    HighWatermark,
    LeaderChange,
    Persist,
    QuorumState,
    RoleChanged,
)
from barnabas.raft.log_view import LogView
from barnabas.raft.progress import Progress
from barnabas.raft.roles import (
    NOBODY,
    Ballot,
    Candidate,
    Follower,
    Leader,
    Prospective,
    Resigned,
    Role,
    Unattached,
)
from barnabas.raft.voters import ReplicaKey, Voters

_CHECK_QUORUM_FACTOR = 1.5


@dataclass(slots=True, frozen=True)
class Timeouts:
    """The `controller.quorum.*` settings of these names, with Kafka's defaults."""

    election_ms: int = 1000
    fetch_ms: int = 2000
    backoff_max_ms: int = 1000


class Member:
    """One node's role in the quorum."""

    def __init__(
        self,
        node: ReplicaKey,
        voters: Voters,
        state: QuorumState,
        log: LogView,
        timeouts: Timeouts,
        random: Random,
        now_ms: int,
    ) -> None:
        """Begin where `state` left off; the log must be durable as far as it goes.

        `voters` are those of the newest record in the log or snapshot, else the static ones.
        A sole voter leads at once.
        """
        self.node = node
        self.voters = voters
        # Everything below it is committed; it never falls.
        self.high_watermark = log.newest_snapshot.end_offset if log.newest_snapshot else 0
        self._log = log
        self._timeouts = timeouts
        self._random = random
        self._durable_end = log.end_offset
        # The offset of the record that named `voters`.
        self._voters_offset = -1
        self._effects: list[Effect] = []
        self._persisted = state
        self.role: Role = self._first_role(state, now_ms)
        self._persist()
        if self.is_voter and len(voters) == 1:
            self._stand(now_ms)

    def _first_role(self, state: QuorumState, now_ms: int) -> Role:
        epoch, leader_id = state.epoch, state.leader_id
        stand_at_ms = now_ms + self._election_timeout_ms()
        if epoch < self._log.last_epoch:
            return Unattached(self._log.last_epoch, stand_at_ms=stand_at_ms)
        if leader_id == self.node.node_id:
            # It must not lead this epoch again: records it wrote may be lost here and not there.
            others = {voter_id for voter_id in self.voters.ids() if voter_id != leader_id}
            return Resigned(epoch, leader_id, (), others, stand_at_ms)
        if self.voters.get(leader_id) is not None:
            return Follower(epoch, leader_id, state.voted, now_ms + self._timeouts.fetch_ms)
        # Kafka goes on as Candidate where the vote was its own. But a log whose end was not yet
        # durable may be shorter now than when the others granted their votes.
        return Unattached(epoch, leader_id, state.voted, stand_at_ms)

    # What it is

    @property
    def epoch(self) -> int:
        return self.role.epoch

    @property
    def leader_id(self) -> int:
        """Who leads the epoch, if that is known; this node, too, after it resigned."""
        match self.role:
            case Leader():
                return self.node.node_id
            case Candidate():
                return NOBODY
            case role:
                return role.leader_id

    @property
    def is_leader(self) -> bool:
        return isinstance(self.role, Leader)

    @property
    def is_voter(self) -> bool:
        return self.voters.includes(self.node)

    def take_effects(self) -> list[Effect]:
        """What is to be done, in this order, before anything is answered or sent."""
        effects, self._effects = self._effects, []
        return effects

    # Time

    @property
    def deadline_ms(self) -> int | None:
        """When `tick` is due; None if nothing waits for time."""
        match self.role:
            case Leader() as leader:
                alone = len(self.voters) == 1 and self.is_voter
                return None if alone else min(leader.resign_at_ms, leader.announce_at_ms)
            case Unattached(stand_at_ms=at_ms):
                return at_ms if self.is_voter else None
            case Prospective(give_up_at_ms=at_ms) | Candidate(give_up_at_ms=at_ms):
                return at_ms
            case Follower(silent_at_ms=at_ms) | Resigned(leave_at_ms=at_ms):
                return at_ms

    def _raise_high_watermark(self, offset: int) -> None:
        if offset > self.high_watermark:
            self.high_watermark = offset
            self._effects.append(HighWatermark(offset))

    # From role to role

    def _become(self, role: Role) -> None:
        self.role = role
        self._persist()
        self._effects.append(RoleChanged(role))

    def _persist(self) -> None:
        """Have epoch, leader and vote on disk before anyone hears of them."""
        match self.role:
            case Leader() | Resigned():
                state = QuorumState(self.epoch, self.node.node_id)
            case Candidate():
                state = _voted_state(self.epoch, NOBODY, self.node)
            case role:
                state = _voted_state(role.epoch, role.leader_id, role.voted)
        if state != self._persisted:
            self._persisted = state
            self._effects.append(Persist(state))

    def _unattach(self, epoch: int, now_ms: int) -> None:
        """There is a newer epoch, and who leads it is not known."""
        match self.role:
            case (
                Unattached(stand_at_ms=int(at_ms))
                | Prospective(give_up_at_ms=at_ms)
                | Candidate(give_up_at_ms=at_ms)
                | Resigned(leave_at_ms=at_ms)
            ):
                # Those who keep asking with newer epochs must not put this node off for ever.
                stand_at_ms = at_ms
            case _:
                stand_at_ms = now_ms + self._election_timeout_ms()
        self._become(Unattached(epoch, stand_at_ms=stand_at_ms))

    def _follow(self, epoch: int, leader_id: int, now_ms: int) -> None:
        voted = self._persisted.voted if epoch == self.epoch else None
        self._become(Follower(epoch, leader_id, voted, now_ms + self._timeouts.fetch_ms))

    def _stand(self, now_ms: int) -> None:
        """Find out whether a majority would vote for this node."""
        losses = self.role.losses + 1 if isinstance(self.role, Candidate) else 0
        prospective = Prospective(
            self.epoch,
            self.leader_id,
            self._persisted.voted,
            Ballot(self.voters, self.node.node_id),
            now_ms + self._election_timeout_ms(),
            losses,
        )
        self._become(prospective)
        if prospective.ballot.is_won:
            self._campaign(prospective, now_ms)

    def _stand_back(self, now_ms: int) -> None:
        """No majority would: there may be a leader, after all."""
        if self.leader_id not in (NOBODY, self.node.node_id):
            self._follow(self.epoch, self.leader_id, now_ms)
        else:
            stand_at_ms = now_ms + self._election_timeout_ms()
            voted = self._persisted.voted
            self._become(Unattached(self.epoch, voted=voted, stand_at_ms=stand_at_ms))

    def _campaign(self, prospective: Prospective, now_ms: int) -> None:
        """Ask for votes in a new epoch."""
        candidate = Candidate(
            self.epoch + 1,
            Ballot(self.voters, self.node.node_id),
            now_ms + self._election_timeout_ms(),
            prospective.losses,
        )
        self._become(candidate)
        if candidate.ballot.is_won:
            self._lead(candidate, now_ms)

    def _lead(self, candidate: Candidate, now_ms: int) -> None:
        leader = Leader(
            candidate.epoch,
            self._log.end_offset,
            Progress(self.voters),
            resign_at_ms=now_ms + self._check_quorum_ms(),
            announce_at_ms=now_ms + self._timeouts.fetch_ms // 2,
            unaware=self._others(),
        )
        self._become(leader)
        granting = sorted(candidate.ballot.granted)
        change = LeaderChange(self.node.node_id, self.voters.ids(), granting)
        self._effects.append(AppendLeaderChange(change, leader.epoch))

    def _resign(self, leader: Leader, now_ms: int) -> None:
        ranked = leader.progress.most_advanced_first()
        candidates = tuple(key for key in ranked if key.node_id != self.node.node_id)
        leave_at_ms = now_ms + self._election_timeout_ms()
        self._become(
            Resigned(leader.epoch, self.node.node_id, candidates, self._others(), leave_at_ms)
        )

    def _others(self) -> set[int]:
        return set(self.voters.ids()) - {self.node.node_id}

    def _election_timeout_ms(self) -> int:
        return self._timeouts.election_ms + self._random.randrange(self._timeouts.election_ms)

    def _check_quorum_ms(self) -> int:
        return int(self._timeouts.fetch_ms * _CHECK_QUORUM_FACTOR)


def _voted_state(epoch: int, leader_id: int, voted: ReplicaKey | None) -> QuorumState:
    if voted is None:
        return QuorumState(epoch, leader_id)
    return QuorumState(epoch, leader_id, voted.node_id, voted.directory_id)
