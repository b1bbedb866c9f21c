"""Output of Kafka's commands: tables with padded cells and tabs, metrics, JSON events."""

import json
import time
from collections.abc import Mapping, Sequence
from typing import Any


def print_tabbed(head: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    cells = [[*head], *([str(cell) for cell in row] for row in rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(head))]
    for row in cells:
        print("".join(f"{cell.ljust(width)}\t" for cell, width in zip(row, widths, strict=True)))


def emit(name: str, **fields: Any) -> None:
    event = {"timestamp": int(time.time() * 1000), "name": name, **fields}
    print(json.dumps(event, separators=(",", ":")), flush=True)


def print_metrics(metrics: Mapping[str, float | str]) -> None:
    """Prints a line per metric, in columns."""
    width = max(len("Metric Name"), *map(len, metrics))
    print(f"\n{'Metric Name':<{width}}   {'Value'}")
    for name, value in sorted(metrics.items()):
        text = value if isinstance(value, str) else f"{value:.3f}"
        print(f"{name:<{width}} : {'NaN' if text == 'nan' else text}")
