"""Clients at work, faults from a seed, and then: is everything as it must be?"""

import random
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from tests.cluster.chaos import verify
from tests.cluster.chaos.clients import Clients, confluent
from tests.cluster.chaos.faults import Fault, chosen
from tests.cluster.chaos.notes import PARTITIONS
from tests.cluster.chaos.readers import Reader, read_all
from tests.cluster.chaos.report import Timeline, report
from tests.cluster.chaos.writers import Writer
from tests.cluster.cluster import Cluster, Quorum
from tests.cluster.node import NodeProgram
from tests.wait import wait_until

PLAIN, TRANSACTIONAL = TOPICS = ["plain", "transactional"]
SETTINGS = {
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "500",
    "replica.lag.time.max.ms": "4000",
}
"""Shorter than Kafka's defaults: more can happen in the same time."""
HEAL_S = 120
"""Bound of the time until a cluster has healed by itself."""


class ChaosRun:
    """One run on a new cluster of three; `findings` are the promises that were broken."""

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
    ) -> None:
        """Brokers that are controllers too, or with as many controllers beside them."""
        self._clients = clients or confluent()
        self._moments = random.Random(seed)
        self._duration_s = duration_s
        more = {"settings": SETTINGS, "quorum": quorum, "with_network": True}
        if is_separate:
            self._cluster = Cluster.separate(directory, programs, programs, **more)
        else:
            self._cluster = Cluster.combined(directory, programs, **more)
        roles = "separate roles" if is_separate else "combined roles"
        self._title = (
            f"{', '.join(map(str, programs))}: {roles}, {quorum.name.lower()} quorum,"
            f" {self._clients} clients, seed {seed}, {duration_s:.0f} s of faults"
        )
        self.findings: list[str] = []
        self.report = ""

    def run(self) -> None:
        with self._cluster as cluster:
            for topic in TOPICS:
                cluster.create_topic(topic, PARTITIONS)
            self._timeline = Timeline()
            self._begin()
            self._disturb()
            self._heal()
            self._finish()
            self.findings += self._failures()
            self.findings += self._broken_promises()
        everyone = [*self._writers, *self._transactional]
        self.report = report(self._title, self._timeline, everyone, self.findings)

    def _begin(self) -> None:
        bootstrap = self._cluster.bootstrap_servers
        seeds = [random.Random(self._moments.random()) for _ in range(4)]
        self._writers = [
            self._clients.writers.IdempotentWriter(f"w{index}", bootstrap, PLAIN, seeds[index])
            for index in range(2)
        ]
        self._transactional = [
            self._clients.writers.TransactionalWriter(
                f"t{index}", bootstrap, TRANSACTIONAL, seeds[2 + index]
            )
            for index in range(2)
        ]
        self._readers = [
            self._clients.readers.Reader(bootstrap, TOPICS, isolation)
            for isolation in ("read_uncommitted", "read_committed")
        ]
        for each in [*self._writers, *self._transactional, *self._readers]:
            each.start()
        wait_until(lambda: all(each.acknowledged for each in self._writers), "all write", 60)
        self._timeline.note("all clients are at work")

    def _disturb(self) -> None:
        """As long as was asked for, and at least until a process has died and come back."""
        end_s = time.monotonic() + self._duration_s
        has_killed = False
        while time.monotonic() < end_s or not has_killed:
            faults = chosen(self._cluster, self._moments, PLAIN)
            has_killed = has_killed or any(each.kills for each in faults)
            try:
                self._happen(faults)
            except TimeoutError as too_late:
                self.findings.append(str(too_late))
                self._timeline.note(str(too_late))
            self._timeline.note("whole again: " + ", ".join(map(str, faults)))
            if failures := list(self._failures()):
                self._timeline.note("; ".join(failures))
                return
            time.sleep(self._moments.choice((0, 0.5, 3)) * self._moments.uniform(0.5, 1.5))

    def _happen(self, faults: list[Fault]) -> None:
        with ExitStack() as lasting:
            for fault in faults:
                self._timeline.note(str(fault))
                lasting.enter_context(fault.lasting)
            time.sleep(self._moments.choice((0.2, 1, 3, 6)) * self._moments.uniform(0.5, 1.5))

    def _heal(self) -> None:
        began_s = time.monotonic()
        self._timeline.note("no more faults")
        try:
            self._cluster.wait_until_ready(HEAL_S)
            self._cluster.wait_until_in_sync(HEAL_S)
        except TimeoutError as too_late:
            self.findings.append(f"the cluster did not heal by itself: {too_late}")
        self._timeline.note(f"healed in {time.monotonic() - began_s:.1f} s")

    def _finish(self) -> None:
        """Writers first: readers read to the end of what is written."""
        writers = [*self._writers, *self._transactional]
        for writer in writers:
            writer.ending.set()
        for writer in writers:
            writer.join()
        for reader in self._readers:
            reader.finish()
        self._timeline.note("all clients are done")

    def _failures(self) -> Iterator[str]:
        everyone: list[Writer | Reader] = [*self._writers, *self._transactional, *self._readers]
        for each in everyone:
            if each.failure:
                yield f"{each.name} failed: {each.failure}"

    def _broken_promises(self) -> Iterator[str]:
        everything = read_all(self._cluster.bootstrap_servers, TOPICS, "read_uncommitted")
        committed = read_all(self._cluster.bootstrap_servers, TOPICS, "read_committed")
        writers = [*self._writers, *self._transactional]
        yield from verify.nothing_acknowledged_is_lost(writers, everything)
        yield from verify.each_is_there_once_and_in_order(self._writers, everything)
        yield from verify.nobody_was_shown_what_is_not_there(self._readers, everything, committed)
        yield from verify.transactions_are_whole(self._transactional, committed)
        self._cluster.wait_until_in_sync(HEAL_S)
        self._cluster.stop()
        yield from verify.replicas_are_equal(self._cluster.brokers, list(everything))
