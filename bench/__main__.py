"""Measure Barnabas and the real Kafka in one run, alternating case by case, and compare.

A complete run at full scale also writes bench/RESULTS.md; the figures of any run are in
bench/results/latest.json.
"""

import argparse
import contextlib
import sys
import tempfile
from pathlib import Path

from bench.brokers import BROKERS, BrokerUnderTest
from bench.case import Case, SystemT
from bench.clusters import CLUSTERS, ClusterUnderTest
from bench.report import markdown, rows, save_json, table
from bench.sections import CLUSTER_SECTIONS, NEED_WARM_UP, SECTIONS

FOLDER = Path(__file__).parent
FIRST_PORT = 19_500
ALL_SECTIONS = [*SECTIONS, *CLUSTER_SECTIONS]


def main() -> None:
    options = parse()
    with tempfile.TemporaryDirectory(prefix="bench-", dir=options.dir) as folder:
        brokers = [
            broker_type(Path(folder), FIRST_PORT + 10 * index, scale=options.scale)
            for index, broker_type in enumerate(BROKERS)
            if broker_type.name.lower() in options.brokers
        ]
        clusters = [
            broker_type(Path(folder), scale=options.scale)
            for broker_type in CLUSTERS
            if broker_type.name.lower() in options.brokers
        ]
        try:
            run(brokers, options.only, options.repeat)
            for broker in brokers:
                broker.stop()
            run_clusters(clusters, options.only, options.repeat)
        finally:
            for broker in brokers:
                broker.stop()
            report(brokers, clusters, options)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument(
        "--only",
        type=names,
        default=ALL_SECTIONS,
        help="sections or prefixes of them, separated by commas",
    )
    parser.add_argument("--scale", type=float, default=1.0, help="multiplies every count")
    parser.add_argument("--repeat", type=int, default=3, help="runs of each case")
    parser.add_argument("--quick", action="store_true", help="a tenth of all counts, one run")
    parser.add_argument("--dir", type=Path, help="directory for the brokers' data")
    broker_names = [broker.name.lower() for broker in BROKERS]
    parser.add_argument(
        "--brokers", type=names, default=broker_names, help="one or both, separated by commas"
    )
    options = parser.parse_args()
    for prefix in options.only:
        if not any(name.startswith(prefix) for name in ALL_SECTIONS):
            parser.error(f"no section {prefix}; there are {', '.join(ALL_SECTIONS)}")
    options.only = [name for name in ALL_SECTIONS if name.startswith(tuple(options.only))]
    if options.quick:
        options.scale, options.repeat = options.scale / 10, 1
    return options


def names(text: str) -> list[str]:
    return [name for name in text.lower().split(",") if name]


def run(brokers: list[BrokerUnderTest], sections: list[str], repeat: int) -> None:
    warm = False
    for section in SECTIONS:
        if section not in sections:
            continue
        log(f"== {section}")
        for broker in brokers:
            if section != "start":
                broker.ensure_started()
            if section in NEED_WARM_UP and not warm:
                broker.warm_up()
        warm = warm or section in NEED_WARM_UP
        for case in SECTIONS[section]:
            measure(case, brokers, repeat)


def run_clusters(clusters: list[ClusterUnderTest], sections: list[str], repeat: int) -> None:
    selected = [section for section in CLUSTER_SECTIONS if section in sections]
    for cluster in clusters if selected else ():
        log(f"== three nodes of {cluster.name}")
        with cluster.running():
            for section in selected:
                if section in NEED_WARM_UP:
                    cluster.warm_up()
                for case in CLUSTER_SECTIONS[section]:
                    measure(case, [cluster], repeat)


def measure(case: Case[SystemT], brokers: list[SystemT], repeat: int) -> None:
    """Alternate brokers and reverse their order each time, so that disturbances affect both."""
    with contextlib.ExitStack() as stack:
        prepared = [(broker, stack.enter_context(case.setup(broker))) for broker in brokers]
        for _ in range(case.repeat or repeat):
            for broker, state in prepared:
                log(f"{broker.name}:")
                broker.record(case.name, **case.measure(broker, state))
            prepared.reverse()


def report(
    brokers: list[BrokerUnderTest], clusters: list[ClusterUnderTest], options: argparse.Namespace
) -> None:
    results = {
        broker.name: broker.results | cluster.results
        for broker, cluster in zip(brokers, clusters, strict=True)
    }
    lines = list(rows(results.get("Kafka", {}), results.get("Barnabas", {})))
    print(table(lines))
    save_json(FOLDER / "results" / "latest.json", results)
    is_complete = (
        len(brokers) == 2 and options.scale == 1 and set(options.only) == set(ALL_SECTIONS)
    )
    if is_complete:
        (FOLDER / "RESULTS.md").write_text(markdown(lines, repeat=options.repeat))


def log(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
