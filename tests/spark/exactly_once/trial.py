"""Runs a pipeline whose processes are killed at random moments of a seed, and checks its output.

In each life some processes are killed, which the pipeline survives, and then its driver or its
JVM. In the last life nothing is killed. Then a read_committed consumer must find each record once,
and no transaction may be open.
"""

import os
import random
import subprocess
import sys
import time
import uuid
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from tests.spark.exactly_once.program import MASTER, ROWS_A_BATCH
from tests.spark.exactly_once.victims import MARK, Kind, kill, living
from tests.spark.sink.topics import Topic
from tests.wait import wait_until

from barnabas import Producer
from barnabas.admin import AdminClient, TransactionState

PARTITIONS = 3
TIMEOUT_S = 240.0
"""The longest that any step may take."""

MAX_BATCHES_BEFORE_KILL = 2
"""Batches that start before a kill, which comes at a random moment of the last."""

MAX_KILL_DELAY_S = 0.6

SURVIVED = {Kind.WORKER: 3, Kind.COMMITTER: 3, Kind.SOURCE: 1, Kind.DAEMON: 0}
"""Kills that end a task or the query, and how likely each is after the first of its kind. (Spark
starts no other daemon as long as the workers of the dead one will do.)"""

ON_A_CLUSTER = {Kind.EXECUTOR: 3, Kind.MACHINE: 2, Kind.WORKER: 2, Kind.COMMITTER: 1}

_OPEN = [
    TransactionState.ONGOING,
    TransactionState.PREPARE_COMMIT,
    TransactionState.PREPARE_ABORT,
]


_Process = subprocess.Popen[bytes]


