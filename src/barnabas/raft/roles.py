"""The roles a member of the quorum can have, each with what it knows while it lasts.

    role         from                               when
    Unattached   any                                it hears of a newer epoch without a leader
    Prospective  Unattached, Follower, Candidate    its timer ends and it has a vote
    Candidate    Prospective                        a majority would vote for it
    Leader       Candidate                          a majority did
    Follower     any but Leader                     it hears who leads its epoch
    Resigned     Leader; a start after leading      it stops, or no majority fetches from it

An observer, a replica without a vote, is Unattached or Follower.
"""

from dataclasses import dataclass, field

from barnabas.raft.replica_progress import QuorumProgress
from barnabas.raft.voters import ReplicaKey, VoterSet

NO_NODE = -1


class VoteTally:
    """The votes for one nominee, who votes for itself."""

    __slots__ = ("_voters", "granted", "rejected")

    def __init__(self, voters: VoterSet, nominee_id: int) -> None:
        self._voters = voters
        self.granted = {nominee_id}
        self.rejected: set[int] = set()

    def record(self, voter_id: int, granted: bool) -> None:
        (self.granted if granted else self.rejected).add(voter_id)
        (self.rejected if granted else self.granted).discard(voter_id)

    @property
    def is_won(self) -> bool:
        return self._voters.is_majority(self.granted)

    @property
    def is_lost(self) -> bool:
        possible = set(self._voters.ids()) - self.rejected
        return not self._voters.is_majority(possible)

    def pending_voters(self) -> list[ReplicaKey]:
        """Who has not answered yet."""
        answered = self.granted | self.rejected
        return [key for key in self._voters.replicas() if key.node_id not in answered]


@dataclass(slots=True)
class Unattached:
    """Follows nobody: no leader of its epoch is known, or not where it is."""

    epoch: int
    leader_id: int = NO_NODE
    voted_key: ReplicaKey | None = None
    election_at_ms: int | None = None


@dataclass(slots=True)
class Prospective:
    """Asks who would vote for it, before it disturbs anyone with a new epoch (KIP-996)."""

    epoch: int
    leader_id: int
    voted_key: ReplicaKey | None
    votes: VoteTally
    timeout_at_ms: int
    # How many elections in a row were lost; longer pauses follow.
    lost_elections: int = 0


@dataclass(slots=True)
class Candidate:
    """Asks to lead its epoch."""

    epoch: int
    votes: VoteTally
    timeout_at_ms: int
    lost_elections: int = 0


@dataclass(slots=True)
class Follower:
    """Fetches from the leader of its epoch."""

    epoch: int
    leader_id: int
    voted_key: ReplicaKey | None
    # When the leader counts as gone, unless a good answer comes from it.
    fetch_timeout_at_ms: int
    # Whether the leader has answered a fetch and nothing since says that it is gone.
    is_leader_reachable: bool = False
    # Whether the connection to the leader broke, or it was silent for too long.
    has_lost_leader: bool = False


@dataclass(slots=True)
class Leader:
    """Leads its epoch, which begins at `start_offset`."""

    epoch: int
    start_offset: int
    progress: QuorumProgress
    resign_at_ms: int
    announce_at_ms: int
    # Everything below it is committed; -1 until a record of this epoch is.
    high_watermark: int = -1
    # Voters that fetched since a majority last had.
    fetched_voters: set[int] = field(default_factory=set)
    # Voters that must be told who leads.
    unacknowledged: set[int] = field(default_factory=set)


@dataclass(slots=True)
class Resigned:
    """Led its epoch, and never will again in it. `unacknowledged` must still be told."""

    epoch: int
    leader_id: int
    candidates: tuple[ReplicaKey, ...]
    unacknowledged: set[int]
    unattach_at_ms: int


Role = Unattached | Prospective | Candidate | Follower | Leader | Resigned
