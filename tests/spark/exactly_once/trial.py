"""Rounds of a pipeline that is killed at moments of a seed's choice, and what is left in the end.

Each round adds records to the source and starts the pipeline from its checkpoint; it is killed,
here or there, or ends by itself. The last round is left in peace. Then whoever reads what is
committed must find each record once.
"""

import contextlib
import random
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from tests.spark.exactly_once.victims import Kind, below, kill
from tests.spark.sink.topics import Topic

from barnabas import Producer

PARTITIONS = 3
RECORDS_A_ROUND = 2_000
LONGEST_S = 300.0
"""That a round may take before it is a fault."""

MOST_BATCHES = 3
"""That begin before a kill; it then comes at some moment of the last."""

LATEST_KILL_S = 0.6

_WEIGHTS = {Kind.DRIVER: 3, Kind.JVM: 4, Kind.DAEMON: 1, Kind.WORKER: 4}


@dataclass(slots=True)
class Trial:
    bootstrap_servers: str
    directory: Path
    seed: int
    is_stateful: bool = False
    deaths: Counter[str] = field(default_factory=Counter)
    produced: int = 0
    _left_behind: list[int] = field(default_factory=list)

    def run(self, *, rounds: int, until_s: float | None = None) -> None:
        """At least so many rounds, and more while there is time (of the monotonic clock)."""
        chance = random.Random(self.seed)
        source = Topic.create(self.bootstrap_servers, PARTITIONS)
        sink = Topic.create(self.bootstrap_servers, PARTITIONS)
        done = 0
        while done < rounds or (until_s is not None and time.monotonic() < until_s):
            self._produce(source)
            self._round(source, sink, chance)
            done += 1
        self._bury()
        self._produce(source)
        self._last_round(source, sink)
        self.verify(sink)

    def verify(self, sink: Topic) -> None:
        counts = Counter(int(record.value) for record in sink.records() if record.value)
        missing = sorted(set(range(self.produced)) - counts.keys())
        twice = sorted(value for value, count in counts.items() if count > 1)
        assert not missing, f"seed {self.seed}: {len(missing)} rows are missing: {missing[:10]}"
        assert not twice, f"seed {self.seed}: {len(twice)} rows are there twice: {twice[:10]}"
        assert len(counts) == self.produced, f"seed {self.seed}: rows that nobody produced"

    def _produce(self, source: Topic) -> None:
        with Producer({"bootstrap.servers": self.bootstrap_servers}) as producer:
            for value in range(self.produced, self.produced + RECORDS_A_ROUND):
                for _ in range(2 if self.is_stateful else 1):
                    producer.produce(source.name, str(value), key=str(value))
        self.produced += RECORDS_A_ROUND

    def _round(self, source: Topic, sink: Topic, chance: random.Random) -> None:
        """One life of the driver: kills of workers do not end it, most others do."""
        pipeline = self._start(source, sink)
        try:
            while pipeline.poll() is None:
                kind = chance.choices(list(_WEIGHTS), list(_WEIGHTS.values()))[0]
                batches, delay_s = chance.randint(0, MOST_BATCHES), chance.uniform(0, LATEST_KILL_S)
                self._let_run(pipeline, batches, delay_s)
                found = below(pipeline.pid) if pipeline.poll() is None else {}
                victims = found.get(kind, [])
                if victims and kill(chance.choice(victims)):
                    self._left_behind = found.get(Kind.JVM, [])
                    self.deaths[kind] += 1
                    if kind in (Kind.DRIVER, Kind.JVM):
                        return
            self.deaths["by itself"] += 1
        finally:
            _end(pipeline)

    def _bury(self) -> None:
        """A JVM without its driver ends by itself, beside the next one; here at the latest."""
        while self._left_behind:
            kill(self._left_behind.pop())

    def _let_run(self, pipeline: "subprocess.Popen[str]", batches: int, delay_s: float) -> None:
        """Until so many batches more have begun, and a moment longer; or until it ends."""
        enough = self._begun() + batches
        until_s = time.monotonic() + LONGEST_S
        while pipeline.poll() is None and self._begun() < enough:
            assert time.monotonic() < until_s, f"seed {self.seed}: no batch begins"
            time.sleep(0.01)
        with contextlib.suppress(subprocess.TimeoutExpired):
            pipeline.wait(delay_s)

    def _begun(self) -> int:
        """Batches, by the checkpoint's log of offsets."""
        entries = (self.directory / "checkpoint" / "offsets").glob("[0-9]*")
        return max((int(entry.name) + 1 for entry in entries), default=0)

    def _last_round(self, source: Topic, sink: Topic) -> None:
        """Once more where it ends early: what was left behind may have been what ends it."""
        for _ in range(3):
            pipeline = self._start(source, sink)
            try:
                if pipeline.wait(LONGEST_S) == 0:
                    return
            finally:
                _end(pipeline)
        raise AssertionError(f"seed {self.seed}: the pipeline fails\n{self._log[-4000:]}")

    def _start(self, source: Topic, sink: Topic) -> "subprocess.Popen[str]":
        command = [sys.executable, "-m", "tests.spark.exactly_once.program"]
        told = {
            "--bootstrap": self.bootstrap_servers,
            "--source": source.name,
            "--sink": sink.name,
            "--checkpoint": str(self.directory / "checkpoint"),
        }
        command += [word for pair in told.items() for word in pair]
        if self.is_stateful:
            command.append("--stateful")
        with self._log_file.open("a") as log:
            pipeline = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=log, text=True, cwd=_ROOT
            )
        assert pipeline.stdout is not None
        for line in pipeline.stdout:
            if line.startswith("running"):
                break
        return pipeline

    @property
    def _log_file(self) -> Path:
        return self.directory / "pipeline.log"

    @property
    def _log(self) -> str:
        return self._log_file.read_text()


_ROOT = Path(__file__).parents[3]


def _end(pipeline: "subprocess.Popen[str]") -> None:
    """Nobody is left of it: the JVM first, since nobody's child cannot be found."""
    found = below(pipeline.pid)
    for kind in (Kind.JVM, Kind.DRIVER, Kind.DAEMON, Kind.WORKER):
        for pid in found[kind]:
            kill(pid)
    pipeline.wait(60)
    if pipeline.stdout is not None:
        pipeline.stdout.close()
