"""The faults of a run, drawn from the seed."""

from collections.abc import Callable
from functools import partial

from tests.simulation.raft.node import Node
from tests.simulation.raft.world import QuorumWorld

MEAN_PAUSE_MS = 100


class Faults:
    """Injects one fault after the other while the run has faults; every fault ends by itself."""

    def __init__(self, world: QuorumWorld) -> None:
        self._world = world
        self._random = world.random
        kinds: list[Callable[[], None]] = [
            self._crash,
            self._crash,
            self._crash_all,
            self._cut_link,
            self._cut_off,
            self._split,
            self._pause,
            self._slow_disk,
            self._lose,
            self._delay,
            self._resign,
            self._snapshot,
            self._break_connection,
        ]
        if not world.is_static:
            kinds += [self._change_voters] * 4
        # A run has some kinds of faults: rare coincidences need few kinds, often.
        self._kinds = self._random.sample(kinds, self._random.randint(3, len(kinds)))
        match self._random.randint(0, 5):
            case 0 | 1:
                world.checkers.on_elected = self._disturb_new_leader
            case 2 | 3:
                # No other faults: one leader after the other leaves uncommitted records.
                world.checkers.on_elected = self._disturb_new_leader
                world.fault_ms *= 4
                self._kinds = [self._snapshot]
                for node in world.nodes:
                    node.max_fetch_records = 1
            case 4:
                world.checkers.on_voted = self._restart_voter

    def inject(self) -> None:
        if self._world.has_faults:
            self._random.choice(self._kinds)()
            self._later(int(self._random.expovariate(1 / MEAN_PAUSE_MS)) + 1, self.inject)

    def _later(self, delay_ms: int, event: Callable[[], None]) -> None:
        self._world.loop.call_without_process(delay_ms / 1000, event)

    def _duration_ms(self) -> int:
        """Returns how long a fault lasts: from less than a message takes to several timeouts."""
        return self._random.choice([10, 50, 200, 600, 1200, 1800])

    def _pick_node(self) -> Node:
        leader = self._world.leader()
        if leader is not None and self._random.random() < 0.4:
            return leader
        return self._random.choice(self._world.nodes)

    def _crash(self) -> None:
        self._crash_one(self._pick_node())

    def _crash_one(self, node: Node, down_ms: int | None = None) -> None:
        if node.is_up:
            self._world.note(f"crash {node.id}")
            node.crash()
            self._later(down_ms or self._duration_ms(), partial(self._start, node))

    def _crash_all(self) -> None:
        self._world.note("crash all")
        for node in self._world.nodes:
            if node.is_up:
                node.crash()
                self._later(self._random.randint(1, 300), partial(self._start, node))

    def _disturb_new_leader(self, node_id: int) -> None:
        """Its first records reach few other nodes, or none, or not its disk."""
        node = next(item for item in self._world.nodes if item.id == node_id)
        ally = self._random.choice(self._world.nodes)
        fault = self._random.choice(
            [
                partial(self._crash_one, node),
                partial(self._separate, [node]),
                partial(self._separate, [node, ally]),
            ]
        )
        if self._world.has_faults and self._random.random() < 0.9:
            self._later(self._random.choice([0, 0, 5, 12, 15, 18, 25]), fault)

    def _restart_voter(self, node_id: int) -> None:
        """Restarts it during the election: it must not lose its vote."""
        node = next(item for item in self._world.nodes if item.id == node_id)
        if self._world.has_faults and self._random.random() < 0.5:
            self._later(1, partial(self._crash_one, node, down_ms=1))

    def _start(self, node: Node) -> None:
        if not node.is_up:
            self._world.note(f"start {node.id}")
            node.start()

    def _cut_link(self) -> None:
        one, other = self._random.choices(self._world.nodes, k=2)
        link = (one.id, other.id)
        self._world.note(f"cut {link}")
        self._world.network.cut(*link)
        self._later(self._duration_ms(), lambda: self._world.network.heal(*link))

    def _cut_off(self) -> None:
        self._separate([self._pick_node()])

    def _split(self) -> None:
        nodes = self._world.nodes
        self._separate(self._random.sample(nodes, len(nodes) // 2))

    def _separate(self, some: list[Node]) -> None:
        separated = {node.id for node in some}
        self._world.note(f"separate {sorted(separated)}")
        links = {
            (one.id, other.id)
            for one in self._world.nodes
            for other in self._world.nodes
            if (one.id in separated) != (other.id in separated)
        }
        for link in links:
            self._world.network.cut(*link)

        def heal() -> None:
            for link in links:
                self._world.network.heal(*link)

        self._later(self._duration_ms(), heal)

    def _pause(self) -> None:
        node = self._pick_node()
        if node.is_up and not node.is_paused:
            self._world.note(f"pause {node.id}")
            node.pause()
            self._later(self._duration_ms(), node.resume)

    def _slow_disk(self) -> None:
        disk = self._pick_node().disk
        disk.flush_latency.fast_ms = self._random.choice([3, 3, 49, 399])

    def _lose(self) -> None:
        self._world.network.loss = self._random.choice([0.0, 0.0, 0.05, 0.3])
        self._world.network.duplication = self._random.choice([0.0, 0.2])

    def _delay(self) -> None:
        self._world.network.latency.fast_ms = self._random.choice([4, 4, 29, 119])

    def _resign(self) -> None:
        node = self._world.leader()
        if node is not None and not node.is_paused:
            self._world.note(f"resign {node.id}")
            node.resign()

    def _snapshot(self) -> None:
        node = self._pick_node()
        if node.is_up:
            node.take_snapshot()

    def _break_connection(self) -> None:
        """A connection to the leader breaks, and nothing else."""
        node = self._random.choice(self._world.nodes)
        if node.raft is not None and not node.is_paused:
            node.lose_connection()

    def _change_voters(self) -> None:
        """Adds or removes one voter, as a leader may that has committed in its epoch."""
        node = self._world.leader()
        if node is None or not node.may_change_voters():
            return
        assert node.raft is not None
        voters, other = node.raft.voters, self._random.choice(self._world.nodes)
        if voters.get(other.id) is None:
            voters = voters.with_voter(self._world.voter(other.key))
        elif len(voters) > 2:
            # Two voters are not reduced to one: see the README.
            voters = voters.without(other.id)
        if node.propose(voters):
            self._world.note(f"{node.id} changes the voters to {voters.ids()}")
