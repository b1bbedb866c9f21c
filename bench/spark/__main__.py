"""Measure Spark's Kafka connector and ours by $PEERS/bench-spark: `python -m bench.spark`.

Both do the same work on the same brokers, alternating section by section: Spark's connector with
Spark's settings, ours with those of `barnabas spark`. A complete run writes bench/SPARK.md.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from barnabas.spark.interpreter import worker_python
from barnabas.spark.session import WORKER_PYTHON, settings
from bench.brokers import BROKERS, PEERS, BrokerUnderTest
from bench.report import processors, show
from bench.targets import Bound, Target

FOLDER = Path(__file__).parents[1]
FIRST_PORT = 19_700
SECTIONS = ("read", "write", "latency")
TIMEOUT_S = 1_800

CONNECTOR, OURS = "kafka", "barnabas"

TARGETS = (
    Target("batch read 100 B", "rows_per_s", Bound.AT_LEAST_TIMES_KAFKA, 2.5),
    Target("availableNow read 100 B", "rows_per_s", Bound.AT_LEAST_TIMES_KAFKA, 2.5),
    Target("batch read 1000 B", "rows_per_s", Bound.AT_LEAST_TIMES_KAFKA, 2.0),
    Target("availableNow read 1000 B", "rows_per_s", Bound.AT_LEAST_TIMES_KAFKA, 2.0),
    Target("batch write 100 B", "rows_per_s", Bound.AT_LEAST_TIMES_KAFKA, 1.0),
    Target("micro-batch latency 100/s", "called_p50_ms", Bound.AT_MOST_TIMES_KAFKA, 0.5),
    Target("micro-batch latency 100/s", "called_p99_ms", Bound.AT_MOST_TIMES_KAFKA, 1.0),
    Target("micro-batch latency 100/s", "in_hand_p50_ms", Bound.AT_MOST_TIMES_KAFKA, 1.0),
    Target("micro-batch latency 100/s", "in_hand_p99_ms", Bound.AT_MOST_TIMES_KAFKA, 1.0),
)
"""Our sink writes exactly once, Spark's connector at least once."""

Results = Mapping[str, Mapping[str, Sequence[float]]]


@dataclass(slots=True, frozen=True)
class ComparedFigure:
    """One figure of both connectors, on one broker."""

    broker: str
    target: Target
    connector: float
    ours: float

    def row(self) -> str:
        reached = self.target.is_reached(self.connector, self.ours)
        cells = (
            self.broker,
            f"{self.target.cases}: {self.target.figure}",
            show(self.connector),
            show(self.ours),
            f"{self.ours / self.connector:.2f}x",
            str(self.target),
            "reached" if reached else "NOT REACHED",
        )
        return f"| {' | '.join(cells)} |"


def main() -> None:
    options = parse()
    rows: list[str] = []
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        for index, broker_type in enumerate(BROKERS):
            if broker_type.name.lower() in options.brokers.split(","):
                broker = broker_type(Path(folder), FIRST_PORT + 10 * index, scale=1)
                rows += [compared.row() for compared in measure(broker, options)]
    text = markdown(rows, options.repeat)
    print(text)
    if options.scale == 1 and not options.only:
        (FOLDER / "SPARK.md").write_text(text)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.spark", description=__doc__)
    parser.add_argument("--only", default="", help=f"one of {', '.join(SECTIONS)}")
    parser.add_argument("--brokers", default="kafka,barnabas", help="separated by commas")
    parser.add_argument("--scale", type=float, default=1.0, help="multiplies every count")
    parser.add_argument("--repeat", type=int, default=3, help="runs of each")
    return parser.parse_args()


def measure(broker: BrokerUnderTest, options: argparse.Namespace) -> Iterator[ComparedFigure]:
    broker.ensure_started()
    try:
        for number, section in enumerate(SECTIONS):
            if options.only in section:
                order = (CONNECTOR, OURS) if number % 2 == 0 else (OURS, CONNECTOR)
                results = {name: run_once(name, section, broker, options) for name in order}
                yield from compare(broker.name, results[CONNECTOR], results[OURS])
    finally:
        broker.stop()


def run_once(
    name: str, section: str, broker: BrokerUnderTest, options: argparse.Namespace
) -> Results:
    command = [sys.executable, str(PEERS / "bench-spark"), "--bootstrap", broker.bootstrap]
    command += ["--format", name, "--only", section]
    command += ["--repeat", str(options.repeat), "--scale", str(options.scale)]
    if name == OURS:
        command += [f"--conf={key}={value}" for key, value in settings().items()]
    print(f"{broker.name}, {section}: {name}", file=sys.stderr, flush=True)
    env = {**os.environ, WORKER_PYTHON: worker_python()}
    process = subprocess.run(
        command, env=env, stdout=subprocess.PIPE, check=True, timeout=TIMEOUT_S
    )
    results: Results = json.loads(process.stdout.splitlines()[-1])["results"]
    return results


def compare(broker: str, connector: Results, ours: Results) -> Iterator[ComparedFigure]:
    for target in TARGETS:
        case, figure = target.cases, target.figure
        if case in ours:
            yield ComparedFigure(
                broker,
                target,
                statistics.median(connector[case][figure]),
                statistics.median(ours[case][figure]),
            )


def markdown(rows: Sequence[str], repeat: int) -> str:
    head = (
        "# Spark's own Kafka connector and Barnabas side by side",
        "",
        "Written by `python -m bench.spark`: local[2], medians of"
        f" {repeat} runs of the same work on the same broker, on {processors()}. Barnabas runs with"
        " the settings of `barnabas spark`, and writes exactly once; the connector writes at least"
        " once.",
        "",
        "| broker | | connector | Barnabas | ratio | target | |",
        "| --- | --- | ---: | ---: | ---: | ---: | --- |",
    )
    return "\n".join([*head, *rows]) + "\n"


if __name__ == "__main__":
    main()
