"""Measure Barnabas and the real Kafka in one run, each case in turns, and compare.

A whole run at full scale also writes bench/RESULTS.md; the figures of any run are in
bench/results/latest.json.
"""

import argparse
import contextlib
import sys
import tempfile
from pathlib import Path

from bench.brokers import CONTENDERS, Contender
from bench.case import Case
from bench.report import markdown, rows, save_json, table
from bench.sections import NEED_WARM_UP, SECTIONS

FOLDER = Path(__file__).parent
FIRST_PORT = 19_500


def main() -> None:
    options = parse()
    with tempfile.TemporaryDirectory(prefix="bench-", dir=options.dir) as folder:
        brokers = [
            kind(Path(folder), FIRST_PORT + 10 * index, scale=options.scale)
            for index, kind in enumerate(CONTENDERS)
            if kind.name.lower() in options.brokers
        ]
        try:
            run(brokers, options.only, options.repeat)
        finally:
            for broker in brokers:
                broker.stop()
            report(brokers, options)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--only", type=names, default=list(SECTIONS), help="sections, by comma")
    parser.add_argument("--scale", type=float, default=1.0, help="multiplies every count")
    parser.add_argument("--repeat", type=int, default=3, help="runs of each case")
    parser.add_argument("--quick", action="store_true", help="a tenth of everything, once")
    parser.add_argument("--dir", type=Path, help="where the brokers keep their data")
    both = [kind.name.lower() for kind in CONTENDERS]
    parser.add_argument("--brokers", type=names, default=both, help="one or both of them, by comma")
    options = parser.parse_args()
    if unknown := set(options.only) - set(SECTIONS):
        parser.error(f"no section {', '.join(unknown)}; there are {', '.join(SECTIONS)}")
    if options.quick:
        options.scale, options.repeat = options.scale / 10, 1
    return options


def names(text: str) -> list[str]:
    return [name for name in text.lower().split(",") if name]


def run(brokers: list[Contender], sections: list[str], repeat: int) -> None:
    warm = False
    for section in SECTIONS:
        if section not in sections:
            continue
        say(f"== {section}")
        for broker in brokers:
            if section != "start":
                broker.ensure_started()
            if section in NEED_WARM_UP and not warm:
                broker.warm_up()
        warm = warm or section in NEED_WARM_UP
        for case in SECTIONS[section]:
            measure(case, brokers, repeat)


def measure(case: Case, brokers: list[Contender], repeat: int) -> None:
    """In turns, and every other time in the other order: what disturbs one disturbs both."""
    with contextlib.ExitStack() as stack:
        prepared = [(broker, stack.enter_context(case.setup(broker))) for broker in brokers]
        for _ in range(case.repeat or repeat):
            for broker, state in prepared:
                say(f"{broker.name}:")
                broker.record(case.name, **case.measure(broker, state))
            prepared.reverse()


def report(brokers: list[Contender], options: argparse.Namespace) -> None:
    results = {broker.name: broker.results for broker in brokers}
    lines = list(rows(results.get("Kafka", {}), results.get("Barnabas", {})))
    print(table(lines))
    save_json(FOLDER / "results" / "latest.json", results)
    whole = len(brokers) == 2 and options.scale == 1 and set(options.only) == set(SECTIONS)
    if whole:
        (FOLDER / "RESULTS.md").write_text(markdown(lines, repeat=options.repeat))


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
