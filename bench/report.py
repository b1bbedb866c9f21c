"""Reports the figures side by side: as a table on the screen, as JSON, and as Markdown."""

import json
import platform
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.targets import Target, target_for

Results = Mapping[str, Mapping[str, Sequence[float]]]
"""The values of all runs, by case and figure."""

HIDDEN = {
    "records_per_s",
    "client_cpu_s_per_gb",
    "other_cores",
    "avg_ms",
    "p50_ms",
    "start_cpu_s",
    "requests",
    "log_mb",
    "clean_s",
}
"""Figures that are only in the JSON, to check others."""

COLUMNS = ("figure", "Kafka", "Barnabas", "ratio", "target", "")


@dataclass(slots=True, frozen=True)
class Row:
    case: str
    figure: str
    kafka: float | None
    barnabas: float | None
    target: Target | None

    def cells(self) -> tuple[str, ...]:
        ratio = self.barnabas / self.kafka if self.kafka and self.barnabas is not None else None
        return (
            f"{self.case}: {self.figure}",
            show(self.kafka),
            show(self.barnabas),
            "" if ratio is None else f"{ratio:.2f}x" if ratio >= 0.01 else f"{ratio:.1g}x",
            str(self.target or ""),
            self.outcome(),
        )

    def outcome(self) -> str:
        if self.target is None or self.barnabas is None:
            return ""
        reached = self.target.is_reached(self.kafka, self.barnabas)
        return {True: "reached", False: "NOT REACHED", None: ""}[reached]


def rows(kafka: Results, barnabas: Results) -> Iterator[Row]:
    for case in dict.fromkeys([*kafka, *barnabas]):
        figures = dict.fromkeys([*kafka.get(case, {}), *barnabas.get(case, {})])
        for figure in figures:
            if figure not in HIDDEN:
                yield Row(
                    case,
                    figure,
                    median(kafka, case, figure),
                    median(barnabas, case, figure),
                    target_for(case, figure),
                )


def table(lines: Sequence[Row]) -> str:
    cells = [COLUMNS, *(row.cells() for row in lines)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return "\n".join(
        "  ".join(
            [cell[0].ljust(widths[0])]
            + [text.rjust(width) for text, width in zip(cell[1:], widths[1:], strict=True)]
        ).rstrip()
        for cell in cells
    )


def markdown(lines: Sequence[Row], *, repeat: int) -> str:
    outcomes = [row.outcome() for row in lines if row.outcome()]
    head = [
        "# Barnabas and Kafka side by side",
        "",
        f"Written by `make bench`: medians of {repeat} runs, the two brokers taking turns, on"
        f" {processors()}, Linux {platform.release()}, Python {platform.python_version()}.",
        f"{outcomes.count('reached')} of {len(outcomes)} targets are reached.",
        "",
        "| " + " | ".join(COLUMNS) + " |",
        "| --- | ---: | ---: | ---: | ---: | --- |",
    ]
    return "\n".join([*head, *("| " + " | ".join(row.cells()) + " |" for row in lines)]) + "\n"


def save_json(path: Path, results: Mapping[str, Results]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(results, indent=1) + "\n")


def median(results: Results, case: str, figure: str) -> float | None:
    values = results.get(case, {}).get(figure)
    return statistics.median(values) if values else None


def show(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def processors() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    models = [line.partition(": ")[2] for line in lines if line.startswith("model name")]
    return f"{len(models)} cores of {models[0] if models else platform.machine()}"
