"""What only a leader does: it commits, and finds out whether anyone still follows."""

from barnabas.raft.log_view import check_position
from barnabas.raft.member import Member
from barnabas.raft.messages import FetchVerdict
from barnabas.raft.roles import Leader, Unattached
from barnabas.raft.voters import ReplicaKey, Voters
from barnabas.wire.errors import ErrorCode


class Leading(Member):
    """How far the voters are, by their fetches and the own disk."""

    def flushed(self, end_offset: int, now_ms: int) -> None:
        """This node's log is durable up to there, by a flush that began after any truncation."""
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
                # A sole voter is held to no time; those who join it have had none to fetch in.
                leader.resign_at_ms = max(leader.resign_at_ms, now_ms + self._check_quorum_ms())
                self._commit(leader, now_ms)
            case Unattached() as role if role.stand_at_ms is None:
                role.stand_at_ms = now_ms + self._election_timeout_ms()

    def resign(self, now_ms: int) -> None:
        """Lead no longer, and tell the others; without effect unless this node leads."""
        if isinstance(self.role, Leader):
            self._resign(self.role, now_ms)

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
