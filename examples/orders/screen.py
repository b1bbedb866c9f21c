"""The display of the demo: a live screen on a terminal, lines elsewhere."""

import time
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from rich import box
from rich.console import Console, Group
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from .shop import COUNTRIES, Total, Window

LINE_INTERVAL_S = 5
WINDOWS_SHOWN = 6
SAMPLES_SHOWN = 40
BARS = "▁▂▃▄▅▆▇█"


@dataclass(slots=True, frozen=True)
class View:
    """What the screen shows at a time."""

    stage: str
    sold: int
    done: int
    lag: int
    """Orders in the topic that are not in a total yet."""
    sold_per_s: float
    done_per_s: float
    totals: Mapping[Window, Total]
    job: tuple[str, ...]
    """The last output lines of Spark."""

    def __str__(self) -> str:
        return (
            f"{self.stage}: {self.sold:,} orders sold, {self.done:,} processed by Spark, "
            f"throughput {self.done_per_s:,.0f}/s, lag {self.lag:,}, "
            f"{len(self.totals)} totals written"
        )


class Screen:
    def __init__(self, console: Console) -> None:
        self._console = console
        self._live: Live | None = None
        self._next_line = 0.0
        self._throughput: deque[float] = deque(maxlen=SAMPLES_SHOWN)
        self._lag: deque[float] = deque(maxlen=SAMPLES_SHOWN)

    @contextmanager
    def live(self) -> Iterator[None]:
        if not self._console.is_terminal:
            yield
            return
        with Live(console=self._console, refresh_per_second=8) as self._live:
            yield
        self._live = None

    def show(self, view: View) -> None:
        self._throughput.append(view.done_per_s)
        self._lag.append(view.lag)
        if self._live is not None:
            self._live.update(self._render(view))
        elif time.monotonic() >= self._next_line:
            self._next_line = time.monotonic() + LINE_INTERVAL_S
            self._console.print(str(view), highlight=False, soft_wrap=True)

    def _render(self, view: View) -> Group:
        return Group(
            Panel(_flow(view), title=view.stage, title_align="left", border_style="blue"),
            _sparkline("throughput", f"{view.done_per_s:,.0f} orders/s", self._throughput, "green"),
            _sparkline("lag", f"{view.lag:,} orders", self._lag, "yellow"),
            Text(),
            _windows(view.totals),
            Text("\n".join(view.job), "dim", overflow="ellipsis", no_wrap=True),
        )


def _flow(view: View) -> Table:
    """The flow of orders, from left to right."""
    flow = Table.grid(expand=True)
    for justify in ("left", "center", "center", "center", "right"):
        flow.add_column(justify=justify)
    arrow = Text("──▶", "blue")
    stations = ("the shop", arrow, "Spark", arrow, "topic totals")
    flow.add_row(
        *(Text(station, "bold") if isinstance(station, str) else station for station in stations)
    )
    flow.add_row(
        f"{view.sold:,} orders sold",
        "",
        f"{view.done:,} orders processed",
        "",
        f"{len(view.totals)} written",
    )
    flow.add_row(f"{view.sold_per_s:,.0f}/s", "", f"{view.done_per_s:,.0f}/s", "", "exactly once")
    return flow


def _sparkline(name: str, now: str, samples: Iterable[float], colour: str) -> Table:
    """The last samples as bars, and the current value."""
    row = Table.grid(padding=(0, 2))
    row.add_column(width=11, justify="right")
    row.add_column(width=SAMPLES_SHOWN, justify="right")
    row.add_row(Text(name, "bold"), Text(bars(samples), colour), Text(now, "bold"))
    return row


def bars(samples: Iterable[float]) -> str:
    """Returns a bar per sample, scaled to the maximum."""
    figures = list(samples)
    maximum = max(figures, default=0) or 1
    return "".join(BARS[round(figure / maximum * (len(BARS) - 1))] for figure in figures)


def _windows(totals: Mapping[Window, Total]) -> Table:
    table = Table(
        "placed at",
        *COUNTRIES,
        title="sales of five seconds, in thousands",
        box=box.SIMPLE_HEAD,
        expand=True,
    )
    for column in table.columns[1:]:
        column.justify = "right"
    by_window: dict[int, dict[str, Total]] = defaultdict(dict)
    for (began_ms, country), total in list(totals.items()):
        by_window[began_ms][country] = total
    for began_ms in sorted(by_window)[-WINDOWS_SHOWN:]:
        sales = by_window[began_ms]
        cells = (
            f"{sales[country].cents / 1e5:.1f}" if country in sales else "" for country in COUNTRIES
        )
        table.add_row(time.strftime("%H:%M:%S", time.localtime(began_ms / 1000)), *cells)
    return table
