"""Several brokers, each a process, to be killed, paused, cut off from each other, and healed.

Clients reach every broker at any time: it is the brokers that lose sight of each other.
"""

import asyncio
from collections.abc import Collection, Mapping
from itertools import permutations
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Self

from barnabas.testing.asking import Replicas, ask
from barnabas.testing.errors import BrokerError
from barnabas.testing.fleet import START_S, Fleet, wait_until
from barnabas.testing.node import Node, Role
from barnabas.testing.topics import as_text, creation, require_done

CONTROLLERS = 3
"""How many of the brokers vote, if there are as many: these survive the loss of one."""

MOST_COPIES = 3
CREATE_VERSION = 7
CREATE_S = 20.0

DEFAULTS = {
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "100",
    # Who is paused or cut off is given up soon.
    "broker.session.timeout.ms": "4000",
    "broker.heartbeat.interval.ms": "500",
    "replica.lag.time.max.ms": "4000",
}


class Cluster:
    """Brokers 0, 1, 2, ... with copies of everything, from `start` or the beginning of a `with`.

    `settings` are those of server.properties, the same for all.
    """

    def __init__(self, brokers: int = 3, settings: Mapping[str, object] | None = None) -> None:
        if brokers < 1:
            raise ValueError(f"a cluster has a broker at least, not {brokers}")
        self._temporary = TemporaryDirectory(prefix="barnabas-")
        self.directory = Path(self._temporary.name)
        self._copies = min(brokers, MOST_COPIES)
        self._fleet = Fleet(
            self.directory,
            {number: Role(controller=number < CONTROLLERS) for number in range(brokers)},
            {
                **DEFAULTS,
                **_copies_of_everything(self._copies),
                **{name: as_text(value) for name, value in (settings or {}).items()},
            },
            with_network=True,
        )

    @property
    def bootstrap_servers(self) -> str:
        """All of them, whatever state they are in."""
        return self._fleet.bootstrap

    @property
    def nodes(self) -> Mapping[int, Node]:
        """The processes: their ids, directories and logs."""
        return self._fleet.nodes

    # Beginning and end

    def start(self) -> Self:
        """Returns when every broker serves and knows all the others."""
        self._fleet.start()
        return self

    def close(self) -> None:
        """End the processes, and leave nothing behind."""
        self._fleet.end()
        self._temporary.cleanup()

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException as failure:
            failure.add_note(self._fleet.said())
            self.close()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, failure: object, trace: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return await asyncio.to_thread(self.__enter__)

    async def __aexit__(
        self, kind: type[BaseException] | None, failure: object, trace: TracebackType | None
    ) -> None:
        await asyncio.to_thread(self.close)

    # What can happen to it

    def kill(self, number: int) -> None:
        """End a broker's process at once, as a crash does."""
        self._fleet.kill_node(self._running(number))

    def stop(self, number: int) -> None:
        """Stop a broker cleanly: it hands over to the others first."""
        self._fleet.stop_node(self._running(number))

    def restart(self, number: int) -> None:
        """Start a broker again, after a clean stop if it runs; returns when it serves."""
        node = self._node(number)
        if node.is_running:
            self.stop(number)
        self._fleet.start_node(node)
        wait_until(lambda: self._serves(node), f"broker {number} serves again", START_S)

    def pause(self, number: int) -> None:
        """Let a broker stand still: its connections stay, and nothing comes from it."""
        self._running(number).pause()

    def resume(self, number: int) -> None:
        self._running(number).resume()

    def partition(self, *sides: Collection[int]) -> None:
        """Let brokers of different sides not reach each other, in place of any split before.

        Those that are not named are one more side: `partition({0})` leaves broker 0 alone.
        """
        self.heal()
        side_of = {number: side for side, members in enumerate(sides) for number in members}
        for number in side_of:
            self._node(number)
        ways = permutations(self._fleet.nodes, 2)
        assert self._fleet.network is not None
        self._fleet.network.cut((a, b) for a, b in ways if side_of.get(a, -1) != side_of.get(b, -1))

    def heal(self) -> None:
        """Let all brokers reach each other again."""
        assert self._fleet.network is not None
        self._fleet.network.heal(permutations(self._fleet.nodes, 2))

    # What it has

    def create_topic(
        self, name: str, partitions: int = 1, config: Mapping[str, object] | None = None
    ) -> None:
        """Create a topic with copies on up to three brokers; returns when all know its leaders."""
        port = self._fleet.answering()[0].port
        request = creation(name, partitions, self._copies, config)
        require_done(ask(port, request, CREATE_VERSION, deadline_s=CREATE_S))
        wait_until(lambda: self._fleet.has_leaders(name, partitions), f"{name} has leaders")

    def leader_of(self, topic: str, partition: int = 0) -> int:
        """The broker that leads it, as soon as there is one."""
        return self._fleet.leader_of(topic, partition).node_id

    def view_from(self, number: int) -> Mapping[tuple[str, int], Replicas]:
        """Leaders and copies of every partition as one broker sees them; empty if it is silent."""
        seen = self._fleet.view_of(self._node(number))
        return seen.partitions if seen is not None else {}

    def wait_until_healthy(self, timeout_s: float = START_S) -> None:
        """Until every broker is there, and every copy of every partition is in sync."""
        wait_until(
            lambda: self._fleet.is_ready() and self._fleet.is_whole(),
            "every broker is there and every copy in sync",
            timeout_s,
        )

    def _serves(self, node: Node) -> bool:
        if not node.is_running:
            raise BrokerError(f"Broker {node.node_id} did not start: {node.last_words()}")
        seen = self._fleet.view_of(node)
        return seen is not None and node.node_id in seen.brokers

    def _running(self, number: int) -> Node:
        node = self._node(number)
        if not node.is_running:
            raise BrokerError(f"Broker {number} does not run: restart it.")
        return node

    def _node(self, number: int) -> Node:
        try:
            return self._fleet.nodes[number]
        except KeyError:
            there = ", ".join(map(str, self._fleet.nodes))
            raise ValueError(f"there is no broker {number}, only {there}") from None


def _copies_of_everything(copies: int) -> dict[str, str]:
    needed = str(min(copies, 2))
    return {
        "default.replication.factor": str(copies),
        "min.insync.replicas": needed,
        "offsets.topic.replication.factor": str(copies),
        "transaction.state.log.replication.factor": str(copies),
        "transaction.state.log.min.isr": needed,
        "share.coordinator.state.topic.replication.factor": str(copies),
        "share.coordinator.state.topic.min.isr": needed,
    }
