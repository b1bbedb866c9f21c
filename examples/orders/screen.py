"""What the demonstration looks like: a table that moves in a terminal, lines elsewhere."""

import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from rich.console import Console, Group
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from .shop import COUNTRIES, Total, Window

LINE_EVERY_S = 5
WINDOWS_SHOWN = 6


@dataclass(slots=True, frozen=True)
class View:
    """Everything there is to see at a moment."""

    stage: str
    sold: int
    done: int
    behind: int
    rows_per_s: float
    totals: Mapping[Window, Total]
    job: tuple[str, ...]

    def __str__(self) -> str:
        return (
            f"{self.stage}: {self.sold:,} sold, {self.done:,} done by Spark"
            f" ({self.rows_per_s:,.0f}/s), {self.behind:,} behind, {len(self.totals)} totals"
        )


class Screen:
    def __init__(self, console: Console) -> None:
        self._console = console
        self._live: Live | None = None
        self._next_line = 0.0
        self._stage = ""

    @contextmanager
    def lit(self) -> Iterator[None]:
        if not self._console.is_terminal:
            yield
            return
        with Live(console=self._console, refresh_per_second=8) as self._live:
            yield
        self._live = None

    def show(self, view: View) -> None:
        if self._live is not None:
            self._live.update(_drawn(view))
        elif view.stage != self._stage or time.monotonic() >= self._next_line:
            self._stage, self._next_line = view.stage, time.monotonic() + LINE_EVERY_S
            self._console.print(str(view), highlight=False, soft_wrap=True)


def _drawn(view: View) -> Group:
    figures = Table.grid(padding=(0, 3))
    for name in ("orders sold", "done by Spark", "orders/s", "behind", "totals written"):
        figures.add_column(name, justify="right")
    figures.add_row(*(Text(name, "dim") for name in ("sold", "done", "per s", "behind", "totals")))
    figures.add_row(
        f"{view.sold:,}",
        f"{view.done:,}",
        f"{view.rows_per_s:,.0f}",
        Text(f"{view.behind:,}", "green" if view.behind < 1_000 else "yellow"),
        f"{len(view.totals)}",
    )
    return Group(
        Panel(figures, title=view.stage, title_align="left"),
        _windows(view.totals),
        Text("\n".join(view.job), "dim", overflow="ellipsis", no_wrap=True),
    )


def _windows(totals: Mapping[Window, Total]) -> Table:
    table = Table("window", *COUNTRIES, title="sales in thousands", expand=True)
    for column in table.columns[1:]:
        column.justify = "right"
    by_window: dict[int, dict[str, Total]] = defaultdict(dict)
    for (began_ms, country), total in list(totals.items()):
        by_window[began_ms][country] = total
    for began_ms in sorted(by_window)[-WINDOWS_SHOWN:]:
        sales = by_window[began_ms]
        cells = (f"{sales[each].cents / 1e5:.1f}" if each in sales else "" for each in COUNTRIES)
        table.add_row(time.strftime("%H:%M:%S", time.gmtime(began_ms / 1000)), *cells)
    return table
