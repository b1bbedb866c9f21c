"""Keeps this node's entry among the voters current: its endpoints, and whether it votes.

A voter whose endpoints differ from those in the log sends UpdateRaftVoter (KIP-853). A controller
that does not vote joins the voters if `controller.quorum.auto.join.enable` is set; if it voted
with another directory before, it removes that voter first (KIP-1186).
"""

import logging
from typing import Any

from barnabas.raft.addresses import ControllerAddress
from barnabas.raft.driver import RaftDriver
from barnabas.raft.roles import Follower
from barnabas.raft.voter_changes import PURPOSE
from barnabas.raft.voters import MAX_KRAFT_VERSION, MIN_KRAFT_VERSION, wire_endpoints
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages import raft_records
from barnabas.wire.messages.raft_voters import (
    AddRaftVoterRequest,
    Listener,
    RemoveRaftVoterRequest,
    UpdateRaftVoterRequest,
    UpdateRaftVoterResponse,
)
from barnabas.wire.peer import Peers
from barnabas.wire.schema import Message

_logger = logging.getLogger(__name__)


class VoterMembership:
    """Checks every fetch timeout whether to send the leader a change of the voters."""

    __slots__ = ("_driver", "_is_in_flight", "_may_join", "_peers")

    def __init__(self, driver: RaftDriver, peers: Peers, *, may_join: bool) -> None:
        self._driver = driver
        self._peers = peers
        self._may_join = may_join
        self._is_in_flight = False

    def schedule_check(self) -> None:
        self._driver.call_later(self._driver.config.fetch_timeout_ms, self._check)

    def _check(self) -> None:
        self.schedule_check()
        driver = self._driver
        role = driver.raft.role
        if self._is_in_flight or not isinstance(role, Follower) or not role.is_leader_reachable:
            return
        request = self._request()
        address = driver.addresses.find(role.leader_id)
        if request is not None and address is not None:
            self._send(request, address)

    def _request(self) -> Message | None:
        """Returns the request to the leader, or None if the voters are right."""
        driver, node = self._driver, self._driver.node
        history = driver.log.history
        if history.kraft_version == 0:
            return None
        existing = history.voters.get(node.node_id)
        if driver.raft.is_voter:
            return self._update_request() if existing != node else None
        if not self._may_join:
            return None
        if existing is not None:
            return RemoveRaftVoterRequest(
                cluster_id=driver.cluster_id,
                voter_id=node.node_id,
                voter_directory_id=existing.directory_id,
            )
        return self._join_request()

    def _update_request(self) -> UpdateRaftVoterRequest:
        driver, node = self._driver, self._driver.node
        return UpdateRaftVoterRequest(
            cluster_id=driver.cluster_id,
            current_leader_epoch=driver.raft.epoch,
            voter_id=node.node_id,
            voter_directory_id=node.directory_id,
            listeners=wire_endpoints(Listener, node.endpoints),
            k_raft_version_feature=raft_records.KRaftVersionFeature(
                min_supported_version=MIN_KRAFT_VERSION, max_supported_version=MAX_KRAFT_VERSION
            ),
        )

    def _join_request(self) -> AddRaftVoterRequest:
        driver, node = self._driver, self._driver.node
        return AddRaftVoterRequest(
            cluster_id=driver.cluster_id,
            timeout_ms=driver.config.request_timeout_ms,
            voter_id=node.node_id,
            voter_directory_id=node.directory_id,
            listeners=wire_endpoints(Listener, node.endpoints),
            ack_when_committed=False,  # it cannot acknowledge the change that makes it a voter
        )

    def _send(self, request: Message, address: ControllerAddress) -> None:
        self._is_in_flight = True
        peer = self._peers.at(address.host, address.port, PURPOSE)
        peer.send(request, self._driver.config.request_timeout_ms, self._on_response)

    def _on_response(self, response: Any) -> None:
        driver = self._driver
        self._is_in_flight = False
        if driver.is_closed or isinstance(response, OSError):
            return
        if isinstance(response, UpdateRaftVoterResponse):
            leader = response.current_leader
            if leader.host and leader.port > 0:
                driver.addresses.learn_leader(
                    leader.leader_id, ControllerAddress(leader.host, leader.port)
                )
            driver.raft.on_leader_and_epoch(leader.leader_id, leader.leader_epoch, driver.now_ms)
        if response.error_code:
            name = ErrorCode.of(response.error_code).name
            _logger.info("The leader did not change the voters as this node requested: %s", name)
        driver.step()
