"""What befalls the nodes, drawn from the seed."""

from collections.abc import Callable
from functools import partial

from tests.raft.simulation.node import Node
from tests.raft.simulation.world import World

MEAN_PAUSE_MS = 100


class Faults:
    """One after the other, for as long as there is trouble; each ends by itself."""

    def __init__(self, world: World) -> None:
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
            self._stutter,
        ]
        if not world.is_static:
            kinds += [self._change_voters] * 4
        # Some of them in each run: rare coincidences need few kinds, often.
        self._kinds = self._random.sample(kinds, self._random.randint(3, len(kinds)))
        match self._random.randint(0, 5):
            case 0 | 1:
                world.checkers.elected = self._trouble_new_leader
            case 2 | 3:
                # Nothing else: one leader after the other leaves something behind.
                world.checkers.elected = self._trouble_new_leader
                world.trouble_ms *= 4
                self._kinds = [self._snapshot]
                for node in world.nodes:
                    node.max_fetch_records = 1
            case 4:
                world.checkers.voted = self._restart_voter

    def strike(self) -> None:
        if self._world.is_troubled:
            self._random.choice(self._kinds)()
            self._later(int(self._random.expovariate(1 / MEAN_PAUSE_MS)) + 1, self.strike)

    def _later(self, delay_ms: int, event: Callable[[], None]) -> None:
        self._world.clock.later(delay_ms, event)

    def _while(self) -> int:
        """How long a fault lasts: from less than a message takes to several timeouts."""
        return self._random.choice([10, 50, 200, 600, 1200, 1800])

    def _someone(self) -> Node:
        leader = self._world.leader()
        if leader is not None and self._random.random() < 0.4:
            return leader
        return self._random.choice(self._world.nodes)

    def _crash(self) -> None:
        self._crash_one(self._someone())

    def _crash_one(self, node: Node, down_ms: int | None = None) -> None:
        if node.is_up:
            self._world.tell(f"crash {node.id}")
            node.crash()
            self._later(down_ms or self._while(), partial(self._start, node))

    def _crash_all(self) -> None:
        self._world.tell("crash all")
        for node in self._world.nodes:
            if node.is_up:
                node.crash()
                self._later(self._random.randint(1, 300), partial(self._start, node))

    def _trouble_new_leader(self, node_id: int) -> None:
        """Let its first records reach few others, or none, or not the disk."""
        node = next(item for item in self._world.nodes if item.id == node_id)
        ally = self._random.choice(self._world.nodes)
        trouble = self._random.choice(
            [
                partial(self._crash_one, node),
                partial(self._separate, [node]),
                partial(self._separate, [node, ally]),
            ]
        )
        if self._world.is_troubled and self._random.random() < 0.9:
            self._later(self._random.choice([0, 0, 5, 12, 15, 18, 25]), trouble)

    def _restart_voter(self, node_id: int) -> None:
        """Let it forget its vote, if it can, while the election still goes on."""
        node = next(item for item in self._world.nodes if item.id == node_id)
        if self._world.is_troubled and self._random.random() < 0.5:
            self._later(1, partial(self._crash_one, node, down_ms=1))

    def _start(self, node: Node) -> None:
        if not node.is_up:
            self._world.tell(f"start {node.id}")
            node.start()

    def _cut_link(self) -> None:
        one, other = self._random.choices(self._world.nodes, k=2)
        link = (one.id, other.id)
        self._world.tell(f"cut {link}")
        self._world.network.cut.add(link)
        self._later(self._while(), lambda: self._world.network.cut.discard(link))

    def _cut_off(self) -> None:
        self._separate([self._someone()])

    def _split(self) -> None:
        nodes = self._world.nodes
        self._separate(self._random.sample(nodes, len(nodes) // 2))

    def _separate(self, some: list[Node]) -> None:
        inside = {node.id for node in some}
        self._world.tell(f"separate {sorted(inside)}")
        links = {
            (one.id, other.id)
            for one in self._world.nodes
            for other in self._world.nodes
            if (one.id in inside) != (other.id in inside)
        }
        self._world.network.cut |= links
        self._later(self._while(), lambda: self._world.network.cut.difference_update(links))

    def _pause(self) -> None:
        node = self._someone()
        if node.is_up and not node.paused:
            self._world.tell(f"pause {node.id}")
            node.pause()
            self._later(self._while(), node.resume)

    def _slow_disk(self) -> None:
        disk = self._someone().disk
        disk.max_flush_ms = self._random.choice([4, 4, 50, 400])

    def _lose(self) -> None:
        self._world.network.loss = self._random.choice([0.0, 0.0, 0.05, 0.3])
        self._world.network.doubling = self._random.choice([0.0, 0.2])

    def _delay(self) -> None:
        self._world.network.max_delay_ms = self._random.choice([5, 5, 30, 120])

    def _resign(self) -> None:
        node = self._world.leader()
        if node is not None and not node.paused:
            self._world.tell(f"resign {node.id}")
            node.resign()

    def _snapshot(self) -> None:
        node = self._someone()
        if node.is_up:
            node.take_snapshot()

    def _stutter(self) -> None:
        """A connection to the leader breaks, and nothing else."""
        node = self._random.choice(self._world.nodes)
        if node.raft is not None and not node.paused:
            node.lose_connection()

    def _change_voters(self) -> None:
        """Add or remove one voter, as a leader does that has committed in its epoch."""
        node = self._world.leader()
        if node is None or not node.may_change_voters():
            return
        assert node.raft is not None
        voters, other = node.raft.voters, self._random.choice(self._world.nodes)
        if voters.get(other.id) is None:
            voters = voters.with_voter(self._world.voter(other.key))
        elif len(voters) > 2:
            # Of two, as in Kafka, one may know that it is removed, the other not and need its vote.
            voters = voters.without(other.id)
        if node.propose(voters):
            self._world.tell(f"{node.id} makes voters {voters.ids()}")
