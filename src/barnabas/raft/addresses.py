"""Where the controllers of the quorum listen, and why the last request to each failed."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from barnabas.raft.roles import NO_NODE
from barnabas.raft.voters import VoterEndpoint, VoterNode, VoterSet
from barnabas.wire.errors import ErrorCode


class ControllerAddress(NamedTuple):
    """Where a controller listens."""

    host: str
    port: int


@dataclass(slots=True, frozen=True)
class QuorumLeader:
    """The leader of the quorum, and where its controller listens."""

    node_id: int
    epoch: int
    host: str
    port: int


class RequestOrigin(NamedTuple):
    """The version of a request of another node, and the listener at which it arrived."""

    api_version: int
    listener: str


class ControllerAddresses:
    """Finds voters by their endpoints, and leaders also by what responses and requests report."""

    __slots__ = ("_bootstrap", "_leader", "_leader_id", "_listener_name", "_next", "_voters")

    def __init__(
        self, bootstrap: Sequence[tuple[str, int]], voters: VoterSet, listener_name: str
    ) -> None:
        self._bootstrap = [ControllerAddress(host, port) for host, port in bootstrap]
        self._voters = voters
        self._listener_name = listener_name
        self._leader_id = NO_NODE
        self._leader: ControllerAddress | None = None
        self._next = 0

    def update_voters(self, voters: VoterSet) -> None:
        """Adopts other voters or endpoints; they are newer than a reported leader address."""
        if voters.get(self._leader_id) != self._voters.get(self._leader_id):
            self.forget_leader()
        self._voters = voters

    def learn_leader(self, leader_id: int, address: ControllerAddress | None) -> None:
        """Remembers the leader's address that a request or response reports."""
        if address is not None and leader_id != NO_NODE:
            self._leader_id, self._leader = leader_id, address

    def learn_leader_endpoints(self, leader_id: int, endpoints: Sequence[VoterEndpoint]) -> None:
        self.learn_leader(leader_id, self.select(endpoints))

    def forget_leader(self) -> None:
        """Forgets a reported address at which the leader was not reachable."""
        self._leader_id, self._leader = NO_NODE, None

    def find(self, node_id: int) -> ControllerAddress | None:
        if node_id == self._leader_id:
            return self._leader
        voter = self._voters.get(node_id)
        return self.select(voter.endpoints) if voter is not None else None

    def next_candidate(self, node: VoterNode) -> ControllerAddress | None:
        """Returns a node that may know the leader: bootstrap servers and voters in rotation."""
        addresses = [*self._bootstrap, *(self.select(voter.endpoints) for voter in self._voters)]
        own = self.select(node.endpoints)
        others = [
            address
            for address in dict.fromkeys(addresses)
            if address is not None and address != own
        ]
        if not others:
            return None
        self._next += 1
        return others[self._next % len(others)]

    def select(self, endpoints: Sequence[VoterEndpoint]) -> ControllerAddress | None:
        """Returns the one of a controller's endpoints that this node uses."""
        named = [endpoint for endpoint in endpoints if endpoint.name == self._listener_name]
        for endpoint in named or endpoints:
            return ControllerAddress(endpoint.host, endpoint.port)
        return None


_logger = logging.getLogger(__name__)


class PeerFailures:
    """Why the last request to an address failed; addresses that responded are not listed."""

    __slots__ = ("_of_another_cluster", "by_address")

    def __init__(self) -> None:
        self.by_address: dict[ControllerAddress, str] = {}
        self._of_another_cluster: set[ControllerAddress] = set()

    @property
    def are_of_another_cluster(self) -> bool:
        """Whether all controllers that failed belong to another cluster."""
        return bool(self._of_another_cluster) and self._of_another_cluster == self.by_address.keys()

    def on_response(self, address: ControllerAddress) -> None:
        self.by_address.pop(address, None)
        self._of_another_cluster.discard(address)

    def on_failure(self, address: ControllerAddress, outcome: Any) -> None:
        """Records an OSError or an error response, and logs it if it differs from before."""
        is_of_another_cluster = (
            getattr(outcome, "error_code", 0) == ErrorCode.INCONSISTENT_CLUSTER_ID
        )
        (
            self._of_another_cluster.add
            if is_of_another_cluster
            else self._of_another_cluster.discard
        )(address)
        reason = _reason(address, outcome)
        if self.by_address.get(address) != reason:
            self.by_address[address] = reason
            _logger.info("The controller at %s:%d: %s", *address, reason)


def _reason(address: ControllerAddress, outcome: Any) -> str:
    if isinstance(outcome, OSError):
        return (outcome.strerror or str(outcome)).removeprefix(f"{address.host}:{address.port}: ")
    code = ErrorCode.of(outcome.error_code)
    if code is ErrorCode.INCONSISTENT_CLUSTER_ID:
        return "it belongs to another cluster"
    return f"it responded with {code.name}"
