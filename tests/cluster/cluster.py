"""A cluster of real processes, each of them Barnabas or the real Kafka, to start, hurt and heal."""

import contextlib
import signal
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from tests.cluster.ask import QuorumView, View, quorum_view, view
from tests.cluster.node import BARNABAS, Node, Program, Role
from tests.cluster.proxy import LOOPBACK, Network, name
from tests.conformance.brokers import wait_until

from barnabas.wire.uuid import random_uuid, to_text

START_S = 60

T = TypeVar("T")

SETTINGS = {
    "num.partitions": "3",
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "offsets.topic.num.partitions": "3",
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.num.partitions": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "group.initial.rebalance.delay.ms": "0",
    "auto.create.topics.enable": "false",
}
"""Three copies of everything, two of which must know what is acknowledged."""


class Quorum(Enum):
    """How the voters of the metadata log are known."""

    STATIC = "controller.quorum.voters"
    DYNAMIC = "--initial-controllers"
    STANDALONE = "--standalone"
    """The first controller alone; the others observe until they are added."""


class Cluster:
    """Nodes by id. Without a network of its own, they reach each other directly."""

    def __init__(
        self,
        directory: Path,
        roles: Mapping[int, Role],
        *,
        quorum: Quorum = Quorum.DYNAMIC,
        settings: Mapping[str, str] | None = None,
        with_network: bool = False,
    ) -> None:
        self.cluster_id = to_text(random_uuid())
        self.quorum = quorum
        self.settings = SETTINGS | dict(settings or {})
        self.nodes = {
            node_id: Node(
                node_id,
                role,
                directory / name(node_id),
                host=name(node_id) if with_network else LOOPBACK,
            )
            for node_id, role in roles.items()
        }
        self.network: Network | None = None
        if with_network:
            self.network = Network(
                {
                    each.node_id: (each.broker_port, each.controller_port)
                    for each in self.nodes.values()
                }
            )
        self._is_formatted = False

    @classmethod
    def combined(cls, directory: Path, programs: Sequence[Program], **more: object) -> Self:
        """Every node is both, numbered from 1."""
        roles = {number: Role(each) for number, each in enumerate(programs, start=1)}
        return cls(directory, roles, **more)  # type: ignore[arg-type]

    @classmethod
    def separate(
        cls,
        directory: Path,
        controllers: Sequence[Program],
        brokers: Sequence[Program],
        **more: object,
    ) -> Self:
        """Brokers numbered from 1, controllers from 101."""
        roles = {number: Role(each, controller=False) for number, each in enumerate(brokers, 1)}
        roles |= {number: Role(each, broker=False) for number, each in enumerate(controllers, 101)}
        return cls(directory, roles, **more)  # type: ignore[arg-type]

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            print(self.said())
            self.end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, failure: object, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            print(self.said())
        self.end()

    @property
    def brokers(self) -> list[Node]:
        return [each for each in self.nodes.values() if each.role.broker]

    @property
    def controllers(self) -> list[Node]:
        return [each for each in self.nodes.values() if each.role.controller]

    @property
    def bootstrap(self) -> str:
        return ",".join(each.bootstrap for each in self.brokers)

    # Beginning and end

    def start(self) -> None:
        """Format what is new, start every node and wait until they form a cluster."""
        if self.network and not self._is_formatted:
            self.network.start()
        self.format()
        for node in self.nodes.values():
            self.start_node(node)
        self.await_ready()

    def format(self) -> None:
        if self._is_formatted:
            return
        for node in self.nodes.values():
            node.configure(self.settings | self._quorum_settings())
            if self.network:
                node.hosts_file.write_text(self.network.hosts(node.node_id))
        # One after the other where it is a JVM: many at once take all the memory and no less time.
        flags = self._format_flags()
        for node in self.nodes.values():
            status = node.format(self.cluster_id, *flags[node.node_id]).wait(60)
            assert status == 0, f"format ended with {status}: {node.said()}"
        self._is_formatted = True

    def stop(self) -> None:
        """Cleanly, all at once."""
        running = [node for node in self.nodes.values() if node.is_running]
        for node in running:
            node.send(signal.SIGTERM)  # once: ours takes a second one for an order to end at once
        for node in running:
            try:
                node.await_end()
            except TimeoutError:
                # The last of Kafka's waits for a quorum that is no more; ours has to end.
                if node.program is BARNABAS:
                    raise
            finally:
                if self.network:
                    self.network.is_up(node.node_id, False)

    def end(self) -> None:
        """Whatever its state, leave nothing behind."""
        for node in self.nodes.values():
            with contextlib.suppress(ProcessLookupError):
                node.resume()
            node.kill()
        if self.network and self._is_formatted:
            self.network.close()
            self.network = None

    def start_node(self, node: Node) -> None:
        node.start()
        if self.network:
            self.network.is_up(node.node_id, True)

    def kill_node(self, node: Node) -> None:
        node.kill()
        if self.network:
            self.network.is_up(node.node_id, False)

    def stop_node(self, node: Node) -> None:
        try:
            node.stop()
        finally:
            if self.network:
                self.network.is_up(node.node_id, False)

    def said(self) -> str:
        return "\n\n".join(node.said() for node in self.nodes.values())

    # What it looks like

    def view(self) -> View | None:
        """As a broker that answers sees it."""
        return self._first_answer(lambda node: view(node.port))

    def quorum_view(self) -> QuorumView | None:
        return self._first_answer(lambda node: quorum_view(node.port))

    def await_ready(self, deadline_s: float = START_S) -> None:
        """Until every running broker knows every other one, and there is an active controller."""
        wait_until(self._is_ready, "every broker knows every other one", deadline_s, step_s=0.1)

    def await_whole(self, deadline_s: float = START_S) -> None:
        """Until every replica of every partition is in sync, as every broker sees it."""
        wait_until(self._is_whole, "every replica is in sync", deadline_s, step_s=0.1)

    def create_topic(self, topic: str, partitions: int, copies: int = 3, **config: str) -> None:
        named = {key.replace("_", "."): value for key, value in config.items()}
        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        new = NewTopic(topic, partitions, copies, config=named)
        admin.create_topics([new])[topic].result(START_S)
        wait_until(lambda: self._has_leaders(topic, partitions), f"{topic} has leaders")

    def leader_of(self, topic: str, partition: int = 0) -> Node:
        """As soon as there is one."""
        found: list[Node] = []

        def is_led() -> bool:
            seen = self.view()
            replicas = seen and seen.partitions.get((topic, partition))
            if replicas and replicas.leader in self.nodes:
                found.append(self.nodes[replicas.leader])
            return bool(found)

        wait_until(is_led, f"{topic}-{partition} has a leader")
        return found[0]

    def active_controller(self) -> Node:
        found: list[Node] = []

        def is_led() -> bool:
            seen = self.quorum_view()
            if seen and seen.leader in self.nodes:
                found.append(self.nodes[seen.leader])
            return bool(found)

        wait_until(is_led, "the quorum has a leader")
        return found[0]

    def _first_answer(self, question: Callable[[Node], T | None]) -> T | None:
        for node in self.brokers:
            if node.is_running and not node.is_paused:
                with contextlib.suppress(OSError):
                    if (answer := question(node)) is not None:
                        return answer
        return None

    def _is_ready(self) -> bool:
        for node in self.nodes.values():
            assert node.is_running, node.said()
        expected = {node.node_id for node in self.brokers}
        with contextlib.suppress(OSError):
            return self.quorum_view() is not None and all(
                view(node.port).brokers == expected for node in self.brokers
            )
        return False

    def _is_whole(self) -> bool:
        with contextlib.suppress(OSError):
            return all(
                replicas.is_whole
                for node in self.brokers
                for replicas in view(node.port).partitions.values()
            )
        return False

    def _has_leaders(self, topic: str, partitions: int) -> bool:
        """On every broker that runs: a client may ask any of them."""
        with contextlib.suppress(OSError):
            return all(
                (topic, index) in seen.partitions and seen.partitions[topic, index].leader >= 0
                for seen in (view(node.port) for node in self.brokers if node.is_running)
                for index in range(partitions)
            )
        return False

    # Its files

    def _quorum_settings(self) -> dict[str, str]:
        addresses = {
            each.node_id: f"{each.host}:{each.controller_port}" for each in self.controllers
        }
        if self.quorum is Quorum.STATIC:
            voters = ",".join(f"{node_id}@{at}" for node_id, at in addresses.items())
            return {"controller.quorum.voters": voters}
        return {"controller.quorum.bootstrap.servers": ",".join(addresses.values())}

    def _format_flags(self) -> dict[int, list[str]]:
        flags: dict[int, list[str]] = {node_id: [] for node_id in self.nodes}
        if self.quorum is Quorum.DYNAMIC:
            voters = ",".join(
                f"{each.node_id}@{each.host}:{each.controller_port}:{to_text(random_uuid())}"
                for each in self.controllers
            )
            flags |= {each.node_id: ["--initial-controllers", voters] for each in self.controllers}
        elif self.quorum is Quorum.STANDALONE:
            first, *others = self.controllers
            flags[first.node_id] = ["--standalone"]
            flags |= {each.node_id: ["--no-initial-controllers"] for each in others}
        return flags
