"""Elections, and the announcements that begin and end an epoch."""

from typing import TYPE_CHECKING

from barnabas.raft.messages import (
    BeginEpochRequest,
    EndEpochRequest,
    EpochResponse,
    RaftVoteRequest,
    RaftVoteResponse,
)
from barnabas.raft.roles import (
    NO_NODE,
    Candidate,
    Follower,
    Leader,
    Prospective,
    Resigned,
    Unattached,
)
from barnabas.raft.voters import ReplicaKey
from barnabas.wire.errors import ErrorCode

if TYPE_CHECKING:
    from barnabas.raft.raft_node import RaftNode

_ELECTION_BACKOFF_MS = 50


class QuorumElection:
    """Handles Vote, BeginQuorumEpoch and EndQuorumEpoch: requests to and responses for a node."""

    __slots__ = ("_node",)

    def __init__(self, node: "RaftNode") -> None:
        self._node = node

    # Requests of other nodes

    def on_vote_request(self, request: RaftVoteRequest, now_ms: int) -> RaftVoteResponse:
        node = self._node
        last_epoch_limit = request.epoch if request.pre_vote else request.epoch - 1
        if not 0 <= request.last_epoch <= last_epoch_limit or request.last_offset < 0:
            return self._vote_response(ErrorCode.INVALID_REQUEST)
        error = self._request_error(request.candidate.node_id, request.epoch)
        if error is not ErrorCode.NONE:
            return self._vote_response(error)
        if request.epoch > node.epoch:
            node.become_unattached(request.epoch, now_ms)
        if not self._is_for_this_node(request.voter):
            return self._vote_response(ErrorCode.INVALID_VOTER_KEY)
        granted = self._can_grant_vote(request)
        if granted and not request.pre_vote:
            self._vote_for(request.candidate, now_ms)
        return self._vote_response(ErrorCode.NONE, granted)

    def _vote_response(self, error: ErrorCode, granted: bool = False) -> RaftVoteResponse:
        return RaftVoteResponse(error, self._node.leader_id, self._node.epoch, granted)

    def _can_grant_vote(self, request: RaftVoteRequest) -> bool:
        own_end = (self._node.log.last_epoch, self._node.log.end_offset)
        up_to_date = (request.last_epoch, request.last_offset) >= own_end
        match self._node.role:
            case Leader():
                return False
            case Follower() as follower:
                return request.pre_vote and up_to_date and not follower.is_leader_reachable
            case Candidate() | Resigned():
                return request.pre_vote and up_to_date
            case role if request.pre_vote:
                return up_to_date
            case role if role.voted_key is not None:
                return role.voted_key.matches(request.candidate)
            case role:
                return role.leader_id == NO_NODE and up_to_date

    def _vote_for(self, candidate: ReplicaKey, now_ms: int) -> None:
        # The candidate's log is at least as good as this one: give it time to be elected.
        timeout_ms = self._node.random_election_timeout_ms
        match self._node.role:
            case Unattached() as role if role.voted_key is None:
                role.voted_key = candidate
                role.election_at_ms = now_ms + timeout_ms()
            case Prospective() as role if role.voted_key is None:
                role.voted_key = candidate
                role.timeout_at_ms = now_ms + timeout_ms()
        self._node.persist_state()

    def on_begin_epoch_request(self, request: BeginEpochRequest, now_ms: int) -> ErrorCode:
        error = self._request_error(request.leader_id, request.epoch)
        if error is not ErrorCode.NONE:
            return error
        self._node.on_leader_and_epoch(request.leader_id, request.epoch, now_ms)
        is_for_this_node = self._is_for_this_node(request.voter)
        return ErrorCode.NONE if is_for_this_node else ErrorCode.INVALID_VOTER_KEY

    def on_end_epoch_request(self, request: EndEpochRequest, now_ms: int) -> ErrorCode:
        """Schedules an election: the earlier, the further in front the leader lists this node."""
        error = self._request_error(request.leader_id, request.epoch)
        if error is not ErrorCode.NONE:
            return error
        self._node.on_leader_and_epoch(request.leader_id, request.epoch, now_ms)
        match self._node.role:
            case Follower() as follower if follower.leader_id == request.leader_id:
                delay_ms = self._successor_delay_ms(request.candidates)
                follower.fetch_timeout_at_ms = now_ms + delay_ms
                follower.is_leader_reachable = False
        return ErrorCode.NONE

    def _request_error(self, sender_id: int, epoch: int) -> ErrorCode:
        if epoch < self._node.epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        return ErrorCode.INVALID_REQUEST if sender_id < 0 else ErrorCode.NONE

    def _is_for_this_node(self, voter: ReplicaKey | None) -> bool:
        return voter is None or voter.matches(self._node.key)

    def _successor_delay_ms(self, candidates: tuple[ReplicaKey, ...]) -> int:
        longest_ms = self._node.timeouts.backoff_max_ms
        ranks = (rank for rank, key in enumerate(candidates) if key.matches(self._node.key))
        rank = next(ranks, len(candidates))
        if rank == len(candidates):
            return longest_ms
        shortest_ms = longest_ms >> (len(candidates) - 1)
        return min(longest_ms, shortest_ms << (rank - 1)) if rank > 0 else 0

    # Responses of other nodes

    def on_vote_response(self, voter_id: int, response: RaftVoteResponse, now_ms: int) -> None:
        node = self._node
        if response.error is ErrorCode.UNSUPPORTED_VERSION:
            # The voter does not support pre-vote: request the vote itself, as before KIP-996.
            if isinstance(node.role, Prospective):
                node.become_candidate(node.role, now_ms)
            return
        node.on_leader_and_epoch(response.leader_id, response.epoch, now_ms)
        if response.error is not ErrorCode.NONE or response.epoch != node.epoch:
            return
        match node.role:
            case Prospective(votes=votes) as prospective:
                votes.record(voter_id, response.granted)
                if votes.is_won:
                    node.become_candidate(prospective, now_ms)
                elif votes.is_lost or voter_id == prospective.leader_id == response.leader_id:
                    # The leader itself responds that it leads: Kafka waits for the others, too.
                    node.abandon_election(now_ms)
            case Candidate(votes=votes) as candidate:
                votes.record(voter_id, response.granted)
                if votes.is_won:
                    node.become_leader(candidate, now_ms)
                elif votes.is_lost:
                    # Kafka waits for the rest of the election timeout.
                    backoff_ms = node.random.randrange(self._max_backoff_ms(candidate))
                    candidate.timeout_at_ms = min(candidate.timeout_at_ms, now_ms + backoff_ms)

    def _max_backoff_ms(self, candidate: Candidate) -> int:
        doublings = min(candidate.lost_elections, 10)
        return min(self._node.timeouts.backoff_max_ms, _ELECTION_BACKOFF_MS << doublings)

    def on_begin_epoch_response(self, voter_id: int, response: EpochResponse, now_ms: int) -> None:
        self._on_epoch_response(voter_id, response, Leader, now_ms)

    def on_end_epoch_response(self, voter_id: int, response: EpochResponse, now_ms: int) -> None:
        self._on_epoch_response(voter_id, response, Resigned, now_ms)

    def _on_epoch_response(
        self,
        voter_id: int,
        response: EpochResponse,
        sender_role: type[Leader | Resigned],
        now_ms: int,
    ) -> None:
        node = self._node
        node.on_leader_and_epoch(response.leader_id, response.epoch, now_ms)
        is_acknowledged = response.error is ErrorCode.NONE and response.epoch == node.epoch
        if is_acknowledged and isinstance(node.role, sender_role):
            node.role.unacknowledged.discard(voter_id)