@dataclass(slots=True)
class Trial:
    bootstrap_servers: str
    directory: Path
    seed: int
    is_stateful: bool = False
    master: str = MASTER
    survived: Mapping[Kind, int] = field(default_factory=lambda: SURVIVED)
    mark: str = field(default_factory=lambda: uuid.uuid4().hex)
    """The environment variable of all processes that may be killed."""
    deaths: Counter[Kind] = field(default_factory=Counter)
    lives: int = 0
    produced: int = 0
    _fed: int = 0
    """The number of batches with rows."""

    def run(self, *, kills_a_life: int, lives: int = 2, until_s: float | None = None) -> None:
        """Run at least `lives` lives, and more until `until_s` (of the monotonic clock)."""
        rng = random.Random(self.seed)
        victims = _victims(rng, self.survived)
        source = Topic.create(self.bootstrap_servers, PARTITIONS)
        sink = Topic.create(self.bootstrap_servers, PARTITIONS)
        try:
            while self.lives < lives or (until_s is not None and time.monotonic() < until_s):
                ending = (Kind.JVM, Kind.DRIVER)[(self.seed + self.lives) % 2]
                self._live(source, sink, [*islice(victims, kills_a_life), ending], rng)
                self.lives += 1
            self._produce(source, ROWS_A_BATCH)
            self._last_life(source, sink)
        finally:
            self._kill_all()
        self._verify(sink)

    def __str__(self) -> str:
        killed = ", ".join(f"{self.deaths[kind]} {kind}" for kind in Kind if self.deaths[kind])
        what = "stateful" if self.is_stateful else "plain"
        if self.master != MASTER:
            what += " on a cluster"
        return (
            f"seed {self.seed}, {what}: {self.produced:,} rows, each once, "
            f"after {self.deaths.total()} kills in {self.lives} lives ({killed})"
        )

    def _live(self, source: Topic, sink: Topic, victims: list[Kind], rng: random.Random) -> None:
        """Run from the start until the driver or its JVM is killed."""
        pipeline = self._start(source, sink)
        try:
            for kind in victims:
                self._let_run(pipeline, source, batches=rng.randint(0, MAX_BATCHES_BEFORE_KILL))
                time.sleep(rng.uniform(0, MAX_KILL_DELAY_S))
                self._kill(kind, pipeline, source, rng)
        finally:
            # A JVM that has lost its driver ends by itself, beside the next one.
            pipeline.kill()
            pipeline.wait()

    def _let_run(self, pipeline: _Process, source: Topic, *, batches: int) -> None:
        enough = self._begun() + batches

        def has_run() -> bool:
            self._keep_busy(pipeline, source)
            return self._begun() >= enough

        wait_until(has_run, "a batch begins", TIMEOUT_S, poll_s=0.02)

    def _kill(self, kind: Kind, pipeline: _Process, source: Topic, rng: random.Random) -> None:
        """Kill a process of the kind, as soon as there is one."""

        def is_done() -> bool:
            self._keep_busy(pipeline, source)
            found = [pipeline.pid] if kind is Kind.DRIVER else living(self.mark)[kind]
            return bool(found) and kill(rng.choice(sorted(found)))

        wait_until(is_done, f"a {kind} lives", TIMEOUT_S, poll_s=0.02)
        self.deaths[kind] += 1

    def _keep_busy(self, pipeline: _Process, source: Topic) -> None:
        """Make sure that there are rows for one more batch."""
        assert pipeline.poll() is None, f"{self._description} has ended\n{self._log}"
        begun = self._begun()
        if begun >= self._fed:
            self._produce(source, ROWS_A_BATCH)
            self._fed = begun + 1

    def _begun(self) -> int:
        """Returns the number of batches in the checkpoint's offset log."""
        entries = (self.directory / "checkpoint" / "offsets").glob("[0-9]*")
        return max((int(entry.name) + 1 for entry in entries), default=0)

    def _last_life(self, source: Topic, sink: Topic) -> None:
        pipeline = self._start(source, sink, "--drain")
        try:
            status = pipeline.wait(TIMEOUT_S)
        finally:
            pipeline.kill()
        assert status == 0, f"{self._description} fails\n{self._log}"

    def _kill_all(self) -> None:
        """Kill all processes, except the machines of a cluster."""

        def is_quiet() -> bool:
            processes = living(self.mark)
            pids = [
                pid for kind in processes if kind is not Kind.MACHINE for pid in processes[kind]
            ]
            for pid in pids:
                kill(pid)
            return not pids

        wait_until(is_quiet, "nobody is left", TIMEOUT_S)

    def _produce(self, source: Topic, rows: int) -> None:
        with Producer({"bootstrap.servers": self.bootstrap_servers}) as producer:
            for value in range(self.produced, self.produced + rows):
                for _ in range(2 if self.is_stateful else 1):
                    producer.produce(source.name, str(value), key=str(value))
        self.produced += rows

    def _verify(self, sink: Topic) -> None:
        counts = Counter(record.value.decode() for record in sink.records() if record.value)
        last, earlier = ("{}:2", "{}:1") if self.is_stateful else ("{}", "{}")
        expected = {last.format(value) for value in range(self.produced)}
        allowed = expected | {earlier.format(value) for value in range(self.produced)}
        missing = sorted(expected - counts.keys())
        twice = sorted(value for value, count in counts.items() if count > 1)
        unexpected = sorted(counts.keys() - allowed)
        assert not missing, f"{self._description}: {len(missing)} rows are missing: {missing[:10]}"
        assert not twice, f"{self._description}: {len(twice)} rows are there twice: {twice[:10]}"
        assert not unexpected, (
            f"{self._description}: rows that were not produced: {unexpected[:10]}"
        )
        with AdminClient({"bootstrap.servers": self.bootstrap_servers}) as admin:
            listed = admin.list_transactions(states=_OPEN).result(20).all()
        assert not any(listed.values()), f"{self._description}: left open: {listed}"

    def _start(self, source: Topic, sink: Topic, *more: str) -> _Process:
        command = [sys.executable, "-m", "tests.spark.exactly_once.program", *more]
        arguments = {
            "--bootstrap": self.bootstrap_servers,
            "--source": source.name,
            "--sink": sink.name,
            "--checkpoint": str(self.directory / "checkpoint"),
            "--master": self.master,
        }
        command += [word for pair in arguments.items() for word in pair]
        if self.is_stateful:
            command.append("--stateful")
        with self._log_file.open("a") as log:
            return subprocess.Popen(
                command, stdout=log, stderr=log, cwd=_ROOT, env={**os.environ, MARK: self.mark}
            )

    @property
    def _description(self) -> str:
        return f"seed {self.seed}, life {self.lives}: the pipeline"

    @property
    def _log_file(self) -> Path:
        return self.directory / "pipeline.log"

    @property
    def _log(self) -> str:
        return self._log_file.read_text()[-4000:]


_ROOT = Path(__file__).parents[3]


def _victims(rng: random.Random, survived: Mapping[Kind, int]) -> Iterator[Kind]:
    """Yields each kind once, in any order, then by likelihood."""
    yield from rng.sample(list(survived), len(survived))
    while True:
        yield from rng.choices(list(survived), list(survived.values()))
