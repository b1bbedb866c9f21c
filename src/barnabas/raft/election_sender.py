"""Sends the requests of elections: Vote, BeginQuorumEpoch, EndQuorumEpoch."""

import errno
from typing import Any

from barnabas.raft import election_codec
from barnabas.raft.addresses import ControllerAddress
from barnabas.raft.driver import RaftDriver
from barnabas.raft.messages import (
    OutgoingRequest,
    RaftVoteResponse,
    SendBeginEpoch,
    SendEndEpoch,
    SendVote,
)
from barnabas.wire.errors import ErrorCode
from barnabas.wire.peer import Peers
from barnabas.wire.schema import Message

PURPOSE = "raft"


class ElectionSender:
    """At most one request to each voter at a time; who did not answer well is left to rest."""

    __slots__ = ("_busy", "_driver", "_peers")

    def __init__(self, driver: RaftDriver, peers: Peers) -> None:
        self._driver = driver
        self._peers = peers
        # Voters that have not answered yet, or are left to rest.
        self._busy: set[int] = set()

    def advance(self) -> None:
        for outgoing in self._driver.raft.pending_requests():
            node_id = outgoing.voter.node_id
            address = self._driver.addresses.find(node_id)
            if node_id in self._busy or address is None:
                continue
            self._busy.add(node_id)
            self._send(outgoing, address)

    def _send(self, outgoing: OutgoingRequest, address: ControllerAddress) -> None:
        peer = self._peers.at(address.host, address.port, PURPOSE)
        peer.send(
            self._request(outgoing),
            self._driver.config.request_timeout_ms,
            lambda answer: self._answered(outgoing, address, answer),
        )

    def _request(self, outgoing: OutgoingRequest) -> Message:
        cluster_id, endpoints = self._driver.cluster_id, self._driver.node.endpoints
        match outgoing:
            case SendVote(request=asked):
                return election_codec.vote_request(cluster_id, asked)
            case SendBeginEpoch(request=begun):
                return election_codec.begin_request(cluster_id, begun, endpoints)
            case SendEndEpoch(request=ended):
                return election_codec.end_request(cluster_id, ended, endpoints)

    def _answered(self, outgoing: OutgoingRequest, address: ControllerAddress, answer: Any) -> None:
        driver = self._driver
        if driver.is_closed:
            return
        voter_id = outgoing.voter.node_id
        if isinstance(answer, OSError):
            is_well = self._does_without_pre_vote(outgoing, answer)
            if not is_well:
                driver.peer_failures.on_failure(address, answer)
        else:
            is_well = self._take_in(outgoing, address, answer)
        if is_well:
            self._busy.discard(voter_id)
        else:
            driver.call_later(driver.config.retry_backoff_ms, lambda: self._busy.discard(voter_id))
        driver.step()

    def _does_without_pre_vote(self, outgoing: OutgoingRequest, error: OSError) -> bool:
        """A voter older than KIP-996 is asked for its vote itself."""
        if not isinstance(outgoing, SendVote) or error.errno != errno.EPROTONOSUPPORT:
            return False
        raft = self._driver.raft
        told = RaftVoteResponse(ErrorCode.UNSUPPORTED_VERSION, raft.leader_id, raft.epoch, False)
        raft.election.on_vote_response(outgoing.voter.node_id, told, self._driver.now_ms)
        return True

    def _take_in(self, outgoing: OutgoingRequest, address: ControllerAddress, answer: Any) -> bool:
        """Tell the consensus; whether the same need not be asked again at once."""
        raft, now_ms = self._driver.raft, self._driver.now_ms
        voter_id = outgoing.voter.node_id
        is_vote = isinstance(outgoing, SendVote)
        read = election_codec.read_vote_response if is_vote else election_codec.read_epoch_response
        told: Any = read(answer)
        if told is None:
            self._driver.peer_failures.on_failure(address, answer)
            return False
        self._driver.peer_failures.on_response(address)
        self._driver.addresses.learn_leader(
            told.leader_id, election_codec.leader_address(answer, told.leader_id)
        )
        match outgoing:
            case SendVote():
                raft.election.on_vote_response(voter_id, told, now_ms)
            case SendBeginEpoch():
                raft.election.on_begin_epoch_response(voter_id, told, now_ms)
            case SendEndEpoch():
                raft.election.on_end_epoch_response(voter_id, told, now_ms)
        return told.error is ErrorCode.NONE
