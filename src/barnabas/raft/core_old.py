"""The consensus of a quorum of one voter.

It is told what happened (`campaign`, `durable`) and returns what must be done about it. What it
promises rests on two orders that its caller keeps: a `QuorumState` is on disk before anything
that follows from it is sent or appended, and an end offset is reported only when it is durable.
"""

from dataclasses import dataclass, field

from barnabas.raft.effects import LeaderChange, QuorumState
from barnabas.raft.roles import NOBODY
from barnabas.raft.voters import Voter, Voters


@dataclass(slots=True, frozen=True)
class Unattached:
    """Knows no leader in its epoch."""

    epoch: int


@dataclass(slots=True, frozen=True)
class Candidate:
    """Asks to lead its epoch. `granted` holds those who voted for it, itself first."""

    epoch: int
    granted: frozenset[int]


@dataclass(slots=True)
class Leader:
    """Leads its epoch, which begins at `start_offset`.

    `end_offsets` is how far each voter's log is durable, this node's own included.
    """

    epoch: int
    start_offset: int
    end_offsets: dict[int, int] = field(default_factory=dict)


Role = Unattached | Candidate | Leader


@dataclass(slots=True, frozen=True)
class Effects:
    """What to do, in this order: write the state to disk, then append the record."""

    persist: QuorumState | None = None
    append: LeaderChange | None = None


class Raft:
    """One node's part in the quorum."""

    __slots__ = ("_end_offset", "high_watermark", "node", "role", "voters")

    def __init__(self, node: Voter, voters: Voters, state: QuorumState, end_offset: int) -> None:
        self.node = node
        self.voters = voters
        self.role: Role = Unattached(state.epoch)
        self._end_offset = end_offset
        # Everything below it is committed; it never falls.
        self.high_watermark = 0

    @property
    def epoch(self) -> int:
        return self.role.epoch

    @property
    def leader_id(self) -> int:
        return self.node.node_id if isinstance(self.role, Leader) else NOBODY

    def campaign(self) -> list[Effects]:
        """Stand for election in a new epoch; alone in the quorum, win it at once."""
        node_id = self.node.node_id
        self.role = Candidate(self.epoch + 1, frozenset((node_id,)))
        vote = QuorumState(self.epoch, voted_id=node_id, voted_directory_id=self.node.directory_id)
        return [Effects(persist=vote), *self._win_if_elected()]

    def _win_if_elected(self) -> list[Effects]:
        candidate = self.role
        if not isinstance(candidate, Candidate) or not self.voters.is_majority(candidate.granted):
            return []
        node_id = self.node.node_id
        self.role = Leader(candidate.epoch, self._end_offset)
        change = LeaderChange(node_id, self.voters.ids(), sorted(candidate.granted))
        return [Effects(persist=QuorumState(candidate.epoch, node_id), append=change)]

    def appended(self, end_offset: int) -> None:
        """This node's log has grown."""
        self._end_offset = end_offset

    def durable(self, node_id: int, end_offset: int) -> int:
        """A voter's log is on disk up to there; returns the high watermark.

        A leader commits nothing before it has a majority for a record of its own epoch: what
        earlier leaders left behind is committed together with that record.
        """
        leader = self.role
        if isinstance(leader, Leader):
            leader.end_offsets[node_id] = end_offset
            reached = self.voters.majority_offset(leader.end_offsets)
            if reached > leader.start_offset:
                self.high_watermark = max(self.high_watermark, reached)
        return self.high_watermark
