"""The invariants of the consensus, checked at every step that could violate them."""

from collections.abc import Callable
from typing import Any, Protocol

from tests.raft.simulation.disk import Disk, Record, Snapshot

from barnabas.raft.messages import QuorumState, RaftVoteRequest, RaftVoteResponse
from barnabas.raft.roles import Candidate, Leader, Role
from barnabas.raft.voters import ReplicaKey


class Violation(AssertionError):  # noqa: N818 - the domain's word for it
    """A invariant was broken."""


class Replica(Protocol):
    """What the checkers see of a node."""

    id: int
    key: ReplicaKey
    disk: Disk

    @property
    def raft(self) -> Any: ...


class Checkers:
    """The invariants that every run is checked against."""

    def __init__(self) -> None:
        self.replicas: list[Replica] = []
        # Called for every new leader, and for every node that has just voted.
        self.elected: Callable[[int], None] = lambda node_id: None
        self.voted: Callable[[int], None] = lambda node_id: None
        self.committed_records: list[Record] = []
        self.leaders: dict[int, int] = {}
        self._voted: dict[tuple[int, int], int] = {}
        # Every record ever written, with the epoch of the one before it.
        self._written: dict[tuple[int, int], tuple[Record, int]] = {}
        self._high_watermarks: dict[int, int] = {}

    def _claim(self, kept: bool, invariant: str, description: str) -> None:
        if not kept:
            raise Violation(f"{invariant}: {description}")

    def started(self, node: Replica) -> None:
        self._high_watermarks[node.id] = 0

    # Elections

    def role_changed(self, node: Replica, role: Role) -> None:
        match role:
            case Candidate(epoch=epoch):
                self._vote(node, epoch, node.id)
            case Leader(epoch=epoch):
                led = self.leaders.setdefault(epoch, node.id)
                description = f"{led} and {node.id} lead epoch {epoch}"
                self._claim(led == node.id, "one leader per epoch", description)
                self._check_completeness(node)
                self.elected(node.id)

    def _check_completeness(self, leader: Replica) -> None:
        log = leader.disk.log
        for offset in range(log.start_offset, len(self.committed_records)):
            record = self.committed_records[offset]
            held = log.at(offset) if offset < log.end_offset else None
            description = f"{leader.id} leads with {held} at {offset}, where {record} is committed"
            self._claim(held == record, "leader completeness", description)

    def votes(self, node: Replica, request: RaftVoteRequest, response: RaftVoteResponse) -> None:
        if response.granted and not request.pre_vote:
            self._vote(node, request.epoch, request.candidate.node_id)
            kept = (node.disk.state.epoch, node.disk.state.voted_id)
            sent = (request.epoch, request.candidate.node_id)
            self._claim(
                kept == sent, "durable votes", f"{node.id} sends {sent}, has {kept} on disk"
            )
            self.voted(node.id)

    def _vote(self, node: Replica, epoch: int, candidate_id: int) -> None:
        given = self._voted.setdefault((node.id, epoch), candidate_id)
        description = f"{node.id} votes for {given} and {candidate_id} in epoch {epoch}"
        self._claim(given == candidate_id, "one vote per epoch", description)

    def persists(self, node: Replica, state: QuorumState) -> None:
        before = node.disk.state.epoch
        description = f"{node.id} goes from {before} to {state.epoch}"
        self._claim(state.epoch >= before, "epochs never fall", description)

    def sends(self, node: Replica, request: Any) -> None:
        self._check_epoch(node)

    def responses(self, node: Replica) -> None:
        self._check_epoch(node)

    def _check_epoch(self, node: Replica) -> None:
        kept, shown = node.disk.state.epoch, node.raft.epoch
        self._claim(kept == shown, "durable epochs", f"{node.id} shows {shown}, has {kept} on disk")

    # Logs

    def appends(self, node: Replica, record: Record) -> None:
        log = node.disk.log
        offset_and_epoch = (log.end_offset, record.epoch)
        first = self._written.setdefault(offset_and_epoch, (record, log.last_epoch))
        description = (
            f"{node.id} writes {(record, log.last_epoch)} at {offset_and_epoch}, where {first} was"
        )
        self._claim(first == (record, log.last_epoch), "log matching", description)

    def truncates(self, node: Replica, end_offset: int) -> None:
        committed = node.raft.high_watermark
        description = f"{node.id} truncates to {end_offset}, committed is {committed}"
        self._claim(end_offset >= committed, "committed stays", description)

    def installs(self, node: Replica, snapshot: Snapshot) -> None:
        committed = len(self.committed_records)
        description = f"{node.id} installs {snapshot.id}, committed is {committed}"
        self._claim(snapshot.id.end_offset <= committed, "snapshots are committed", description)

    # Commits

    def committed(self, node: Replica, offset: int) -> None:
        before = self._high_watermarks[node.id]
        description = f"{node.id} goes from {before} to {offset}"
        self._claim(offset > before, "high watermarks rise", description)
        self._high_watermarks[node.id] = offset
        log = node.disk.log
        for newly_committed in range(max(before, log.start_offset), offset):
            record = log.at(newly_committed)
            if newly_committed == len(self.committed_records):
                self._check_majority(node, newly_committed)
                self.committed_records.append(record)
            agreed = self.committed_records[newly_committed]
            description = f"{node.id} commits {record} at {newly_committed}, others {agreed}"
            self._claim(record == agreed, "one history", description)

    def _check_majority(self, leader: Replica, offset: int) -> None:
        record = leader.disk.log.at(offset)
        holders = [replica.id for replica in self.replicas if _has_durable(replica, offset, record)]
        voters = leader.raft.voters
        description = (
            f"{leader.id} commits {offset}, only {holders} of {voters.ids()} have it on disk"
        )
        self._claim(voters.is_majority(holders), "committed by a majority's disks", description)


def _has_durable(replica: Replica, offset: int, record: Record) -> bool:
    log = replica.disk.log
    if offset < log.start_offset:
        return True
    return offset < log.durable_end_offset and log.at(offset) == record
