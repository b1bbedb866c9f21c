"""Elections, and the announcements that begin and end an epoch."""

from barnabas.raft.member import Member
from barnabas.raft.messages import BeginEpoch, EndEpoch, EpochTold, VoteAsked, VoteTold
from barnabas.raft.roles import (
    NOBODY,
    Candidate,
    Follower,
    Leader,
    Prospective,
    Resigned,
    Unattached,
)
from barnabas.raft.voters import ReplicaKey
from barnabas.wire.errors import ErrorCode

_ELECTION_BACKOFF_MS = 50


class Voting(Member):
    """Who leads: what this node is asked, and what the others answer it."""

    # Asked by others

    def vote_asked(self, asked: VoteAsked, now_ms: int) -> VoteTold:
        """Vote received."""
        last_epoch_limit = asked.epoch if asked.pre_vote else asked.epoch - 1
        if not 0 <= asked.last_epoch <= last_epoch_limit or asked.last_offset < 0:
            return self._vote_told(ErrorCode.INVALID_REQUEST)
        error = self._refuse(asked.candidate.node_id, asked.epoch)
        if error is not ErrorCode.NONE:
            return self._vote_told(error)
        if asked.epoch > self.epoch:
            self._unattach(asked.epoch, now_ms)
        if not self._is_for_me(asked.voter):
            return self._vote_told(ErrorCode.INVALID_VOTER_KEY)
        granted = self._would_grant(asked)
        if granted and not asked.pre_vote:
            self._vote_for(asked.candidate, now_ms)
        return self._vote_told(ErrorCode.NONE, granted)

    def _vote_told(self, error: ErrorCode, granted: bool = False) -> VoteTold:
        return VoteTold(error, self.leader_id, self.epoch, granted)

    def _would_grant(self, asked: VoteAsked) -> bool:
        mine = (self._log.last_epoch, self._log.end_offset)
        up_to_date = (asked.last_epoch, asked.last_offset) >= mine
        match self.role:
            case Leader():
                return False
            case Follower() as follower:
                return asked.pre_vote and up_to_date and not follower.hears_leader
            case Candidate() | Resigned():
                return asked.pre_vote and up_to_date
            case role if asked.pre_vote:
                return up_to_date
            case role if role.voted is not None:
                return role.voted.matches(asked.candidate)
            case role:
                return role.leader_id == NOBODY and up_to_date

    def _vote_for(self, candidate: ReplicaKey, now_ms: int) -> None:
        # The candidate has at least as good a chance as this node: give it the time.
        match self.role:
            case Unattached() as role if role.voted is None:
                role.voted = candidate
                role.stand_at_ms = now_ms + self._election_timeout_ms()
            case Prospective() as role if role.voted is None:
                role.voted = candidate
                role.give_up_at_ms = now_ms + self._election_timeout_ms()
        self._persist()

    def epoch_begun(self, begun: BeginEpoch, now_ms: int) -> ErrorCode:
        """BeginQuorumEpoch received."""
        error = self._refuse(begun.leader_id, begun.epoch)
        if error is not ErrorCode.NONE:
            return error
        self.leader_told(begun.leader_id, begun.epoch, now_ms)
        return ErrorCode.NONE if self._is_for_me(begun.voter) else ErrorCode.INVALID_VOTER_KEY

    def epoch_ended(self, ended: EndEpoch, now_ms: int) -> ErrorCode:
        """EndQuorumEpoch received: stand soon, the sooner the further in front it names us."""
        error = self._refuse(ended.leader_id, ended.epoch)
        if error is not ErrorCode.NONE:
            return error
        self.leader_told(ended.leader_id, ended.epoch, now_ms)
        match self.role:
            case Follower() as follower if follower.leader_id == ended.leader_id:
                follower.silent_at_ms = now_ms + self._succession_pause_ms(ended.candidates)
                follower.hears_leader = False
        return ErrorCode.NONE

    def _refuse(self, sender_id: int, epoch: int) -> ErrorCode:
        if epoch < self.epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        return ErrorCode.INVALID_REQUEST if sender_id < 0 else ErrorCode.NONE

    def _is_for_me(self, voter: ReplicaKey | None) -> bool:
        return voter is None or voter.matches(self.node)

    def _succession_pause_ms(self, candidates: tuple[ReplicaKey, ...]) -> int:
        longest_ms = self._timeouts.backoff_max_ms
        places = (place for place, key in enumerate(candidates) if key.matches(self.node))
        place = next(places, len(candidates))
        if place == len(candidates):
            return longest_ms
        shortest_ms = longest_ms >> (len(candidates) - 1)
        return min(longest_ms, shortest_ms << (place - 1)) if place > 0 else 0

    # Answered by others

    def leader_told(self, leader_id: int, epoch: int, now_ms: int) -> None:
        """Some request or response names an epoch and, unless NOBODY, its leader."""
        known = leader_id not in (NOBODY, self.node.node_id)
        if epoch > self.epoch:
            if known:
                self._follow(epoch, leader_id, now_ms)
            else:
                self._unattach(epoch, now_ms)
        elif epoch == self.epoch and known:
            match self.role:
                case Unattached(leader_id=own) if own in (NOBODY, leader_id):
                    self._follow(epoch, leader_id, now_ms)
                case Prospective(leader_id=own) if own == NOBODY:
                    self._follow(epoch, leader_id, now_ms)
                case Candidate():
                    self._follow(epoch, leader_id, now_ms)
                case Follower() as follower if not self.is_voter:
                    follower.lost_leader = False

    def vote_told(self, voter_id: int, told: VoteTold, now_ms: int) -> None:
        """A voter has answered `Ask`."""
        if told.error is ErrorCode.UNSUPPORTED_VERSION:
            # It knows no pre-vote: ask for the vote itself, as before KIP-996.
            if isinstance(self.role, Prospective):
                self._campaign(self.role, now_ms)
            return
        self.leader_told(told.leader_id, told.epoch, now_ms)
        if told.error is not ErrorCode.NONE or told.epoch != self.epoch:
            return
        match self.role:
            case Prospective(ballot=ballot) as prospective:
                ballot.count(voter_id, told.granted)
                if ballot.is_won:
                    self._campaign(prospective, now_ms)
                elif ballot.is_lost or voter_id == prospective.leader_id == told.leader_id:
                    # The leader itself says that it leads: Kafka would ask the others, too.
                    self._stand_back(now_ms)
            case Candidate(ballot=ballot) as candidate:
                ballot.count(voter_id, told.granted)
                if ballot.is_won:
                    self._lead(candidate, now_ms)
                elif ballot.is_lost:
                    # Kafka waits for the rest of the election timeout.
                    pause_ms = self._random.randrange(self._backoff_limit_ms(candidate.losses))
                    candidate.give_up_at_ms = min(candidate.give_up_at_ms, now_ms + pause_ms)

    def begin_told(self, voter_id: int, told: EpochTold, now_ms: int) -> None:
        """A voter has answered `Announce`."""
        self.leader_told(told.leader_id, told.epoch, now_ms)
        match self.role:
            case Leader() as leader if told.error is ErrorCode.NONE and told.epoch == self.epoch:
                leader.unaware.discard(voter_id)

    def end_told(self, voter_id: int, told: EpochTold, now_ms: int) -> None:
        """A voter has answered `AnnounceEnd`."""
        self.leader_told(told.leader_id, told.epoch, now_ms)
        match self.role:
            case Resigned() as role if told.error is ErrorCode.NONE and told.epoch == self.epoch:
                role.unaware.discard(voter_id)

    def _backoff_limit_ms(self, losses: int) -> int:
        return min(self._timeouts.backoff_max_ms, _ELECTION_BACKOFF_MS << min(losses, 10))
