"""A run: nodes that are troubled in ways drawn from a seed, then left alone, then reckoned with."""

from collections import deque
from random import Random

from tests.raft.simulation.checkers import Checkers, Violation
from tests.raft.simulation.clock import Clock
from tests.raft.simulation.disk import Disk
from tests.raft.simulation.network import Network
from tests.raft.simulation.node import TIMEOUTS, Node

from barnabas.raft.roles import Follower, Leader
from barnabas.raft.voters import ReplicaKey, VoterEndpoint, VoterNode, VoterSet
from barnabas.wire.uuid import ZERO

TROUBLE_MS = 3_000
PROPOSAL_MS = 60
AWAY_MS = 3 * TIMEOUTS.fetch_ms // 2
# Enough for a node to time out, lose two elections, and start another.
ELECTION_LIMIT_MS = 10 * TIMEOUTS.election_ms


class World:
    """Some voters and some observers."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.clock = Clock()
        self.network = Network(self.clock, self.random)
        self.checkers = Checkers()
        self.trace: deque[str] = deque(maxlen=1000)
        self.trouble_ms = TROUBLE_MS
        self.is_troubled = True
        voters, observers = self.random.choice([(1, 2), (2, 1), (3, 0), (3, 1), (3, 2), (5, 0)])
        # Voters that are a setting have no known directories, and cannot change (KIP-853).
        self.is_static = self.random.random() < 0.3
        keys = [ReplicaKey(item, bytes([item] * 16)) for item in range(1, voters + observers + 1)]
        self.first_voters = VoterSet(map(self.voter, keys[:voters]))
        self.nodes = [self._node(key) for key in keys]
        self.checkers.replicas.extend(self.nodes)
        # With few at a time, followers often have the end of one epoch and nothing of the next.
        max_fetch_records = self.random.choice([1, 2, 8])
        for node in self.nodes:
            node.max_fetch_records = max_fetch_records
        self._proposals = 0

    def voter(self, key: ReplicaKey) -> VoterNode:
        directory_id = ZERO if self.is_static else key.directory_id
        endpoint = VoterEndpoint("CONTROLLER", "localhost", 9000 + key.node_id)
        return VoterNode(key.node_id, directory_id, (endpoint,))

    def _node(self, key: ReplicaKey) -> Node:
        disk = Disk(self.first_voters)
        return Node(key, disk, self.clock, self.network, self.random, self.checkers)

    def tell(self, what: str) -> None:
        self.trace.append(f"{self.clock.now_ms:>6} {what}")

    def leader(self) -> Node | None:
        """The leader of the newest epoch that has one."""
        leaders = [item for item in self.nodes if item.raft and item.raft.is_leader]
        return max(leaders, key=lambda node: node.raft.epoch if node.raft else 0, default=None)

    def propose(self) -> None:
        """Sometimes a client writes, to a node that believes to lead."""
        for node in self.nodes:
            if node.propose(f"{self._proposals}"):
                self._proposals += 1
        self.clock.later(self.random.randint(1, 2 * PROPOSAL_MS), self.propose)

    # The reckoning

    def await_agreement(self) -> Node:
        """Once faults end, there is a leader soon, and every node reaches the end of its log."""
        deadline_ms = self.clock.now_ms + ELECTION_LIMIT_MS
        mark = len(self.checkers.committed_records) + 5
        while self.clock.now_ms < deadline_ms:
            self.clock.run_until(self.clock.now_ms + 50)
            leader = self.leader()
            if leader is not None and self._all_follow(leader, mark):
                return leader
        raise Violation(f"liveness: not all commit {mark} with one leader: {self.roles()}")

    def _all_follow(self, leader: Node, mark: int) -> bool:
        assert leader.raft is not None
        agreed = (leader.raft.epoch, leader.id)
        return all(
            node.raft is not None
            and (node is leader or isinstance(node.raft.role, Follower))
            and (node.raft.epoch, node.raft.leader_id) == agreed
            and node.raft.high_watermark >= mark
            for node in self.nodes
        )

    def check_peace(self, leader: Node) -> None:
        """Who was cut off from a healthy quorum, or loses a connection, deposes no leader."""
        assert leader.raft is not None
        epoch, voters = leader.raft.epoch, leader.raft.voters
        spare = [
            item
            for item in self.nodes
            if item is not leader and (len(voters) > 2 or not voters.includes(item.key))
        ]
        if spare:
            away = self.random.choice(spare)
            self.tell(f"cut {away.id} off in peace")
            self.cut_off(away)
            self.clock.run_until(self.clock.now_ms + AWAY_MS)
            self.network.cut.clear()
        for node in self.nodes:
            self.clock.run_until(self.clock.now_ms + AWAY_MS // len(self.nodes))
            self.tell(f"break the connection of {node.id}")
            node.lose_connection()
        self.clock.run_until(self.clock.now_ms + TIMEOUTS.fetch_ms)
        role = leader.raft.role if leader.raft else None
        if not isinstance(role, Leader) or role.epoch != epoch:
            raise Violation(f"peace: {leader.id} no longer leads {epoch}: {self.roles()}")

    def cut_off(self, node: Node) -> None:
        for other in self.nodes:
            self.network.cut |= {(node.id, other.id), (other.id, node.id)}

    def roles(self) -> str:
        return "; ".join(
            f"{node.id} {node.raft.role if node.raft else 'down'}"
            f" {node.disk.log.durable_end_offset}/{node.disk.log.end_offset}"
            for node in self.nodes
        )
