"""A raft node that tests step by hand."""

from collections.abc import Sequence
from random import Random

from tests.simulation.raft.memory_log import MemoryLog, Record

from barnabas.raft.messages import QuorumState, RaftVoteRequest, RaftVoteResponse, SendVote
from barnabas.raft.raft_node import RaftNode, RaftTimeouts
from barnabas.raft.roles import NO_NODE
from barnabas.raft.voters import ReplicaKey, VoterNode, VoterSet
from barnabas.wire.errors import ErrorCode

TIMEOUTS = RaftTimeouts(election_ms=1000, fetch_ms=2000, backoff_max_ms=1000)
ELECTION_MS = 2 * TIMEOUTS.election_ms  # the longest that an election timeout can be
NONE = ErrorCode.NONE


def key(node_id: int) -> ReplicaKey:
    return ReplicaKey(node_id, bytes([node_id % 256]) * 16)


def voters_of(*node_ids: int) -> VoterSet:
    return VoterSet(VoterNode(item, key(item).directory_id, ()) for item in node_ids)


def log_of(*epochs: int) -> MemoryLog:
    """A durable log with one record of each of these epochs."""
    log = MemoryLog(voters_of())
    for epoch in epochs:
        log.append(Record(epoch, ""))
    log.durable_end_offset = log.end_offset
    return log


class Member:
    """Node 1, its log, and its time."""

    def __init__(
        self,
        voters: Sequence[int] | VoterSet = (1, 2, 3),
        *,
        epoch: int = 0,
        leader_id: int = NO_NODE,
        voted: int = NO_NODE,
        log: MemoryLog | None = None,
    ) -> None:
        directory_id = key(voted).directory_id if voted != NO_NODE else bytes(16)
        state = QuorumState(epoch, leader_id, voted, directory_id)
        self.log = log or log_of()
        self.now_ms = 0
        voter_set = voters if isinstance(voters, VoterSet) else voters_of(*voters)
        self.raft = RaftNode(key(1), voter_set, state, self.log, TIMEOUTS, Random(1), 0)

    def wait(self, duration_ms: int) -> None:
        """Let time pass, with every tick that is due."""
        end_ms = self.now_ms + duration_ms
        while (due_ms := self.raft.deadline_ms) is not None and due_ms <= end_ms:
            self.now_ms = max(due_ms, self.now_ms)
            self.raft.tick(self.now_ms)
        self.now_ms = end_ms

    def wait_for_timer(self) -> None:
        """Let its timer end."""
        assert self.raft.deadline_ms is not None
        self.wait(self.raft.deadline_ms - self.now_ms)

    def respond(self, *voter_ids: int, granted: bool = True) -> None:
        """These voters respond to the pending vote requests."""
        for voter_id in voter_ids:
            result = RaftVoteResponse(NONE, NO_NODE, self.raft.epoch, granted)
            self.raft.election.on_vote_response(voter_id, result, self.now_ms)

    def vote_requests(self) -> list[RaftVoteRequest]:
        return [item.request for item in self.raft.pending_requests() if isinstance(item, SendVote)]

    def append(self, count: int = 1, *, flushed: bool = True) -> None:
        for _ in range(count):
            self.log.append(Record(self.raft.epoch, ""))
        if flushed:
            self.raft.on_flushed(self.log.end_offset, self.now_ms)

    def fetch(self, node_id: int, offset: int | None = None) -> None:
        """A replica fetches from its end of a log that agrees."""
        at = self.log.end_offset if offset is None else offset
        epoch = self.log.at(at - 1).epoch if at > 0 else 0
        self.raft.leadership.on_fetch_request(key(node_id), self.raft.epoch, at, epoch, self.now_ms)


def leader(
    voters: Sequence[int] = (1, 2, 3), *, log: MemoryLog | None = None, epoch: int = 0
) -> Member:
    """Node 1 after it won an election, with the first record of its epoch on disk."""
    member = Member(voters, log=log, epoch=epoch)
    if not member.raft.is_leader:
        member.wait_for_timer()
        member.respond(*voters[1:])
        member.respond(*voters[1:])
    assert member.raft.is_leader
    member.append()
    member.raft.take_effects()
    return member


def vote(
    candidate: int,
    epoch: int,
    last_epoch: int = 0,
    last_offset: int = 0,
    *,
    pre_vote: bool = False,
    voter: ReplicaKey | None = None,
) -> RaftVoteRequest:
    return RaftVoteRequest(key(candidate), epoch, last_epoch, last_offset, pre_vote, voter)
