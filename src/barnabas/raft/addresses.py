"""Where the members of the quorum listen, as far as this node knows."""

from collections.abc import Sequence

from barnabas.raft.exchange import Address
from barnabas.raft.roles import NOBODY
from barnabas.raft.voters import Endpoint, Voter, Voters


class Addresses:
    """Voters by their endpoints; leaders also by what answers and announcements say of them."""

    __slots__ = ("_bootstrap", "_leader", "_leader_id", "_listener_name", "_turn", "_voters")

    def __init__(
        self, bootstrap: Sequence[tuple[str, int]], voters: Voters, listener_name: str
    ) -> None:
        self._bootstrap = [Address(host, port) for host, port in bootstrap]
        self._voters = voters
        self._listener_name = listener_name
        self._leader_id = NOBODY
        self._leader: Address | None = None
        self._turn = 0

    def change(self, voters: Voters) -> None:
        """Other voters, or other endpoints of theirs, which are newer than what was learnt."""
        if voters.get(self._leader_id) != self._voters.get(self._leader_id):
            self.forget_leader()
        self._voters = voters

    def learn(self, leader_id: int, address: Address | None) -> None:
        """Some message says where the leader is."""
        if address is not None and leader_id != NOBODY:
            self._leader_id, self._leader = leader_id, address

    def forget_leader(self) -> None:
        """It is not where it was said to be."""
        self._leader_id, self._leader = NOBODY, None

    def learn_endpoints(self, leader_id: int, endpoints: Sequence[Endpoint]) -> None:
        self.learn(leader_id, self.choose(endpoints))

    def of(self, node_id: int) -> Address | None:
        if node_id == self._leader_id:
            return self._leader
        voter = self._voters.get(node_id)
        return self.choose(voter.endpoints) if voter is not None else None

    def next_to_ask(self, node: Voter) -> Address | None:
        """Each call another who may know the leader: bootstrap servers and voters in turn."""
        known = [*self._bootstrap, *(self.choose(voter.endpoints) for voter in self._voters)]
        own = self.choose(node.endpoints)
        others = [each for each in dict.fromkeys(known) if each is not None and each != own]
        if not others:
            return None
        self._turn += 1
        return others[self._turn % len(others)]

    def choose(self, endpoints: Sequence[Endpoint]) -> Address | None:
        """Of a controller's endpoints, the one that this node would use."""
        named = [each for each in endpoints if each.name == self._listener_name]
        for each in named or endpoints:
            return Address(each.host, each.port)
        return None
