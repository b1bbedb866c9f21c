"""The promises of the consensus, each checked at every step that could break it."""

from collections.abc import Callable
from typing import Any, Protocol

from tests.raft.simulation.disk import Disk, Record, Snapshot

from barnabas.raft.effects import QuorumState
from barnabas.raft.messages import RaftVoteRequest, RaftVoteResponse
from barnabas.raft.roles import Candidate, Leader, Role
from barnabas.raft.voters import ReplicaKey


class Violation(AssertionError):  # noqa: N818 - the domain's word for it
    """A promise was broken."""


class Replica(Protocol):
    """What the checkers see of a node."""

    id: int
    key: ReplicaKey
    disk: Disk

    @property
    def raft(self) -> Any: ...


class Checkers:
    """All that a whole run is held against."""

    def __init__(self) -> None:
        self.replicas: list[Replica] = []
        # Who wants to know of every new leader, and of everyone who has just voted.
        self.elected: Callable[[int], None] = lambda node_id: None
        self.voted_key: Callable[[int], None] = lambda node_id: None
        self.committed_records: list[Record] = []
        self.leaders: dict[int, int] = {}
        self._voted: dict[tuple[int, int], int] = {}
        # Every record ever written, with the epoch of the one before it.
        self._written: dict[tuple[int, int], tuple[Record, int]] = {}
        self._high_watermarks: dict[int, int] = {}

    def _claim(self, kept: bool, promise: str, told: str) -> None:
        if not kept:
            raise Violation(f"{promise}: {told}")

    def started(self, node: Replica) -> None:
        self._high_watermarks[node.id] = 0

    # Elections

    def role_changed(self, node: Replica, role: Role) -> None:
        match role:
            case Candidate(epoch=epoch):
                self._vote(node, epoch, node.id)
            case Leader(epoch=epoch):
                led = self.leaders.setdefault(epoch, node.id)
                told = f"{led} and {node.id} lead epoch {epoch}"
                self._claim(led == node.id, "one leader per epoch", told)
                self._check_completeness(node)
                self.elected(node.id)

    def _check_completeness(self, leader: Replica) -> None:
        log = leader.disk.log
        for offset in range(log.start_offset, len(self.committed_records)):
            record = self.committed_records[offset]
            held = log.at(offset) if offset < log.end_offset else None
            told = f"{leader.id} leads with {held} at {offset}, where {record} is committed"
            self._claim(held == record, "leader completeness", told)

    def votes(self, node: Replica, asked: RaftVoteRequest, told: RaftVoteResponse) -> None:
        if told.granted and not asked.pre_vote:
            self._vote(node, asked.epoch, asked.candidate.node_id)
            kept = (node.disk.state.epoch, node.disk.state.voted_id)
            said = (asked.epoch, asked.candidate.node_id)
            self._claim(kept == said, "durable votes", f"{node.id} says {said}, keeps {kept}")
            self.voted_key(node.id)

    def _vote(self, node: Replica, epoch: int, candidate_id: int) -> None:
        given = self._voted.setdefault((node.id, epoch), candidate_id)
        told = f"{node.id} votes for {given} and {candidate_id} in epoch {epoch}"
        self._claim(given == candidate_id, "one vote per epoch", told)

    def persists(self, node: Replica, state: QuorumState) -> None:
        before = node.disk.state.epoch
        told = f"{node.id} goes from {before} to {state.epoch}"
        self._claim(state.epoch >= before, "epochs never fall", told)

    def sends(self, node: Replica, request: Any) -> None:
        self._check_epoch(node)

    def answers(self, node: Replica) -> None:
        self._check_epoch(node)

    def _check_epoch(self, node: Replica) -> None:
        kept, shown = node.disk.state.epoch, node.raft.epoch
        self._claim(kept == shown, "durable epochs", f"{node.id} shows {shown}, keeps {kept}")

    # Logs

    def appends(self, node: Replica, record: Record) -> None:
        log = node.disk.log
        place = (log.end_offset, record.epoch)
        first = self._written.setdefault(place, (record, log.last_epoch))
        told = f"{node.id} writes {(record, log.last_epoch)} at {place}, where {first} was"
        self._claim(first == (record, log.last_epoch), "log matching", told)

    def truncates(self, node: Replica, end_offset: int) -> None:
        committed = node.raft.high_watermark
        told = f"{node.id} truncates to {end_offset}, committed is {committed}"
        self._claim(end_offset >= committed, "committed stays", told)

    def installs(self, node: Replica, snapshot: Snapshot) -> None:
        committed = len(self.committed_records)
        told = f"{node.id} installs {snapshot.id}, committed is {committed}"
        self._claim(snapshot.id.end_offset <= committed, "snapshots are committed", told)

    # Commits

    def committed(self, node: Replica, offset: int) -> None:
        before = self._high_watermarks[node.id]
        told = f"{node.id} goes from {before} to {offset}"
        self._claim(offset > before, "high watermarks rise", told)
        self._high_watermarks[node.id] = offset
        log = node.disk.log
        for each in range(max(before, log.start_offset), offset):
            record = log.at(each)
            if each == len(self.committed_records):
                self._check_majority(node, each)
                self.committed_records.append(record)
            agreed = self.committed_records[each]
            told = f"{node.id} commits {record} at {each}, others {agreed}"
            self._claim(record == agreed, "one history", told)

    def _check_majority(self, leader: Replica, offset: int) -> None:
        record = leader.disk.log.at(offset)
        holders = [each.id for each in self.replicas if _has_durable(each, offset, record)]
        voters = leader.raft.voters
        told = f"{leader.id} commits {offset}, of {voters.ids()} only {holders} have it on disk"
        self._claim(voters.is_majority(holders), "committed by a majority's disks", told)


def _has_durable(replica: Replica, offset: int, record: Record) -> bool:
    log = replica.disk.log
    if offset < log.start_offset:
        return True
    return offset < log.durable_end_offset and log.at(offset) == record
