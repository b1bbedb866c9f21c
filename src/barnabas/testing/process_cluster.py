"""The node processes of a cluster, and the network between them."""

import contextlib
import signal
from collections.abc import Mapping
from pathlib import Path

from barnabas.testing.network import LinkNetwork, node_name
from barnabas.testing.ports import LOOPBACK
from barnabas.testing.process_node import BARNABAS, NodeRole, ProcessNode
from barnabas.testing.requests import BrokerError, Connect, MetadataView, connect, fetch_metadata
from barnabas.testing.wait import wait_until
from barnabas.wire.uuid import random_uuid, to_text

START_TIMEOUT_S = 60.0
FORMAT_TIMEOUT_S = 60.0


class ProcessCluster:
    """Node processes by id. `with_network` connects them by links that can be cut."""

    def __init__(
        self,
        directory: Path,
        roles: Mapping[int, NodeRole],
        settings: Mapping[str, str],
        *,
        with_network: bool,
        connect: Connect = connect,
    ) -> None:
        """Requests to the listeners of clients are sent on the connections of `connect`."""
        self.connect = connect
        self.cluster_id = to_text(random_uuid())
        self.settings = dict(settings)
        self.nodes = {
            node_id: ProcessNode(
                node_id,
                role,
                directory / node_name(node_id),
                host=node_name(node_id) if with_network else LOOPBACK,
            )
            for node_id, role in roles.items()
        }
        self.network: LinkNetwork | None = None
        if with_network:
            self.network = LinkNetwork(
                {
                    node.node_id: (node.broker_port, node.controller_port)
                    for node in self.nodes.values()
                }
            )
        self._is_formatted = False

    @property
    def brokers(self) -> list[ProcessNode]:
        return [node for node in self.nodes.values() if node.role.broker]

    @property
    def controllers(self) -> list[ProcessNode]:
        return [node for node in self.nodes.values() if node.role.controller]

    @property
    def bootstrap_servers(self) -> str:
        return ",".join(broker.bootstrap_server for broker in self.brokers)

    def start(self) -> None:
        """Formats new nodes, starts all nodes, and waits until they form a cluster."""
        if self.network and not self._is_formatted:
            self.network.start()
        self.format()
        for node in self.nodes.values():
            self.start_node(node)
        self.wait_until_ready()

    def format(self) -> None:
        if self._is_formatted:
            return
        for node in self.nodes.values():
            node.configure(self.settings | self.quorum_settings())
            if self.network:
                node.hosts_file.write_text(self.network.hosts_file(node.node_id))
        flags = self.format_flags()
        processes = {}
        for node in self.nodes.values():
            processes[node] = node.format(self.cluster_id, *flags[node.node_id])
            if node.program is not BARNABAS:
                # Many JVMs at once use all memory and save no time.
                processes[node].wait(FORMAT_TIMEOUT_S)
        for node, process in processes.items():
            if process.wait(FORMAT_TIMEOUT_S):
                raise BrokerError(f"Node {node.node_id} was not formatted: {node.last_log_line()}")
        self._is_formatted = True

    def stop(self) -> None:
        """Stops all nodes cleanly at the same time."""
        running = [node for node in self.nodes.values() if node.is_running]
        for node in running:
            node.send_signal(signal.SIGTERM)  # once: a second signal kills Barnabas
        for node in running:
            try:
                node.wait()
            except TimeoutError:
                # The last Kafka node waits for a lost quorum; Barnabas must stop.
                if node.program is BARNABAS:
                    raise
            finally:
                self._update_network(node, is_up=False)

    def close(self) -> None:
        """Kills all nodes and closes the network."""
        for node in self.nodes.values():
            with contextlib.suppress(ProcessLookupError):
                node.resume()
            node.kill()
        if self.network:
            self.network.close()
            self.network = None

    def start_node(self, node: ProcessNode) -> None:
        node.start()
        self._update_network(node, is_up=True)

    def kill_node(self, node: ProcessNode) -> None:
        node.kill()
        self._update_network(node, is_up=False)

    def stop_node(self, node: ProcessNode) -> None:
        try:
            node.stop()
        finally:
            self._update_network(node, is_up=False)

    def log_tails(self) -> str:
        return "\n\n".join(node.log_tail() for node in self.nodes.values())

    def _update_network(self, node: ProcessNode, *, is_up: bool) -> None:
        if self.network:
            self.network.set_node_up(node.node_id, is_up)

    def wait_until_ready(self, timeout_s: float = START_TIMEOUT_S) -> None:
        """Waits until every broker knows all other brokers."""
        wait_until(self.is_ready, "every broker knows all others", timeout_s)

    def wait_until_in_sync(self, timeout_s: float = START_TIMEOUT_S) -> None:
        """Waits until every replica is in sync, in the metadata of every broker."""
        wait_until(self.is_in_sync, "every replica is in sync", timeout_s)

    def is_ready(self) -> bool:
        for node in self.nodes.values():
            if not node.is_running:
                raise BrokerError(f"Node {node.node_id} has exited: {node.last_log_line()}")
        expected = {node.node_id for node in self.brokers}
        with contextlib.suppress(OSError):
            return all(self._fetch(node).brokers == expected for node in self.brokers)
        return False

    def is_in_sync(self) -> bool:
        with contextlib.suppress(OSError):
            return all(
                replicas.are_all_in_sync
                for node in self.brokers
                for replicas in self._fetch(node).partitions.values()
            )
        return False

    def has_leaders(self, topic: str, partitions: int) -> bool:
        """Whether every running broker knows the leaders of the topic."""
        with contextlib.suppress(OSError):
            return all(
                (topic, index) in metadata.partitions
                and metadata.partitions[topic, index].leader >= 0
                for metadata in map(self._fetch, self.reachable_brokers())
                for index in range(partitions)
            )
        return False

    def metadata(self) -> MetadataView | None:
        """Returns the metadata of a broker that responds, or None."""
        return next(filter(None, map(self.metadata_of, self.reachable_brokers())), None)

    def metadata_of(self, node: ProcessNode) -> MetadataView | None:
        """Returns the metadata of that broker; None if it does not respond."""
        with contextlib.suppress(OSError):
            return self._fetch(node)
        return None

    def _fetch(self, node: ProcessNode) -> MetadataView:
        return fetch_metadata(node.port, connect=self.connect)

    def leader_of(self, topic: str, partition: int = 0) -> ProcessNode:
        """Waits for a leader of the partition, and returns its node."""
        found: list[ProcessNode] = []

        def is_led() -> bool:
            metadata = self.metadata()
            replicas = metadata and metadata.partitions.get((topic, partition))
            if replicas and replicas.leader in self.nodes:
                found.append(self.nodes[replicas.leader])
            return bool(found)

        wait_until(is_led, f"{topic}-{partition} has a leader")
        return found[0]

    def reachable_brokers(self) -> list[ProcessNode]:
        """The brokers that run and are not paused."""
        return [node for node in self.brokers if node.is_running and not node.is_paused]

    def quorum_settings(self) -> dict[str, str]:
        addresses = [
            f"{controller.host}:{controller.controller_port}" for controller in self.controllers
        ]
        return {"controller.quorum.bootstrap.servers": ",".join(addresses)}

    def format_flags(self) -> dict[int, list[str]]:
        """Returns the flags of the format command, by node."""
        voters = ",".join(
            f"{controller.node_id}@{controller.host}:{controller.controller_port}:{to_text(random_uuid())}"
            for controller in self.controllers
        )
        return {
            node_id: ["--initial-controllers", voters] if node.role.controller else []
            for node_id, node in self.nodes.items()
        }
