"""The roles of a node in the quorum, each with its state, and the transitions between them.

    role         from                               when
    Unattached   any                                a newer epoch has no known leader
    Prospective  Unattached, Follower, Candidate    the timer of a voter ends
    Candidate    Prospective                        a majority grants the pre-vote
    Leader       Candidate                          a majority grants the vote
    Follower     any but Leader                     the leader of the epoch is known
    Resigned     Leader; a start after leading      the node stops, or no majority fetches from it

An observer, a replica without a vote, is Unattached or Follower.
"""

from dataclasses import dataclass, field

from barnabas.raft.replica_progress import QuorumProgress
from barnabas.raft.voters import ReplicaKey, VoterSet

NO_NODE = -1


class VoteTally:
    """The votes for one candidate, which votes for itself."""

    __slots__ = ("_voters", "granted", "rejected")

    def __init__(self, voters: VoterSet, candidate_id: int) -> None:
        self._voters = voters
        self.granted = {candidate_id}
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
        """Returns the voters that have not responded yet."""
        responded = self.granted | self.rejected
        return [key for key in self._voters.replicas() if key.node_id not in responded]


@dataclass(slots=True)
class Unattached:
    """Follows no leader: none of its epoch is known, or its address is not."""

    epoch: int
    leader_id: int = NO_NODE
    voted_key: ReplicaKey | None = None
    election_at_ms: int | None = None


@dataclass(slots=True)
class Prospective:
    """Requests pre-votes, before it interrupts the others with a new epoch (KIP-996)."""

    epoch: int
    leader_id: int
    voted_key: ReplicaKey | None
    votes: VoteTally
    timeout_at_ms: int
    # How many elections in a row were lost; the backoff grows with it.
    lost_elections: int = 0


@dataclass(slots=True)
class Candidate:
    """Requests votes to lead its epoch."""

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
    # When the leader is considered lost, unless it responds successfully before.
    fetch_timeout_at_ms: int
    # Whether the leader has responded to a fetch and was not lost since.
    is_leader_reachable: bool = False
    # Whether the connection to the leader broke, or the fetch timeout ended.
    has_lost_leader: bool = False


@dataclass(slots=True)
class Leader:
    """Leads its epoch, whose first record is at `start_offset`."""

    epoch: int
    start_offset: int
    progress: QuorumProgress
    resign_at_ms: int
    announce_at_ms: int
    # Every record below it is committed; -1 until a record of this epoch is.
    high_watermark: int = -1
    # Voters that fetched since a majority last did.
    fetched_voters: set[int] = field(default_factory=set)
    # Voters that have not acknowledged this leader.
    unacknowledged: set[int] = field(default_factory=set)


@dataclass(slots=True)
class Resigned:
    """Led its epoch, and never leads it again. `unacknowledged` voters do not know yet."""

    epoch: int
    leader_id: int
    candidates: tuple[ReplicaKey, ...]
    unacknowledged: set[int]
    unattach_at_ms: int


Role = Unattached | Prospective | Candidate | Follower | Leader | Resigned
