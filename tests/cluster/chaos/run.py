"""A chaos run: clients, faults from a seed, and checks of the invariants."""

import random
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from confluent_kafka.admin import AclOperation, ResourceType
from tests.cluster.chaos import invariants
from tests.cluster.chaos.clients import Clients, confluent
from tests.cluster.chaos.faults import Fault, choose_faults
from tests.cluster.chaos.observations import PARTITIONS
from tests.cluster.chaos.readers import Reader, read_all
from tests.cluster.chaos.report import Timeline, report
from tests.cluster.chaos.writers import Writer
from tests.cluster.cluster import Cluster, Quorum
from tests.cluster.denied_client import USER as DENIED
from tests.cluster.denied_client import DeniedClient, denied_clients
from tests.cluster.node import NodeProgram
from tests.cluster.security import (
    PREFIXED,
    ClusterSecurity,
    allow,
    deny_everything,
)
from tests.wait import wait_until

PLAIN, TRANSACTIONAL = TOPICS = ["plain", "transactional"]
SETTINGS = {
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "500",
    "replica.lag.time.max.ms": "4000",
}
"""Shorter than Kafka's defaults, for more events in the same time."""
HEAL_S = 120
"""The maximum time until a cluster is in sync again."""

WRITER, TRANSACTIONAL_WRITER, READER = USERS = ["writer", "transactional-writer", "reader"]
"""The users of a secured run. Each may do only what its clients do."""

ACLS = [
    *(allow(READER, AclOperation.READ, ResourceType.TOPIC, topic) for topic in TOPICS),
    allow(WRITER, AclOperation.WRITE, ResourceType.TOPIC, PLAIN),
    allow(TRANSACTIONAL_WRITER, AclOperation.WRITE, ResourceType.TOPIC, TRANSACTIONAL),
    allow(
        *(TRANSACTIONAL_WRITER, AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID),
        *("t", PREFIXED),
    ),
    *deny_everything(DENIED),
]
OPEN_WITHOUT_ACLS = {"allow.everyone.if.no.acl.found": "true"}
"""A node that has no ACLs yet would serve every client."""


