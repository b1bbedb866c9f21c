"""A cluster under test: three nodes of one implementation, each broker and controller."""

import contextlib
import shutil
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace

from confluent_kafka import ElectionType
from confluent_kafka.cimpl import NewTopic
from tests.cluster.cluster import Cluster
from tests.cluster.node import BARNABAS, KAFKA, NodeProgram, ProcessNode
from tests.wait import wait_until

from barnabas.testing.requests import fetch_metadata
from bench.brokers import peer_bench

REPLICATION_FACTOR = 3
PARTITIONS = 3
"""Partitions of a topic that is produced to: each broker leads one."""

HEAP = "-Xmx1G -Xms1G"
"""The heap of Kafka's own start scripts."""

TIMEOUT_S = 120


class ClusterProcesses:
    """CPU and memory of all running nodes together."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def cpu_s(self) -> float:
        return float(sum(process.cpu_s() for process in self._processes()))

    def rss_mb(self) -> float:
        return float(sum(process.rss_mb() for process in self._processes()))

    def _processes(self) -> Iterator[peer_bench.Process]:  # type: ignore[name-defined]
        for node in self._cluster.nodes.values():
            if node.is_running:
                yield peer_bench.Process(node.pid)


class ClusterUnderTest(peer_bench.Bench):  # type: ignore[misc, name-defined]
    """A cluster that is started, loaded, disturbed and measured; its figures are in `results`."""

    name: str
    program: NodeProgram
    warm_up_records: int
    """Enough for a just-in-time compiler to finish."""

    def __init__(self, directory: Path, *, scale: float) -> None:
        self.directory = directory / f"{self.name.lower()}-cluster"
        super().__init__(SimpleNamespace(bootstrap="127.0.0.1:0", pid=None, scale=scale))
        self.cluster: Cluster

    def count(self, records: int) -> int:
        return max(int(records * self.options.scale), 10)

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Create and start the cluster; stop it and delete its data afterwards."""
        self.cluster = Cluster.combined(self.directory, [self.program] * REPLICATION_FACTOR)
        self.bootstrap = self.cluster.bootstrap_servers
        self.process = ClusterProcesses(self.cluster)
        with self.cluster:
            yield
        shutil.rmtree(self.directory)

    def warm_up(self) -> None:
        for settings in peer_bench.SMALL_BATCH, peer_bench.LARGE_BATCH:
            with self.topic() as topic:
                self.perf_produce(topic, self.count(self.warm_up_records), 100, **settings)

    def create(self, names: list[str], partitions: int = PARTITIONS) -> None:
        admin = self.admin()
        new = [NewTopic(name, partitions, REPLICATION_FACTOR) for name in names]
        for created in admin.create_topics(new, operation_timeout=TIMEOUT_S).values():
            created.result()
        wait_until(
            partial(self._has_topics, names, partitions), "new topics are everywhere", TIMEOUT_S
        )

    def elect_preferred_leaders(self) -> None:
        """Elect the preferred leaders, which are evenly distributed."""
        admin = self.admin()  # must live until the response arrives
        admin.elect_leaders(ElectionType.PREFERRED).result()
        wait_until(self._has_preferred_leaders, "the preferred leaders lead", TIMEOUT_S)

    def other_nodes(self, *excluded: ProcessNode) -> list[ProcessNode]:
        return [node for node in self.cluster.nodes.values() if node not in excluded]

    def pause_s(self, seconds: float) -> None:
        """Wait for background work to finish; shorter in a scaled-down run."""
        time.sleep(seconds if self.options.scale >= 1 else seconds / 5)

    def _has_preferred_leaders(self) -> bool:
        with contextlib.suppress(OSError):
            return all(
                replicas.leader == replicas.replicas[0]
                for node in self.cluster.brokers
                for replicas in fetch_metadata(node.port).partitions.values()
            )
        return False

    def _has_topics(self, names: list[str], partitions: int) -> bool:
        """Whether every broker has the topics, and all of their replicas are in sync."""
        with contextlib.suppress(OSError):
            return all(
                (name, index) in seen.partitions and seen.partitions[name, index].are_all_in_sync
                for seen in (fetch_metadata(node.port) for node in self.cluster.brokers)
                for name in names
                for index in range(partitions)
            )
        return False


class KafkaCluster(ClusterUnderTest):
    name = "Kafka"
    program = replace(KAFKA, start=("env", f"KAFKA_HEAP_OPTS={HEAP}", *KAFKA.start))
    warm_up_records = 2_000_000


class BarnabasCluster(ClusterUnderTest):
    name = "Barnabas"
    # As installed: without the settings of tests, and with bytecode files.
    program = replace(
        BARNABAS,
        start=("env", "--unset=PYTHONDONTWRITEBYTECODE", *BARNABAS.start),
        environment=lambda _: {},
    )
    warm_up_records = 50_000


CLUSTERS: list[type[ClusterUnderTest]] = [KafkaCluster, BarnabasCluster]
