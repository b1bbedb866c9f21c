"""A cluster of broker processes that a test can kill, pause, partition and heal.

Clients can always reach every broker: only the links between brokers are cut.
"""

import asyncio
from collections.abc import Callable, Collection, Mapping
from functools import partial
from itertools import permutations
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Self

from barnabas.config.unknown_names import find_similar
from barnabas.testing.process_cluster import START_TIMEOUT_S, ProcessCluster
from barnabas.testing.process_node import NodeRole, ProcessNode
from barnabas.testing.requests import (
    BrokerError,
    PartitionReplicas,
    create_topic_request,
    raise_for_errors,
    send_request,
    setting_text,
)
from barnabas.testing.setting_names import require_broker_settings, require_topic_configs
from barnabas.testing.wait import wait_until

CONTROLLERS = 3
"""The number of controllers if there are enough brokers: a quorum of three survives one failure."""

MAX_REPLICATION_FACTOR = 3
CREATE_VERSION = 7
CREATE_TIMEOUT_S = 20.0
COMPACT_TIMEOUT_S = 60.0

DEFAULTS = {
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "100",
    # A paused or partitioned broker is fenced soon.
    "broker.session.timeout.ms": "4000",
    "broker.heartbeat.interval.ms": "500",
    "replica.lag.time.max.ms": "4000",
}


