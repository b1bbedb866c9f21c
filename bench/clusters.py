"""Three nodes of one implementation, each broker and controller, as one thing to measure."""

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
"""Of a topic that is produced to: each broker leads one."""

HEAP = "-Xmx1G -Xms1G"
"""As Kafka's own scripts start a broker."""

TIMEOUT_S = 120


class ClusterProcesses:
    """All nodes that run, weighed together."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def cpu_s(self) -> float:
        return float(sum(process.cpu_s() for process in self._each()))

    def rss_mb(self) -> float:
        return float(sum(process.rss_mb() for process in self._each()))

    def _each(self) -> Iterator[peer_bench.Process]:  # type: ignore[name-defined]
        for node in self._cluster.nodes.values():
            if node.is_running:
                yield peer_bench.Process(node.pid)


class ClusterUnderTest(peer_bench.Bench):  # type: ignore[misc, name-defined]
    """A cluster to start, to load, to hurt and to weigh; its figures collect in `results`."""

    name: str
    program: NodeProgram
    warm_up_records: int
    """Enough for a compiler to have done its work, where there is one."""

    def __init__(self, directory: Path, *, scale: float) -> None:
        self.directory = directory / f"{self.name.lower()}-cluster"
        super().__init__(SimpleNamespace(bootstrap="127.0.0.1:0", pid=None, scale=scale))
        self.cluster: Cluster

    def scaled_count(self, records: int) -> int:
        return max(int(records * self.options.scale), 10)

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """From nothing to a cluster that has started; afterwards nothing is left of it."""
        self.cluster = Cluster.combined(self.directory, [self.program] * REPLICATION_FACTOR)
        self.bootstrap = self.cluster.bootstrap_servers
        self.process = ClusterProcesses(self.cluster)
        with self.cluster:
            yield
        shutil.rmtree(self.directory)

    def warm_up(self) -> None:
        for settings in peer_bench.SMALL_BATCH, peer_bench.LARGE_BATCH:
            with self.topic() as topic:
                self.perf_produce(topic, self.scaled_count(self.warm_up_records), 100, **settings)

    def create(self, names: list[str], partitions: int = PARTITIONS) -> None:
        admin = self.admin()
        new = [NewTopic(name, partitions, REPLICATION_FACTOR) for name in names]
        for created in admin.create_topics(new, operation_timeout=TIMEOUT_S).values():
            created.result()
        wait_until(partial(self._has, names, partitions), "new topics are everywhere", TIMEOUT_S)

    def elect_preferred_leaders(self) -> None:
        """Let the preferred leaders lead again, which are spread evenly."""
        admin = self.admin()  # lives until the answer is in
        admin.elect_leaders(ElectionType.PREFERRED).result()
        wait_until(self._is_led_as_preferred, "the preferred leaders lead", TIMEOUT_S)

    def other_nodes(self, *left_out: ProcessNode) -> list[ProcessNode]:
        return [node for node in self.cluster.nodes.values() if node not in left_out]

    def pause_s(self, seconds: float) -> None:
        """Let what was begun come to an end."""
        time.sleep(seconds if self.options.scale >= 1 else seconds / 5)

    def _is_led_as_preferred(self) -> bool:
        with contextlib.suppress(OSError):
            return all(
                replicas.leader == replicas.replicas[0]
                for node in self.cluster.brokers
                for replicas in fetch_metadata(node.port).partitions.values()
            )
        return False

    def _has(self, names: list[str], partitions: int) -> bool:
        """Whether every broker knows the topics, and every replica of them is in sync."""
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
    # As installed: without what the tests put in its way, with the bytecode it has compiled.
    program = replace(
        BARNABAS,
        start=("env", "--unset=PYTHONDONTWRITEBYTECODE", *BARNABAS.start),
        environment=lambda _: {},
    )
    warm_up_records = 50_000


CLUSTERS: list[type[ClusterUnderTest]] = [KafkaCluster, BarnabasCluster]
