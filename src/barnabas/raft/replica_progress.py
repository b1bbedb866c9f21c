"""How far every replica has fetched, as the leader sees it."""

from dataclasses import dataclass

from barnabas.raft.voters import ReplicaKey, VoterSet

OBSERVER_SESSION_MS = 300_000
UNKNOWN = -1


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