class Cluster:
    """Brokers 0, 1, 2, ... with replicated topics, from `start` or in a `with` block.

    `settings` are those of server.properties, the same for all brokers. An unknown one is a
    BrokerError.
    """

    def __init__(self, brokers: int = 3, settings: Mapping[str, object] | None = None) -> None:
        if brokers < 1:
            raise ValueError(f"a cluster needs at least one broker, not {brokers}")
        require_broker_settings(settings or {})
        self._temporary = TemporaryDirectory(prefix="barnabas-")
        self.directory = Path(self._temporary.name)
        self._replication_factor = min(brokers, MAX_REPLICATION_FACTOR)
        self._cluster = ProcessCluster(
            self.directory,
            {number: NodeRole(controller=number < CONTROLLERS) for number in range(brokers)},
            {
                **DEFAULTS,
                **_replication_settings(self._replication_factor),
                **{name: setting_text(value) for name, value in (settings or {}).items()},
            },
            with_network=True,
        )

    @property
    def bootstrap_servers(self) -> str:
        """The addresses of all brokers, running or not."""
        return self._cluster.bootstrap_servers

    @property
    def nodes(self) -> Mapping[int, ProcessNode]:
        """The node processes by id."""
        return self._cluster.nodes

    def start(self) -> Self:
        """Starts the cluster; returns when every broker knows all others."""
        self._cluster.start()
        return self

    def close(self) -> None:
        """Kills the processes and removes their files."""
        self._cluster.close()
        self._temporary.cleanup()

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException as failure:
            failure.add_note(self._cluster.log_tails())
            self.close()
            raise

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return await asyncio.to_thread(self.__enter__)

    async def __aexit__(self, *_: object) -> None:
        await asyncio.to_thread(self.close)

    def kill(self, number: int) -> None:
        """Kills the process of a broker, like a crash."""
        self._cluster.kill_node(self._running(number))

    def stop(self, number: int) -> None:
        """Stops a broker with a controlled shutdown."""
        self._cluster.stop_node(self._running(number))

    def restart(self, number: int) -> None:
        """Starts a broker, after a clean stop if it runs; returns when it serves."""
        node = self._node(number)
        if node.is_running:
            self.stop(number)
        self._cluster.start_node(node)
        wait_until(lambda: self._serves(node), f"broker {number} serves", START_TIMEOUT_S)

    def pause(self, number: int) -> None:
        """Pauses the process of a broker; its connections stay open."""
        self._running(number).pause()

    def resume(self, number: int) -> None:
        self._running(number).resume()

    def partition(self, *sides: Collection[int]) -> None:
        """Cuts the links between brokers of different sides, and heals all others.

        Brokers that are not named form one more side: `partition({0})` isolates broker 0.
        """
        self.heal()
        side_of = {number: side for side, members in enumerate(sides) for number in members}
        for number in side_of:
            self._node(number)
        links = permutations(self._cluster.nodes, 2)
        assert self._cluster.network is not None
        self._cluster.network.cut(
            (a, b) for a, b in links if side_of.get(a, -1) != side_of.get(b, -1)
        )

    def heal(self) -> None:
        """Heals all links between brokers."""
        assert self._cluster.network is not None
        self._cluster.network.heal(permutations(self._cluster.nodes, 2))

    def create_topic(
        self,
        name: str,
        partitions: int | None = None,
        config: Mapping[str, object] | None = None,
    ) -> None:
        """Creates a topic with that many partitions, or `num.partitions`, and up to three replicas.

        Returns when all brokers know its leaders.
        """
        require_topic_configs(config or {})
        port = self._cluster.reachable_brokers()[0].port
        request = create_topic_request(name, partitions, self._replication_factor, config)
        response = send_request(port, request, CREATE_VERSION, timeout_s=CREATE_TIMEOUT_S)
        raise_for_errors(response)
        count: int = response.topics[0].num_partitions
        wait_until(lambda: self._cluster.has_leaders(name, count), f"{name} has leaders")

    def compact(self) -> None:
        """Compacts the topics whose cleanup.policy has `compact`, and returns when it is done.

        Every broker that runs and is not paused compacts its replicas. Neither the dirty ratio nor
        the active segment matters; `min.compaction.lag.ms` does.
        """
        compactions = {node: node.begin_compaction() for node in self._cluster.reachable_brokers()}
        for node, is_done in compactions.items():
            wait_until(
                partial(_is_compacted, node, is_done),
                f"broker {node.node_id} has compacted its logs",
                COMPACT_TIMEOUT_S,
            )

    def leader_of(self, topic: str, partition: int = 0) -> int:
        """Waits for a leader of the partition, and returns its broker id.

        Raises BrokerError if no broker knows the partition.
        """
        self._require_partition(topic, partition)
        return self._cluster.leader_of(topic, partition).node_id

    def partitions_seen_by(self, number: int) -> Mapping[tuple[str, int], PartitionReplicas]:
        """Returns the partitions in the metadata of one broker; empty if it does not respond."""
        metadata = self._cluster.metadata_of(self._node(number))
        return metadata.partitions if metadata is not None else {}

    def wait_until_healthy(self, timeout_s: float = START_TIMEOUT_S) -> None:
        """Waits until every broker runs, and every replica is in sync."""
        wait_until(
            lambda: self._cluster.is_ready() and self._cluster.is_in_sync(),
            "every broker runs and every replica is in sync",
            timeout_s,
        )

    def _require_partition(self, topic: str, partition: int) -> None:
        views = [
            view
            for node in self._cluster.reachable_brokers()
            if (view := self._cluster.metadata_of(node)) is not None
        ]
        known = {key for view in views for key in view.partitions}
        if not views or (topic, partition) in known:
            return
        topics = {name for name, _ in known}
        if topic in topics:
            raise BrokerError(f"Topic {topic} has no partition {partition}.")
        similar = find_similar(topic, topics)
        hint = f": did you mean {similar}?" if similar is not None else "."
        raise BrokerError(f"Topic {topic} does not exist{hint}")

    def _serves(self, node: ProcessNode) -> bool:
        if not node.is_running:
            raise BrokerError(f"Broker {node.node_id} did not start: {node.last_log_line()}")
        metadata = self._cluster.metadata_of(node)
        return metadata is not None and node.node_id in metadata.brokers

    def _running(self, number: int) -> ProcessNode:
        node = self._node(number)
        if not node.is_running:
            raise BrokerError(f"Broker {number} is not running: restart it.")
        return node

    def _node(self, number: int) -> ProcessNode:
        try:
            return self._cluster.nodes[number]
        except KeyError:
            ids = ", ".join(map(str, self._cluster.nodes))
            raise ValueError(f"there is no broker {number}, only {ids}") from None


def _is_compacted(node: ProcessNode, is_done: Callable[[], bool]) -> bool:
    if not node.is_running:
        raise BrokerError(f"Broker {node.node_id} has exited: {node.last_log_line()}")
    return is_done()


def _replication_settings(replication_factor: int) -> dict[str, str]:
    min_isr = str(min(replication_factor, 2))
    return {
        "default.replication.factor": str(replication_factor),
        "min.insync.replicas": min_isr,
        "offsets.topic.replication.factor": str(replication_factor),
        "transaction.state.log.replication.factor": str(replication_factor),
        "transaction.state.log.min.isr": min_isr,
        "share.coordinator.state.topic.replication.factor": str(replication_factor),
        "share.coordinator.state.topic.min.isr": min_isr,
    }
