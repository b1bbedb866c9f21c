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

from barnabas.raft.effects import HighWatermark
from barnabas.raft.log_view import check_position
from barnabas.raft.member import Member, Timeouts
from barnabas.raft.messages import (
    Announce,
    AnnounceEnd,
    Ask,
    BeginEpoch,
    EndEpoch,
    EpochTold,
    FetchVerdict,
    Outgoing,
    VoteAsked,
    VoteTold,
)
from barnabas.raft.roles import (
    NOBODY,
    Candidate,
    Follower,
    Leader,
    Prospective,
    Resigned,
    Unattached,
)
from barnabas.raft.voters import ReplicaKey, Voters
from barnabas.wire.errors import ErrorCode

__all__ = ["ANYONE", "Raft", "Timeouts"]

ANYONE = -2  # to fetch from whichever voter or bootstrap server answers

_LOST_LEADER_JITTER_MS = 50
_ELECTION_BACKOFF_MS = 50


class Raft(Member):
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

    # Elections, asked by others

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

    # Elections, answered by others

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
                elif ballot.is_lost:
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

    # Leading

    def flushed(self, end_offset: int, now_ms: int) -> None:
        """This node's log is durable up to there."""
        self._durable_end = end_offset
        if isinstance(self.role, Leader):
            self._commit(self.role, now_ms)

    def fetched_by(
        self, replica: ReplicaKey, epoch: int, offset: int, last_fetched_epoch: int, now_ms: int
    ) -> FetchVerdict:
        """A replica, whose log is durable up to `offset`, fetches what follows.

        A consumer's id is negative: it is answered and not counted.
        """
        if offset < 0 or not 0 <= last_fetched_epoch <= epoch:
            return FetchVerdict(ErrorCode.INVALID_REQUEST)
        error = self.refuse_as_leader(epoch)
        if not isinstance(self.role, Leader):
            return FetchVerdict(error)
        if replica.node_id == self.node.node_id:
            return FetchVerdict(ErrorCode.UNKNOWN_SERVER_ERROR)
        if error is not ErrorCode.NONE:
            return FetchVerdict(error)
        verdict = check_position(self._log, offset, last_fetched_epoch)
        if verdict.is_good and replica.node_id >= 0:
            progress = self.role.progress.of(replica, now_ms)
            progress.fetched(offset, self._log.end_offset, now_ms)
            self._heard_of(self.role, replica, now_ms)
            self._commit(self.role, now_ms)
        return verdict

    def snapshot_fetched_by(self, replica: ReplicaKey, epoch: int, now_ms: int) -> ErrorCode:
        """A replica fetches a piece of a snapshot."""
        error = self.refuse_as_leader(epoch)
        if error is ErrorCode.NONE and isinstance(self.role, Leader):
            self._heard_of(self.role, replica, now_ms)
        return error

    def refuse_as_leader(self, epoch: int) -> ErrorCode:
        """What keeps this node from answering a request that is for the leader of `epoch`."""
        if epoch < self.epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        if epoch > self.epoch:
            return ErrorCode.UNKNOWN_LEADER_EPOCH
        return ErrorCode.NONE if self.is_leader else ErrorCode.NOT_LEADER_OR_FOLLOWER

    def voters_changed(self, voters: Voters, offset: int, now_ms: int) -> None:
        """The newest voters in the log are these, committed or not (KIP-853).

        `offset` is that of the record that names them; -1 if a snapshot or a setting does. After
        a truncation, this is told the voters that are the newest again.
        """
        self.voters = voters
        self._voters_offset = offset
        match self.role:
            case Leader() as leader:
                leader.unaware = (leader.unaware | self._others()) & self._others()
                leader.fetched &= self._others()
                leader.progress.change(voters)
                self._commit(leader, now_ms)
            case Unattached() as role if role.stand_at_ms is None:
                role.stand_at_ms = now_ms + self._election_timeout_ms()

    def resign(self, now_ms: int) -> None:
        """Lead no longer, and tell the others; without effect unless this node leads."""
        if isinstance(self.role, Leader):
            self._resign(self.role, now_ms)

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

    def _heard_of(self, leader: Leader, replica: ReplicaKey, now_ms: int) -> None:
        """Check-quorum: put the resignation off once a majority has fetched again."""
        if not self.voters.includes(replica):
            return
        leader.unaware.discard(replica.node_id)
        leader.fetched.add(replica.node_id)
        # A leader that was removed from the voters does not count (KIP-853).
        counted = leader.fetched | ({self.node.node_id} if self.is_voter else set())
        if self.voters.is_majority(counted):
            leader.fetched.clear()
            leader.resign_at_ms = now_ms + self._check_quorum_ms()

    def _remind(self, leader: Leader, now_ms: int) -> None:
        """Announce again to who has not fetched for a while: it may not know who leads."""
        period_ms = self._timeouts.fetch_ms // 2
        leader.announce_at_ms = now_ms + period_ms
        for each in leader.progress.voter_states():
            if each.fetched_ms <= now_ms - period_ms and each.key.node_id != self.node.node_id:
                leader.unaware.add(each.key.node_id)

    def _commit(self, leader: Leader, now_ms: int) -> None:
        """Nothing is committed before a majority has a record of this epoch.

        What earlier leaders left behind is committed together with that record.
        """
        if self.is_voter:
            leader.progress.of(self.node, now_ms).end_offset = self._durable_end
        reached = leader.progress.majority_end()
        if reached > max(leader.start_offset, leader.high_watermark):
            leader.high_watermark = reached
            self._raise_high_watermark(reached)
        if not self.is_voter and leader.high_watermark > self._voters_offset:
            # Its own removal is committed.
            self._resign(leader, now_ms)

    def _raise_high_watermark(self, offset: int) -> None:
        if offset > self.high_watermark:
            self.high_watermark = offset
            self._effects.append(HighWatermark(offset))

    def _backoff_limit_ms(self, losses: int) -> int:
        return min(self._timeouts.backoff_max_ms, _ELECTION_BACKOFF_MS << min(losses, 10))
