"""What a node tells the leader about itself: its new address, or that it wants to vote.

A voter whose listeners are not those in the log asks to be updated (KIP-853). A controller that
does not vote joins the voters by itself where `controller.quorum.auto.join.enable` says so; if it
voted with another disk before, that one is removed first (KIP-1186).
"""

import logging
from typing import Any

from barnabas.raft.addresses import ControllerAddress
from barnabas.raft.driver import RaftDriver
from barnabas.raft.roles import Follower
from barnabas.raft.voter_changes import PURPOSE
from barnabas.raft.voters import MAX_KRAFT_VERSION, MIN_KRAFT_VERSION
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages import add_raft_voter as add
from barnabas.wire.messages import update_raft_voter as update
from barnabas.wire.messages.add_raft_voter import AddRaftVoterRequest
from barnabas.wire.messages.remove_raft_voter import RemoveRaftVoterRequest
from barnabas.wire.messages.update_raft_voter import UpdateRaftVoterRequest, UpdateRaftVoterResponse
from barnabas.wire.peer import Peers
from barnabas.wire.schema import Message

_logger = logging.getLogger(__name__)


class VoterMembership:
    """Looks, every fetch timeout, whether the voters should be others as far as this node goes."""

    __slots__ = ("_driver", "_is_asking", "_may_join", "_peers")

    def __init__(self, driver: RaftDriver, peers: Peers, *, may_join: bool) -> None:
        self._driver = driver
        self._peers = peers
        self._may_join = may_join
        self._is_asking = False

    def look_again(self) -> None:
        self._driver.call_later(self._driver.config.fetch_timeout_ms, self._look)

    def _look(self) -> None:
        self.look_again()
        driver = self._driver
        role = driver.raft.role
        if self._is_asking or not isinstance(role, Follower) or not role.is_leader_reachable:
            return
        request = self._request()
        address = driver.addresses.find(role.leader_id)
        if request is not None and address is not None:
            self._send(request, address)

    def _request(self) -> Message | None:
        """What to ask the leader for, if anything."""
        driver, node = self._driver, self._driver.node
        history = driver.log.history
        if history.kraft_version == 0:
            return None
        known = history.voters.get(node.node_id)
        if driver.raft.is_voter:
            return self._update() if known != node else None
        if not self._may_join:
            return None
        if known is not None:
            return RemoveRaftVoterRequest(
                cluster_id=driver.cluster_id,
                voter_id=node.node_id,
                voter_directory_id=known.directory_id,
            )
        return self._join()

    def _update(self) -> UpdateRaftVoterRequest:
        driver, node = self._driver, self._driver.node
        return UpdateRaftVoterRequest(
            cluster_id=driver.cluster_id,
            current_leader_epoch=driver.raft.epoch,
            voter_id=node.node_id,
            voter_directory_id=node.directory_id,
            listeners=[
                update.Listener(name=each.name, host=each.host, port=each.port)
                for each in node.endpoints
            ],
            k_raft_version_feature=update.KRaftVersionFeature(
                min_supported_version=MIN_KRAFT_VERSION, max_supported_version=MAX_KRAFT_VERSION
            ),
        )

    def _join(self) -> AddRaftVoterRequest:
        driver, node = self._driver, self._driver.node
        return AddRaftVoterRequest(
            cluster_id=driver.cluster_id,
            timeout_ms=driver.config.request_timeout_ms,
            voter_id=node.node_id,
            voter_directory_id=node.directory_id,
            listeners=[
                add.Listener(name=each.name, host=each.host, port=each.port)
                for each in node.endpoints
            ],
            ack_when_committed=False,  # it could not acknowledge its own voting otherwise
        )

    def _send(self, request: Message, address: ControllerAddress) -> None:
        self._is_asking = True
        peer = self._peers.at(address.host, address.port, PURPOSE)
        peer.send(request, self._driver.config.request_timeout_ms, self._answered)

    def _answered(self, answer: Any) -> None:
        driver = self._driver
        self._is_asking = False
        if driver.is_closed or isinstance(answer, OSError):
            return
        if isinstance(answer, UpdateRaftVoterResponse):
            leader = answer.current_leader
            if leader.host and leader.port > 0:
                driver.addresses.learn_leader(
                    leader.leader_id, ControllerAddress(leader.host, leader.port)
                )
            driver.raft.on_leader_and_epoch(leader.leader_id, leader.leader_epoch, driver.now_ms)
        if answer.error_code:
            name = ErrorCode.of(answer.error_code).name
            _logger.info("The leader did not change the voters for this node: %s", name)
        driver.step()
