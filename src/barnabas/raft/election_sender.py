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
    """Sends at most one request to each voter at a time, and backs off after an error."""

    __slots__ = ("_busy", "_driver", "_peers")

    def __init__(self, driver: RaftDriver, peers: Peers) -> None:
        self._driver = driver
        self._peers = peers
        # Voters with a request in flight or a backoff that runs.
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
            lambda response: self._on_response(outgoing, address, response),
        )

    def _request(self, outgoing: OutgoingRequest) -> Message:
        cluster_id, endpoints = self._driver.cluster_id, self._driver.node.endpoints
        match outgoing:
            case SendVote(request=vote):
                return election_codec.vote_request(cluster_id, vote)
            case SendBeginEpoch(request=begin):
                return election_codec.begin_request(cluster_id, begin, endpoints)
            case SendEndEpoch(request=end):
                return election_codec.end_request(cluster_id, end, endpoints)

    def _on_response(
        self, outgoing: OutgoingRequest, address: ControllerAddress, response: Any
    ) -> None:
        driver = self._driver
        if driver.is_closed:
            return
        voter_id = outgoing.voter.node_id
        if isinstance(response, OSError):
            is_successful = self._skip_pre_vote(outgoing, response)
            if not is_successful:
                driver.peer_failures.on_failure(address, response)
        else:
            is_successful = self._handle_response(outgoing, address, response)
        if is_successful:
            self._busy.discard(voter_id)
        else:
            driver.call_later(driver.config.retry_backoff_ms, lambda: self._busy.discard(voter_id))
        driver.step()

    def _skip_pre_vote(self, outgoing: OutgoingRequest, error: OSError) -> bool:
        """Lets the consensus request the vote itself from a voter older than KIP-996."""
        if not isinstance(outgoing, SendVote) or error.errno != errno.EPROTONOSUPPORT:
            return False
        raft = self._driver.raft
        unsupported = RaftVoteResponse(
            ErrorCode.UNSUPPORTED_VERSION, raft.leader_id, raft.epoch, False
        )
        raft.election.on_vote_response(outgoing.voter.node_id, unsupported, self._driver.now_ms)
        return True

    def _handle_response(
        self, outgoing: OutgoingRequest, address: ControllerAddress, response: Any
    ) -> bool:
        """Passes the response to the consensus. Returns whether it has no error."""
        raft, now_ms = self._driver.raft, self._driver.now_ms
        voter_id = outgoing.voter.node_id
        is_vote = isinstance(outgoing, SendVote)
        parse = (
            election_codec.parse_vote_response if is_vote else election_codec.parse_epoch_response
        )
        parsed: Any = parse(response)
        if parsed is None:
            self._driver.peer_failures.on_failure(address, response)
            return False
        self._driver.peer_failures.on_response(address)
        self._driver.addresses.learn_leader(
            parsed.leader_id, election_codec.leader_address(response, parsed.leader_id)
        )
        match outgoing:
            case SendVote():
                raft.election.on_vote_response(voter_id, parsed, now_ms)
            case SendBeginEpoch():
                raft.election.on_begin_epoch_response(voter_id, parsed, now_ms)
            case SendEndEpoch():
                raft.election.on_end_epoch_response(voter_id, parsed, now_ms)
        return parsed.error is ErrorCode.NONE
