"""How far each replica has fetched, as the leader sees it."""

from dataclasses import dataclass

from barnabas.raft.voters import ReplicaKey, VoterSet

OBSERVER_SESSION_MS = 300_000
UNKNOWN = -1


@dataclass(slots=True)
class ReplicaProgress:
    """One replica: `end_offset` is how far its log is durable."""

    key: ReplicaKey
    end_offset: int = UNKNOWN
    last_fetch_ms: int = UNKNOWN
    last_caught_up_ms: int = UNKNOWN
    # Where the leader's log ended when this replica fetched last.
    leader_end_offset: int = UNKNOWN

    def on_fetch(self, offset: int, leader_end_offset: int, now_ms: int) -> None:
        if offset >= leader_end_offset:
            self.last_caught_up_ms = max(self.last_caught_up_ms, now_ms)
        elif 0 < self.leader_end_offset <= offset:
            # It has what the leader had at its last fetch: it was caught up then.
            self.last_caught_up_ms = max(self.last_caught_up_ms, self.last_fetch_ms)
        self.leader_end_offset = leader_end_offset
        self.last_fetch_ms = max(self.last_fetch_ms, now_ms)
        self.end_offset = offset


class QuorumProgress:
    """The voters and the observers of one epoch."""

    __slots__ = ("_observers", "_voters", "voters")

    def __init__(self, voters: VoterSet) -> None:
        self._voters: dict[int, ReplicaProgress] = {}
        self._observers: dict[ReplicaKey, ReplicaProgress] = {}
        self.update_voters(voters)

    def update_voters(self, voters: VoterSet) -> None:
        """Other voters count from now on; what is known of a replica stays."""
        before = self._voters
        self.voters = voters
        self._voters = {}
        for key in voters.replicas():
            known = before.pop(key.node_id, None)
            if known is not None and not key.matches(known.key):
                self._observers[known.key] = known
                known = None
            known = known or self._observers.pop(key, None) or ReplicaProgress(key)
            known.key = key
            self._voters[key.node_id] = known
        for removed in before.values():
            self._observers[removed.key] = removed

    def get_or_add(self, replica: ReplicaKey, now_ms: int) -> ReplicaProgress:
        """What is known of a replica; one that is new becomes an observer."""
        voter = self._voters.get(replica.node_id)
        if voter is not None and voter.key.matches(replica):
            return voter
        observer = self._observers.get(replica)
        if observer is None:
            self._forget_silent_observers(now_ms)
            observer = self._observers[replica] = ReplicaProgress(replica)
        return observer

    def voters_progress(self) -> list[ReplicaProgress]:
        return [self._voters[node_id] for node_id in sorted(self._voters)]

    def observers_progress(self, now_ms: int) -> list[ReplicaProgress]:
        """The replicas that fetched lately without a vote."""
        self._forget_silent_observers(now_ms)
        return [self._observers[key] for key in sorted(self._observers)]

    def _forget_silent_observers(self, now_ms: int) -> None:
        self._observers = {
            key: each
            for key, each in self._observers.items()
            if now_ms - each.last_fetch_ms < OBSERVER_SESSION_MS
        }

    def majority_end_offset(self) -> int:
        """The largest offset that a majority of the voters has on disk."""
        ends = {node_id: each.end_offset for node_id, each in self._voters.items()}
        return self.voters.majority_offset(ends)

    def voters_by_end_offset(self) -> list[ReplicaKey]:
        ranked = sorted(self._voters.values(), key=lambda each: (-each.end_offset, each.key))
        return [each.key for each in ranked]
