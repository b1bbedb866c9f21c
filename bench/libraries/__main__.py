"""Measure client libraries on one broker, alternating, and compare: `python -m bench.libraries`.

The broker is the real Kafka, or Barnabas with `--broker barnabas`. A complete run writes
bench/CLIENTS.md.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from bench.brokers import BROKERS, BrokerUnderTest, peer_bench
from bench.libraries.work import RECORD_BYTES
from bench.report import processors, show

FOLDER = Path(__file__).parents[1]
PORT = 19_600

CONFLUENT, AIOKAFKA = "confluent_kafka", "aiokafka"
PLAIN, AIO = "barnabas", "barnabas.aio"


@dataclass(slots=True, frozen=True)
class Comparison:
    """A workload of another library, and the equivalent one of Barnabas."""

    name: str
    peer: tuple[str, str]
    """The library, and the name of the workload."""
    ours: tuple[str, str]
    records: int
    target: float
    """The required multiple of the peer's records per second."""
    codec: str = "none"
    """The codec of the batches that are read."""

    @property
    def reads(self) -> bool:
        return "consume" in self.ours[1] or self.ours[1] in ("poll", "aio_iterate")


COMPARISONS = [
    Comparison(
        "produce(), one record a call", (CONFLUENT, "produce"), (PLAIN, "produce"), 2_000_000, 0.8
    ),
    Comparison(
        "produce() with keys and delivery reports",
        (CONFLUENT, "produce_reported"),
        (PLAIN, "produce_reported"),
        1_000_000,
        0.8,
    ),
    Comparison("poll(), one record a call", (CONFLUENT, "poll"), (PLAIN, "poll"), 2_000_000, 1.0),
    Comparison(
        "consume(), lists of records", (CONFLUENT, "consume"), (PLAIN, "consume"), 2_000_000, 1.0
    ),
    Comparison("aio: produce", (AIOKAFKA, "aio_produce"), (AIO, "aio_produce"), 300_000, 3.0),
    Comparison(
        "aio: lists of records", (AIOKAFKA, "aio_consume"), (AIO, "aio_consume"), 2_000_000, 3.0
    ),
    Comparison("aio: async for", (AIOKAFKA, "aio_iterate"), (AIO, "aio_iterate"), 500_000, 3.0),
    Comparison("Arrow: produce", (CONFLUENT, "produce"), (PLAIN, "produce_arrow"), 4_000_000, 3.0),
    Comparison("Arrow: consume", (CONFLUENT, "consume"), (PLAIN, "consume_arrow"), 4_000_000, 4.0),
    *(
        Comparison(f"{name}, {codec}", peer, ours, 2_000_000, 3.0, codec)
        for name, peer, ours in (
            ("consume(), lists of records", (CONFLUENT, "consume"), (PLAIN, "consume")),
            ("aio: lists of records", (AIOKAFKA, "aio_consume"), (AIO, "aio_consume")),
            ("Arrow: consume", (CONFLUENT, "consume"), (PLAIN, "consume_arrow")),
        )
        for codec in ("lz4", "zstd", "snappy", "gzip")
    ),
]

Figures = dict[str, float]


def main() -> None:
    options = parse()
    broker_type = next(
        candidate for candidate in BROKERS if candidate.name.lower() == options.broker
    )
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        broker = broker_type(Path(folder), PORT, scale=options.scale)
        broker.ensure_started()
        try:
            broker.warm_up()
            lines = [
                row(comparison, *measure(comparison, broker, options.repeat))
                for comparison in selected_comparisons(options)
            ]
        finally:
            broker.stop()
    text = markdown(lines, broker.name, options.repeat)
    print(text)
    if options.scale == 1 and not options.only:
        (FOLDER / "CLIENTS.md").write_text(text)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.libraries", description=__doc__)
    parser.add_argument("--only", default="", help="comparisons whose name contains this")
    parser.add_argument("--scale", type=float, default=1.0, help="multiplies every count")
    parser.add_argument("--repeat", type=int, default=3, help="runs of each")
    parser.add_argument("--broker", default="kafka", choices=["kafka", "barnabas"])
    return parser.parse_args()


def selected_comparisons(options: argparse.Namespace) -> list[Comparison]:
    return [comparison for comparison in COMPARISONS if options.only in comparison.name]


def measure(
    comparison: Comparison, broker: BrokerUnderTest, repeat: int
) -> tuple[Figures, Figures]:
    """Returns the medians of the peer's figures and of ours."""
    records = broker.count(comparison.records)
    sides: list[list[Figures]] = [[], []]
    with broker.topic() as full:
        if comparison.reads:
            settings = {"compression.type": comparison.codec} | peer_bench.LARGE_BATCH
            broker.perf_produce(full, records, RECORD_BYTES, **settings)
        for turn in range(repeat):
            order = [0, 1] if turn % 2 == 0 else [1, 0]
            for side in order:
                library, work = (comparison.peer, comparison.ours)[side]
                if comparison.reads:
                    figures = run_once(library, work, broker.bootstrap, full, records)
                else:
                    with broker.topic() as empty:
                        figures = run_once(library, work, broker.bootstrap, empty, records)
                print(f"{comparison.name}: {library}: {figures}", file=sys.stderr, flush=True)
                sides[side].append(figures)
    return median(sides[0]), median(sides[1])


def run_once(library: str, work: str, bootstrap: str, topic: str, records: int) -> Figures:
    command = [sys.executable, "-m", "bench.libraries.work"]
    process = subprocess.run(
        [*command, library, work, bootstrap, topic, str(records)],
        stdout=subprocess.PIPE,
        check=True,
        timeout=300,
    )
    figures: Figures = json.loads(process.stdout.splitlines()[-1])
    return figures


def median(runs: list[Figures]) -> Figures:
    return {name: statistics.median(run[name] for run in runs) for name in runs[0]}


def row(comparison: Comparison, peer: Figures, ours: Figures) -> str:
    ratio = ours["records_per_s"] / peer["records_per_s"]
    cells = [
        comparison.name,
        comparison.peer[0].replace("_", "-"),
        show(peer["records_per_s"]),
        show(ours["records_per_s"]),
        f"{ratio:.2f}x",
        f"≥ {comparison.target}x",
        "reached" if ratio >= comparison.target else "NOT REACHED",
        *(
            f"{show(peer[name])} / {show(ours[name])}"
            for name in ("client_cpu_s_per_gb", "peak_rss_mb")
        ),
    ]
    return "| " + " | ".join(cells) + " |"


def markdown(lines: list[str], broker: str, repeat: int) -> str:
    head = [
        "# Client libraries side by side",
        "",
        f"Written by `python -m bench.libraries`: {RECORD_BYTES} B records, acks=all, medians of"
        f" {repeat} runs in turns against one {broker} broker, on {processors()}.",
        "",
        "| | peer | peer, records/s | Barnabas, records/s | ratio | target | |"
        " CPU s/GB, peer / ours | peak MB, peer / ours |",
        "| --- | --- | ---: | ---: | ---: | ---: | --- | ---: | ---: |",
    ]
    return "\n".join([*head, *lines]) + "\n"


if __name__ == "__main__":
    main()
