"""A run: brokers, two workers, connectors under load, faults of a seed, and the checks."""

import random
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from tests.cluster.cluster import Cluster
from tests.cluster.node import BARNABAS
from tests.connect.chaos import checks
from tests.connect.chaos.connectors import (
    INSERTS,
    LINES,
    PARTITIONS,
    ROWS,
    TOPICS,
    UPSERTS,
    connectors,
)
from tests.connect.chaos.databases import database_of, table_numbers
from tests.connect.chaos.faults import Fault, choose_faults
from tests.connect.chaos.group import ConnectGroup, UnexpectedResponseError
from tests.connect.chaos.load import Load
from tests.connect.chaos.monitor import StateMonitor
from tests.connect.chaos.worker import WorkerProcess
from tests.wait import wait_until

from barnabas.admin import AdminClient, NewTopic

WORKERS = 2
START_TIMEOUT_S = 120.0
HEAL_TIMEOUT_S = 150.0
COMPLETE_TIMEOUT_S = 120.0


@dataclass(slots=True, frozen=True)
class ChaosSettings:
    seed: int
    duration_s: float
    brokers: int = 1
    database: str = "sqlite"
    with_tables: bool = True
    """Whether there are sinks to tables too."""
    source: Path = Path(__file__).parents[3] / "src"
    """The folder of the package that workers run."""


