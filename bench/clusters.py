"""Three nodes of one implementation, loaded and weighed like one broker."""

import contextlib
import os
import time
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace

from confluent_kafka.admin import NewTopic
from tests.cluster.cluster import Cluster
from tests.cluster.node import BARNABAS, KAFKA, Node, Program

from bench.brokers import peer_bench

COPIES = 3
PARTITIONS = 3


class Nodes:
    """The processes of a cluster as if they were one."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def cpu_s(self) -> float:
        return float(sum(process.cpu_s() for process in self._processes()))

    def rss_mb(self) -> float:
        return float(sum(process.rss_mb() for process in self._processes()))

    def _processes(self) -> list[peer_bench.Process]:  # type: ignore[name-defined]
        nodes = self._cluster.nodes.values()
        return [peer_bench.Process(node.pid) for node in nodes if node.is_running]


class ClusterContender(peer_bench.Bench):  # type: ignore[misc, name-defined]
    """A cluster of combined nodes with a copy of everything on each."""

    name: str
    program: Program

    def __init__(self, directory: Path, *, scale: float) -> None:
        self.directory = directory / f"{self.name.lower()}-cluster"
        self.directory.mkdir(parents=True, exist_ok=True)
        self.cluster = Cluster.combined(self.directory, [self.program] * COPIES)
        super().__init__(
            SimpleNamespace(
                bootstrap=self.cluster.nodes[1].bootstrap, pid=None, scale=scale, repeat=1
            )
        )
        self.bootstrap = self.cluster.bootstrap

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        os.environ.setdefault("KAFKA_HEAP_OPTS", "-Xmx1G -Xms1G")  # as Kafka's own scripts
        with self.cluster:
            self.process = Nodes(self.cluster)
            yield

    def count(self, records: int) -> int:
        return max(int(records * self.options.scale), 10)

    def create(self, names: Sequence[str], partitions: int = PARTITIONS) -> None:
        """And wait until every replica is in sync."""
        admin = self.admin()
        new = [NewTopic(name, partitions, COPIES) for name in names]
        for created in admin.create_topics(new).values():
            created.result()
        self.cluster.await_whole(120)

    @contextlib.contextmanager
    def topic(self) -> Iterator[str]:
        name = f"bench-{uuid.uuid4().hex[:8]}"
        self.create([name])
        try:
            yield name
        finally:
            self.delete([name])

    def others(self, *but: Node) -> list[Node]:
        return [node for node in self.cluster.nodes.values() if node not in but]

    def pause_s(self, seconds: float) -> None:
        """Let what was done before come to rest."""
        time.sleep(seconds)


class KafkaCluster(ClusterContender):
    name = "Kafka"
    program = KAFKA


class BarnabasCluster(ClusterContender):
    name = "Barnabas"
    program = BARNABAS


CLUSTERS: list[type[ClusterContender]] = [KafkaCluster, BarnabasCluster]
