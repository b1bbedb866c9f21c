"""The roles of a node in the quorum, each with its state, and the transitions between them.

    role         from                               when
    Unattached   any                                a newer epoch has no known leader
    Prospective  Unattached, Follower, Candidate    the timer of a voter ends
    Candidate    Prospective                        a majority grants the pre-vote
    Leader       Candidate                          a majority grants the vote
    Follower     any but Leader                     the leader of the epoch is known
    Resigned     Leader; a start after leading      the node stops, or no majority fetches from it

An observer, a replica without a vote, is Unattached or Follower. A leader records how far every
replica has fetched.
"""

from dataclasses import dataclass, field

from barnabas.raft.voters import ReplicaKey, VoterSet

NO_NODE = -1
UNKNOWN = -1
OBSERVER_SESSION_MS = 300_000


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
class ReplicaProgress:
    """One replica. `end_offset` is the offset up to which its log is durable."""

    key: ReplicaKey
    end_offset: int = UNKNOWN
    last_fetch_ms: int = UNKNOWN
    last_caught_up_ms: int = UNKNOWN
    # The end offset of the leader's log at the last fetch of this replica.
    leader_end_offset: int = UNKNOWN

    def on_fetch(self, offset: int, leader_end_offset: int, now_ms: int) -> None:
        if offset >= leader_end_offset:
            self.last_caught_up_ms = max(self.last_caught_up_ms, now_ms)
        elif 0 < self.leader_end_offset <= offset:
            # It has all that the leader had at its previous fetch: it was caught up then.
            self.last_caught_up_ms = max(self.last_caught_up_ms, self.last_fetch_ms)
        self.leader_end_offset = leader_end_offset
        self.last_fetch_ms = max(self.last_fetch_ms, now_ms)
        self.end_offset = offset


class QuorumProgress:
    """The progress of the voters and observers of one epoch."""

    __slots__ = ("_observers", "_voters", "voters")

    def __init__(self, voters: VoterSet) -> None:
        self._voters: dict[int, ReplicaProgress] = {}
        self._observers: dict[ReplicaKey, ReplicaProgress] = {}
        self.update_voters(voters)

    def update_voters(self, voters: VoterSet) -> None:
        """Adopts other voters; the progress of a replica is kept when its role changes."""
        before = self._voters
        self.voters = voters
        self._voters = {}
        for key in voters.replicas():
            progress = before.pop(key.node_id, None)
            if progress is not None and not key.matches(progress.key):
                self._observers[progress.key] = progress
                progress = None
            progress = progress or self._observers.pop(key, None) or ReplicaProgress(key)
            progress.key = key
            self._voters[key.node_id] = progress
        for removed in before.values():
            self._observers[removed.key] = removed

    def get_or_add(self, replica: ReplicaKey, now_ms: int) -> ReplicaProgress:
        """Returns the progress of a replica; a new replica is added as an observer."""
        voter = self._voters.get(replica.node_id)
        if voter is not None and voter.key.matches(replica):
            return voter
        observer = self._observers.get(replica)
        if observer is None:
            self._remove_expired_observers(now_ms)
            observer = self._observers[replica] = ReplicaProgress(replica)
        return observer

    def voters_progress(self) -> list[ReplicaProgress]:
        return [self._voters[node_id] for node_id in sorted(self._voters)]

    def observers_progress(self, now_ms: int) -> list[ReplicaProgress]:
        """Returns the progress of the replicas without a vote that fetched recently."""
        self._remove_expired_observers(now_ms)
        return [self._observers[key] for key in sorted(self._observers)]

    def _remove_expired_observers(self, now_ms: int) -> None:
        self._observers = {
            key: observer
            for key, observer in self._observers.items()
            if now_ms - observer.last_fetch_ms < OBSERVER_SESSION_MS
        }

    def majority_end_offset(self) -> int:
        """Returns the largest offset up to which a majority of the voters has the log on disk."""
        ends = {node_id: voter.end_offset for node_id, voter in self._voters.items()}
        return self.voters.majority_offset(ends)

    def voters_by_end_offset(self) -> list[ReplicaKey]:
        """Returns the voters, the one with the largest end offset first."""
        ranked = sorted(self._voters.values(), key=lambda voter: (-voter.end_offset, voter.key))
        return [voter.key for voter in ranked]


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
