"""The nodes of a run: some time with faults, some time without, then the final checks."""

from random import Random

from tests.simulation.raft.checkers import Checkers
from tests.simulation.raft.memory_log import Disk
from tests.simulation.raft.node import REQUEST_TIMEOUT_MS, TIMEOUTS, Node
from tests.simulation.world.clock import Latency
from tests.simulation.world.events import Events, Violation
from tests.simulation.world.network import RequestNetwork
from tests.simulation.world.process import ProcessLoop

from barnabas.raft.roles import Follower, Leader
from barnabas.raft.voters import ReplicaKey, VoterEndpoint, VoterNode, VoterSet
from barnabas.wire.uuid import ZERO

FAULT_MS = 3_000
PROPOSAL_MS = 60
FAST_MS = 4
RETURN_MS = 2 * REQUEST_TIMEOUT_MS
"""A node that was isolated needs so long to fetch from the leader again. Until then it would vote
with a node that loses its connection, and both may be a majority."""

AWAY_MS = 3 * TIMEOUTS.fetch_ms // 2
# Enough for a node to time out, lose two elections, and start another.
ELECTION_LIMIT_MS = 10 * TIMEOUTS.election_ms


class QuorumWorld:
    """Some voters and some observers."""

    def __init__(self, seed: int, loop: ProcessLoop) -> None:
        self.random = Random(seed)
        self.loop = loop
        self.network = RequestNetwork(
            loop, self.random, Latency(min_ms=1, fast_ms=FAST_MS, in_whole_ms=True)
        )
        self.checkers = Checkers()
        self.events = Events(loop)
        self.events.failed.add_done_callback(lambda _: loop.stop())
        loop.set_exception_handler(self.events.on_loop_exception)
        self.fault_ms = FAULT_MS
        self.has_faults = True
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
        return Node(key, disk, self.loop, self.network, self.random, self.checkers)

    def run_for(self, duration_ms: int) -> None:
        """Raises the failure if the run fails meanwhile."""
        self.loop.run_for(duration_ms)
        if self.events.failure is not None:
            raise self.events.failure

    def note(self, text: str) -> None:
        self.events.note("faults", text)

    def leader(self) -> Node | None:
        """The leader of the newest epoch that has one."""
        leaders = [item for item in self.nodes if item.raft and item.raft.is_leader]
        return max(leaders, key=lambda node: node.raft.epoch if node.raft else 0, default=None)

    def propose(self) -> None:
        """Sometimes a client appends, at every node that considers itself the leader."""
        for node in self.nodes:
            if node.propose(f"{self._proposals}"):
                self._proposals += 1
        self.loop.call_later(self.random.randint(1, 2 * PROPOSAL_MS) / 1000, self.propose)

    # Final checks

    def await_agreement(self) -> Node:
        """Once faults end, there is a leader soon, and every node reaches the end of its log."""
        deadline_ms = self.loop.now_ms + ELECTION_LIMIT_MS
        target = len(self.checkers.committed_records) + 5
        while self.loop.now_ms < deadline_ms:
            self.run_for(50)
            leader = self.leader()
            if leader is not None and self._all_follow(leader, target):
                return leader
        raise _violation("liveness", f"not all commit {target} with one leader: {self.roles()}")

    def _all_follow(self, leader: Node, target: int) -> bool:
        assert leader.raft is not None
        agreed = (leader.raft.epoch, leader.id)
        return all(
            node.raft is not None
            and (node is leader or isinstance(node.raft.role, Follower))
            and (node.raft.epoch, node.raft.leader_id) == agreed
            and node.raft.high_watermark >= target
            for node in self.nodes
        )

    def check_stable_leader(self, leader: Node) -> None:
        """A node that was isolated, or lost a connection, does not depose a healthy leader."""
        assert leader.raft is not None
        epoch, voters = leader.raft.epoch, leader.raft.voters
        spare = [
            item
            for item in self.nodes
            if item is not leader and (len(voters) > 2 or not voters.includes(item.key))
        ]
        if spare:
            away = self.random.choice(spare)
            self.note(f"cut {away.id} off")
            self.cut_off(away)
            self.run_for(AWAY_MS)
            self.network.heal_all()
            self.run_for(RETURN_MS)
        for node in self.nodes:
            self.run_for(AWAY_MS // len(self.nodes))
            self.note(f"break the connection of {node.id}")
            node.lose_connection()
        self.run_for(TIMEOUTS.fetch_ms)
        role = leader.raft.role if leader.raft else None
        if not isinstance(role, Leader) or role.epoch != epoch:
            raise _violation(
                "stable leader", f"{leader.id} no longer leads {epoch}: {self.roles()}"
            )

    def cut_off(self, node: Node) -> None:
        for other in self.nodes:
            self.network.cut(node.id, other.id)
            self.network.cut(other.id, node.id)

    def roles(self) -> str:
        return "; ".join(
            f"{node.id} {node.raft.role if node.raft else 'down'}"
            f" {node.disk.log.durable_end_offset}/{node.disk.log.end_offset}"
            for node in self.nodes
        )


def _violation(promise: str, description: str) -> Violation:
    violation = Violation(description)
    violation.promise = promise
    return violation