class ConnectChaos:
    """`findings` are the violations."""

    def __init__(self, directory: Path, settings: ChaosSettings) -> None:
        self.settings = settings
        self.findings: list[str] = []
        self.events: list[str] = []
        self._directory = directory
        self._files = directory / "files"
        self._rng = random.Random(settings.seed)
        self._began_s = time.monotonic()
        self.cluster = Cluster.combined(
            directory / "brokers",
            [BARNABAS] * settings.brokers,
            settings=_broker_settings(settings.brokers),
        )
        self.faults = 0

    def run(self) -> None:
        with ExitStack() as stack:
            stack.enter_context(self.cluster)
            database = stack.enter_context(database_of(self.settings.database, self._directory))
            self._database = database
            self.specs = connectors(
                self._directory / "lines.txt",
                self._files,
                database.settings,
                with_tables=self.settings.with_tables,
            )
            self.group = ConnectGroup(
                self.cluster.bootstrap_servers, WORKERS, self._directory, self.settings.source
            )
            stack.callback(self.group.close)
            self._inspector = checks.Inspector(self.cluster.bootstrap_servers)
            self._load = Load(database, self._directory / "lines.txt", self._rng.random())
            stack.callback(self._load.stop)
            self._start()
            if self.findings:
                return
            monitor = StateMonitor(self.group, self.are_brokers_up)
            monitor.start()
            try:
                self._inject_faults()
                self._heal()
                count = self._load.stop()
                self._complete(count)
            finally:
                monitor.stop()
            self._log(f"states of dead workers were RUNNING for {monitor.longest_s:.1f} s at most")
            for finding in monitor.findings:
                self.add_finding(finding)
            self._stop(count)

    # For faults

    def are_brokers_up(self) -> bool:
        return all(node.is_running and not node.is_paused for node in self.cluster.brokers)

    def add_finding(self, finding: str) -> None:
        self.findings.append(finding)
        self._log(f"FOUND: {finding}")

    def stop_worker(self, worker: WorkerProcess) -> None:
        if not worker.is_running:
            return
        try:
            status = worker.stop()
        except Exception as error:
            self.add_finding(f"{worker} does not stop: {error}")
            worker.kill_all()
            return
        if status:
            self.add_finding(f"{worker} has stopped with status {status}")

    # Phases

    def _start(self) -> None:
        self._create_topics()
        for worker in self.group.workers:
            self.group.start(worker)
        self._wait(self._is_started, "a worker is healthy", START_TIMEOUT_S)
        for spec in self.specs:
            self.group.send("PUT", f"/connectors/{spec.name}/config", dict(spec.config))
        self._load.start()
        if self._wait(lambda: not self._not_running(), "all RUNNING", START_TIMEOUT_S):
            self._log("all connectors are RUNNING")

    def _inject_faults(self) -> None:
        rng = self._rng
        end_s = time.monotonic() + self.settings.duration_s
        while time.monotonic() < end_s and not self.findings:
            faults = choose_faults(self, rng)
            hold_s = rng.choice((0.1, 0.5, 2, 5)) * rng.uniform(0.5, 1.5)
            pause_s = rng.choice((0.0, 0.3, 1.5, 4)) * rng.uniform(0.5, 1.5)
            heals = rng.random() < 0.3
            self._apply(faults, hold_s)
            self.faults += len(faults)
            time.sleep(pause_s)
            if heals and self._wait(
                lambda: not self._not_running(), "all RUNNING again", HEAL_TIMEOUT_S
            ):
                self._log("all connectors are RUNNING again")
            self._check_processes()

    def _apply(self, faults: list[Fault], hold_s: float) -> None:
        try:
            with ExitStack() as context:
                for fault in faults:
                    self._log(str(fault))
                    context.enter_context(fault.context)
                time.sleep(hold_s)
        except (UnexpectedResponseError, TimeoutError) as error:
            self.add_finding(f"{', '.join(map(str, faults))}: {error}")
        self._log("end of " + ", ".join(map(str, faults)))

    def _check_processes(self) -> None:
        for worker in self.group.workers:
            if worker.has_ended_by_itself:
                self.add_finding(f"{worker} has ended by itself\n{worker.log_tail()}")

    def _heal(self) -> None:
        self._log("no more faults")
        began_s = time.monotonic()
        for node in self.cluster.nodes.values():
            if node.is_paused:
                node.resume()
            if not node.is_running:
                self.cluster.start_node(node)
        for worker in self.group.workers:
            if worker.is_paused:
                worker.resume()
            if not worker.is_running:
                self.group.start(worker)
        for spec in self.specs:
            try:
                self.group.send("PUT", f"/connectors/{spec.name}/config", dict(spec.config))
                self.group.send("PUT", f"/connectors/{spec.name}/resume")
            except UnexpectedResponseError as error:
                self.add_finding(str(error))
        self._wait(
            lambda: len(self.group.healthy()) == WORKERS and not self._not_running(),
            "all workers are healthy and all connectors RUNNING",
            HEAL_TIMEOUT_S,
        )
        self._log(f"healed after {time.monotonic() - began_s:.1f} s")

    def _complete(self, count: int) -> None:
        """Waits until everything has arrived, and nothing is left to do."""
        began_s = time.monotonic()
        for what, is_done in self._completions(count):
            self._wait(is_done, what, COMPLETE_TIMEOUT_S)
        self._log(f"{count} rows and lines have arrived after {time.monotonic() - began_s:.1f} s")

    def _completions(self, count: int) -> Iterator[tuple[str, Callable[[], object]]]:
        for topic in TOPICS:

            def has_all(topic: str = topic) -> bool:
                return len({n for each in self._inspector.numbers(topic) for n in each}) >= count

            yield f"{topic} has all {count}", has_all
        for spec in self.specs:
            if spec.is_sink:
                group, topics = f"connect-{spec.name}", spec.config["topics"].split(",")

                def has_no_lag(group: str = group, topics: list[str] = topics) -> bool:
                    return self._inspector.lag(group, topics) == 0

                yield f"{group} has no lag", has_no_lag
        yield "no transaction is open", lambda: not self._inspector.open_transactions()

    def _stop(self, count: int) -> None:
        for worker in self.group.workers:
            self.stop_worker(worker)
        for worker in self.group.workers:
            try:
                worker.wait_until_ended()
            except TimeoutError:
                for line in worker.leftovers():
                    self.add_finding(f"{worker} has left a process: {line}")
        for violation in self._violations(count):
            self.add_finding(violation)
        self._log("stopped and checked")

    def _violations(self, count: int) -> Iterator[str]:
        by_topic = {topic: self._inspector.numbers(topic) for topic in TOPICS}
        for topic, partitions in by_topic.items():
            numbers = [number for each in partitions for number in each]
            yield from checks.find_lost_and_repeated(f"topic {topic}", numbers, count)
            yield from checks.find_wrong_order(topic, partitions)
        # What a sink must have is what the topic has.
        files = checks.file_numbers(self._files)
        for topic in (ROWS, LINES):
            yield from checks.find_lost_and_repeated(f"files of {topic}", files[topic], count)
        yield from checks.find_pending_files(self._files)
        if self.settings.with_tables:
            for table in (UPSERTS, INSERTS):
                numbers = table_numbers(self._database, table)
                yield from checks.find_lost_and_repeated(f"table {table}", numbers, count)
        for transaction in self._inspector.open_transactions():
            yield f"left open: {transaction}"

    # Helpers

    def _create_topics(self) -> None:
        with AdminClient({"bootstrap.servers": self.cluster.bootstrap_servers}) as admin:
            new = [NewTopic(topic, PARTITIONS, self.settings.brokers) for topic in TOPICS]
            for future in admin.create_topics(new).values():
                future.result(START_TIMEOUT_S)

    def _is_started(self) -> bool:
        self._check_processes()
        return bool(self.findings or self.group.healthy())

    def _not_running(self) -> list[str]:
        return self.group.not_running([spec.name for spec in self.specs])

    def _wait(self, condition: Callable[[], object], what: str, timeout_s: float) -> bool:
        """Returns whether the condition is true in time. If not, that is a violation."""
        try:
            wait_until(condition, what, timeout_s, poll_s=0.25)
        except TimeoutError as error:
            detail = "; ".join([*self._not_running(), *self._inspector.open_transactions()])
            self.add_finding(f"{error}: {detail}")
            return False
        return True

    def _log(self, text: str) -> None:
        line = f"{time.monotonic() - self._began_s:7.1f} s  {text}"
        self.events.append(line)
        print(line, flush=True)


def _broker_settings(brokers: int) -> dict[str, str]:
    own = {"group.min.session.timeout.ms": "1000"}
    if brokers > 1:
        return own
    return own | {
        "default.replication.factor": "1",
        "min.insync.replicas": "1",
        "offsets.topic.replication.factor": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
    }
