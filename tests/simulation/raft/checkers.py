"""The invariants of the consensus, checked at every step that could violate them."""

from collections.abc import Callable
from typing import Any, Protocol

from tests.simulation.raft.memory_log import Disk, Record, Snapshot
from tests.simulation.world.events import Violation

from barnabas.raft.messages import QuorumState, RaftVoteRequest, RaftVoteResponse
from barnabas.raft.roles import Candidate, Leader, Role
from barnabas.raft.voters import ReplicaKey


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
        self.on_elected: Callable[[int], None] = lambda node_id: None
        self.on_voted: Callable[[int], None] = lambda node_id: None
        self.committed_records: list[Record] = []
        self.leaders: dict[int, int] = {}
        self._voted: dict[tuple[int, int], int] = {}
        # Every record ever written, with the epoch of the one before it.
        self._written: dict[tuple[int, int], tuple[Record, int]] = {}
        self._high_watermarks: dict[int, int] = {}

    def _require(self, holds: bool, invariant: str, description: str) -> None:
        if not holds:
            violation = Violation(description)
            violation.promise = invariant
            raise violation

    def on_started(self, node: Replica) -> None:
        self._high_watermarks[node.id] = 0

    # Elections

    def on_role_changed(self, node: Replica, role: Role) -> None:
        match role:
            case Candidate(epoch=epoch):
                self._vote(node, epoch, node.id)
            case Leader(epoch=epoch):
                led = self.leaders.setdefault(epoch, node.id)
                description = f"{led} and {node.id} lead epoch {epoch}"
                self._require(led == node.id, "one leader per epoch", description)
                self._check_completeness(node)
                self.on_elected(node.id)

    def _check_completeness(self, leader: Replica) -> None:
        log = leader.disk.log
        for offset in range(log.start_offset, len(self.committed_records)):
            record = self.committed_records[offset]
            actual = log.at(offset) if offset < log.end_offset else None
            description = (
                f"{leader.id} leads with {actual} at {offset}, where {record} is committed"
            )
            self._require(actual == record, "leader completeness", description)

    def on_vote_response(
        self, node: Replica, request: RaftVoteRequest, response: RaftVoteResponse
    ) -> None:
        if response.granted and not request.pre_vote:
            self._vote(node, request.epoch, request.candidate.node_id)
            on_disk = (node.disk.state.epoch, node.disk.state.voted_id)
            sent = (request.epoch, request.candidate.node_id)
            self._require(
                on_disk == sent, "durable votes", f"{node.id} sends {sent}, has {on_disk} on disk"
            )
            self.on_voted(node.id)

    def _vote(self, node: Replica, epoch: int, candidate_id: int) -> None:
        voted = self._voted.setdefault((node.id, epoch), candidate_id)
        description = f"{node.id} votes for {voted} and {candidate_id} in epoch {epoch}"
        self._require(voted == candidate_id, "one vote per epoch", description)

    def on_persist(self, node: Replica, state: QuorumState) -> None:
        before = node.disk.state.epoch
        description = f"{node.id} goes from {before} to {state.epoch}"
        self._require(state.epoch >= before, "epochs never fall", description)

    def on_request_sent(self, node: Replica, request: Any) -> None:
        self._check_epoch(node)

    def on_response_sent(self, node: Replica) -> None:
        self._check_epoch(node)

    def _check_epoch(self, node: Replica) -> None:
        on_disk, sent = node.disk.state.epoch, node.raft.epoch
        self._require(
            on_disk == sent, "durable epochs", f"{node.id} sends {sent}, has {on_disk} on disk"
        )

    # Logs

    def on_append(self, node: Replica, record: Record) -> None:
        log = node.disk.log
        offset_and_epoch = (log.end_offset, record.epoch)
        first = self._written.setdefault(offset_and_epoch, (record, log.last_epoch))
        description = (
            f"{node.id} writes {(record, log.last_epoch)} at {offset_and_epoch}, where {first} was"
        )
        self._require(first == (record, log.last_epoch), "log matching", description)

    def on_truncate(self, node: Replica, end_offset: int) -> None:
        committed = node.raft.high_watermark
        description = f"{node.id} truncates to {end_offset}, committed is {committed}"
        self._require(end_offset >= committed, "committed records are not truncated", description)

    def on_snapshot_installed(self, node: Replica, snapshot: Snapshot) -> None:
        committed = len(self.committed_records)
        description = f"{node.id} installs {snapshot.id}, committed is {committed}"
        self._require(snapshot.id.end_offset <= committed, "snapshots are committed", description)

    # Commits

    def on_committed(self, node: Replica, offset: int) -> None:
        before = self._high_watermarks[node.id]
        description = f"{node.id} goes from {before} to {offset}"
        self._require(offset > before, "high watermarks rise", description)
        self._high_watermarks[node.id] = offset
        log = node.disk.log
        for newly_committed in range(max(before, log.start_offset), offset):
            record = log.at(newly_committed)
            if newly_committed == len(self.committed_records):
                self._check_majority(node, newly_committed)
                self.committed_records.append(record)
            agreed = self.committed_records[newly_committed]
            description = f"{node.id} commits {record} at {newly_committed}, others {agreed}"
            self._require(record == agreed, "one committed log", description)

    def _check_majority(self, leader: Replica, offset: int) -> None:
        record = leader.disk.log.at(offset)
        on_disk = [replica.id for replica in self.replicas if _has_durable(replica, offset, record)]
        voters = leader.raft.voters
        description = (
            f"{leader.id} commits {offset}, only {on_disk} of {voters.ids()} have it on disk"
        )
        self._require(voters.is_majority(on_disk), "committed by a majority's disks", description)


def _has_durable(replica: Replica, offset: int, record: Record) -> bool:
    log = replica.disk.log
    if offset < log.start_offset:
        return True
    return offset < log.durable_end_offset and log.at(offset) == record