class ChaosRun:
    """A run on a new cluster of three nodes; `findings` are the violated invariants."""

    def __init__(
        self,
        directory: Path,
        programs: list[NodeProgram],
        *,
        seed: int,
        duration_s: float,
        quorum: Quorum = Quorum.DYNAMIC,
        is_separate: bool = False,
        clients: Clients | None = None,
        is_secured: bool = False,
    ) -> None:
        """Creates combined nodes, or as many separate controllers if `is_separate`.

        With `is_secured`, all listeners have SASL_SSL, and clients may do only what they need.
        """
        self._clients = clients or confluent()
        self._rng = random.Random(seed)
        self._duration_s = duration_s
        more = {"settings": SETTINGS, "quorum": quorum, "with_network": True}
        if is_secured:
            more["security"] = ClusterSecurity(directory / "security", [*USERS, DENIED])
            more["settings"] = SETTINGS | OPEN_WITHOUT_ACLS
        if is_separate:
            self._cluster = Cluster.separate(directory, programs, programs, **more)
        else:
            self._cluster = Cluster.combined(directory, programs, **more)
        roles = "separate roles" if is_separate else "combined roles"
        self._title = (
            f"{', '.join(map(str, programs))}: {roles}, {quorum.name.lower()} quorum,"
            f"{' secured,' if is_secured else ''}"
            f" {self._clients} clients, seed {seed}, {duration_s:.0f} s of faults"
        )
        self._denied: list[DeniedClient] = []
        self.findings: list[str] = []
        self.report = ""

    def run(self) -> None:
        with self._cluster as cluster:
            for topic in TOPICS:
                cluster.create_topic(topic, PARTITIONS)
            if cluster.security:
                cluster.create_acls(ACLS)
                connect = cluster.security.connect_as(DENIED)
                self._denied = denied_clients(cluster.nodes.values(), connect, TOPICS)
            self._timeline = Timeline()
            self._begin()
            self._inject_faults()
            self._heal()
            self._finish()
            self.findings += self._failures()
            self.findings += self._violations()
        clients = [*self._writers, *self._transactional]
        self.report = report(
            self._title, self._timeline, clients, self.findings, denied=self._count_denied()
        )

    def _begin(self) -> None:
        settings = self._cluster.client_settings
        seeds = [random.Random(self._rng.random()) for _ in range(4)]
        self._writers = [
            self._clients.writers.IdempotentWriter(
                f"w{index}", settings(WRITER), PLAIN, seeds[index]
            )
            for index in range(2)
        ]
        self._transactional = [
            self._clients.writers.TransactionalWriter(
                f"t{index}", settings(TRANSACTIONAL_WRITER), TRANSACTIONAL, seeds[2 + index]
            )
            for index in range(2)
        ]
        self._readers = [
            self._clients.readers.Reader(settings(READER), TOPICS, isolation)
            for isolation in ("read_uncommitted", "read_committed")
        ]
        for client in [*self._writers, *self._transactional, *self._readers, *self._denied]:
            client.start()
        wait_until(
            lambda: all(writer.acknowledged for writer in self._writers),
            "all writers have acknowledgements",
            60,
        )
        self._timeline.add("all clients are running")

    def _inject_faults(self) -> None:
        """Injects faults for the duration, and at least until a node was killed and restarted."""
        end_s = time.monotonic() + self._duration_s
        has_killed = False
        while time.monotonic() < end_s or not has_killed:
            faults = choose_faults(self._cluster, self._rng, PLAIN)
            has_killed = has_killed or any(fault.kills for fault in faults)
            try:
                self._apply(faults)
            except TimeoutError as too_late:
                self.findings.append(str(too_late))
                self._timeline.add(str(too_late))
            self._timeline.add("end of " + ", ".join(map(str, faults)))
            if failures := list(self._failures()):
                self._timeline.add("; ".join(failures))
                return
            time.sleep(self._rng.choice((0, 0.5, 3)) * self._rng.uniform(0.5, 1.5))

    def _apply(self, faults: list[Fault]) -> None:
        with ExitStack() as context:
            for fault in faults:
                self._timeline.add(str(fault))
                context.enter_context(fault.context)
            time.sleep(self._rng.choice((0.2, 1, 3, 6)) * self._rng.uniform(0.5, 1.5))

    def _heal(self) -> None:
        began_s = time.monotonic()
        self._timeline.add("no more faults")
        try:
            self._cluster.wait_until_ready(HEAL_S)
            self._cluster.wait_until_in_sync(HEAL_S)
        except TimeoutError as too_late:
            self.findings.append(f"the cluster is not in sync again: {too_late}")
        self._timeline.add(f"in sync again after {time.monotonic() - began_s:.1f} s")

    def _finish(self) -> None:
        """Stops the writers first, because readers read to the end."""
        writers = [*self._writers, *self._transactional]
        for writer in writers:
            writer.stopping.set()
        for writer in writers:
            writer.join()
        for reader in self._readers:
            reader.finish()
        for denied in self._denied:
            denied.stop()
        for denied in self._denied:
            denied.join()
        self._timeline.add("all clients are done")

    def _failures(self) -> Iterator[str]:
        clients: list[Writer | Reader] = [*self._writers, *self._transactional, *self._readers]
        for client in clients:
            if client.failure:
                yield f"{client.name} failed: {client.failure}"
        for denied in self._denied:
            yield from denied.served

    def _violations(self) -> Iterator[str]:
        connection = self._cluster.client_settings(READER)
        everything = read_all(connection, TOPICS, "read_uncommitted")
        committed = read_all(connection, TOPICS, "read_committed")
        writers = [*self._writers, *self._transactional]
        yield from invariants.find_lost_records(writers, everything)
        yield from invariants.find_duplicates_and_gaps(self._writers, everything)
        yield from invariants.find_wrong_reads(self._readers, everything, committed)
        yield from invariants.find_partial_transactions(self._transactional, committed)
        self._cluster.wait_until_in_sync(HEAL_S)
        self._cluster.stop()
        yield from invariants.find_different_replicas(self._cluster.brokers, list(everything))

    def _count_denied(self) -> Counter[str]:
        """Returns how often each request of the denied clients had each error."""
        return sum((client.denied for client in self._denied), Counter())
