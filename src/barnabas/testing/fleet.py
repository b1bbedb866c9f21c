"""The processes of a cluster and the network between them: formatted, started, ended as one."""

import contextlib
import signal
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from barnabas.testing.asking import View, view
from barnabas.testing.errors import BrokerError
from barnabas.testing.network import Network, name
from barnabas.testing.node import BARNABAS, Node, Role
from barnabas.testing.ports import LOOPBACK
from barnabas.wire.uuid import random_uuid, to_text

START_S = 60.0
FORMAT_S = 60.0


class Fleet:
    """Nodes by id. Without a network of its own, they reach each other directly."""

    def __init__(
        self,
        directory: Path,
        roles: Mapping[int, Role],
        settings: Mapping[str, str],
        *,
        with_network: bool,
    ) -> None:
        self.cluster_id = to_text(random_uuid())
        self.settings = dict(settings)
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
                    node.node_id: (node.broker_port, node.controller_port)
                    for node in self.nodes.values()
                }
            )
        self._is_formatted = False

    @property
    def brokers(self) -> list[Node]:
        return [node for node in self.nodes.values() if node.role.broker]

    @property
    def controllers(self) -> list[Node]:
        return [node for node in self.nodes.values() if node.role.controller]

    @property
    def bootstrap(self) -> str:
        return ",".join(broker.bootstrap for broker in self.brokers)

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
            node.configure(self.settings | self.quorum_settings())
            if self.network:
                node.hosts_file.write_text(self.network.hosts(node.node_id))
        flags = self.format_flags()
        under_way = {}
        for node in self.nodes.values():
            under_way[node] = node.format(self.cluster_id, *flags[node.node_id])
            if node.program is not BARNABAS:
                # Many JVMs at once take all the memory and no less time.
                under_way[node].wait(FORMAT_S)
        for node, process in under_way.items():
            if process.wait(FORMAT_S):
                raise BrokerError(f"Node {node.node_id} was not formatted: {node.last_words()}")
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
                self._tell_network(node, is_up=False)

    def end(self) -> None:
        """Whatever its state, leave nothing behind."""
        for node in self.nodes.values():
            with contextlib.suppress(ProcessLookupError):
                node.resume()
            node.kill()
        if self.network:
            self.network.close()
            self.network = None

    def start_node(self, node: Node) -> None:
        node.start()
        self._tell_network(node, is_up=True)

    def kill_node(self, node: Node) -> None:
        node.kill()
        self._tell_network(node, is_up=False)

    def stop_node(self, node: Node) -> None:
        try:
            node.stop()
        finally:
            self._tell_network(node, is_up=False)

    def said(self) -> str:
        return "\n\n".join(node.said() for node in self.nodes.values())

    def _tell_network(self, node: Node, *, is_up: bool) -> None:
        if self.network:
            self.network.is_up(node.node_id, is_up)

    # What it looks like

    def await_ready(self, deadline_s: float = START_S) -> None:
        """Until every broker knows every other one."""
        wait_until(self.is_ready, "every broker knows every other one", deadline_s)

    def await_whole(self, deadline_s: float = START_S) -> None:
        """Until every replica of every partition is in sync, as every broker sees it."""
        wait_until(self.is_whole, "every replica is in sync", deadline_s)

    def is_ready(self) -> bool:
        for node in self.nodes.values():
            if not node.is_running:
                raise BrokerError(f"Node {node.node_id} has ended: {node.last_words()}")
        expected = {node.node_id for node in self.brokers}
        with contextlib.suppress(OSError):
            return all(view(node.port).brokers == expected for node in self.brokers)
        return False

    def is_whole(self) -> bool:
        with contextlib.suppress(OSError):
            return all(
                replicas.is_whole
                for node in self.brokers
                for replicas in view(node.port).partitions.values()
            )
        return False

    def has_leaders(self, topic: str, partitions: int) -> bool:
        """On every broker that runs: a client may ask any of them."""
        with contextlib.suppress(OSError):
            return all(
                (topic, index) in seen.partitions and seen.partitions[topic, index].leader >= 0
                for seen in map(view, (node.port for node in self.answering()))
                for index in range(partitions)
            )
        return False

    def view(self) -> View | None:
        """As a broker that answers sees it."""
        return next(filter(None, map(self.view_of, self.answering())), None)

    def view_of(self, node: Node) -> View | None:
        """As that broker sees it; None if it does not answer."""
        with contextlib.suppress(OSError):
            return view(node.port)
        return None

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

    def answering(self) -> list[Node]:
        """The brokers that one can ask."""
        return [node for node in self.brokers if node.is_running and not node.is_paused]

    # Its files: the controllers are the first voters of a quorum that can change

    def quorum_settings(self) -> dict[str, str]:
        addresses = [
            f"{controller.host}:{controller.controller_port}" for controller in self.controllers
        ]
        return {"controller.quorum.bootstrap.servers": ",".join(addresses)}

    def format_flags(self) -> dict[int, list[str]]:
        """Of the command that formats, by node."""
        voters = ",".join(
            f"{controller.node_id}@{controller.host}:{controller.controller_port}:{to_text(random_uuid())}"
            for controller in self.controllers
        )
        return {
            node_id: ["--initial-controllers", voters] if node.role.controller else []
            for node_id, node in self.nodes.items()
        }


def wait_until(
    condition: Callable[[], object], what: str, deadline_s: float = START_S, *, step_s: float = 0.05
) -> None:
    deadline = time.monotonic() + deadline_s
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {deadline_s} s: {what}")
        time.sleep(step_s)
