"""The display of `make demo`, on a terminal and without one."""

import io

from examples.orders.screen import Screen, View, bars
from examples.orders.shop import COUNTRIES, Total
from rich.console import Console

WINDOW_MS = 5_000
VIEW = View(
    stage="Producing, 12 s of 30",
    sold=8_934,
    done=8_512,
    lag=422,
    sold_per_s=500.0,
    done_per_s=498.2,
    totals={
        (number * WINDOW_MS, country): Total(60, 123_456)
        for number in range(9)
        for country in COUNTRIES
    },
    job=("totals batch 7: 503 rows in 712 ms; orders 12 behind",) * 3,
)


def test_the_screen_fits_a_small_terminal() -> None:
    console = Console(
        file=io.StringIO(), width=80, height=24, force_terminal=True, color_system=None
    )
    screen = Screen(console)
    with screen.live():
        screen.show(VIEW)
    shown = _shown(console)
    assert len(shown.rstrip().splitlines()) < 24
    assert "8,934 orders sold" in shown
    assert "throughput" in shown
    assert "498 orders/s" in shown
    assert "lag" in shown
    assert "422 orders" in shown
    assert "totals batch 7: 503 rows in 712 ms" in shown


def test_without_a_terminal_lines_are_printed() -> None:
    console = Console(file=io.StringIO(), width=80)
    screen = Screen(console)
    with screen.live():
        screen.show(VIEW)
        screen.show(VIEW)
    assert _shown(console) == (
        "Producing, 12 s of 30: 8,934 orders sold, 8,512 processed by Spark, throughput 498/s, "
        "lag 422, 72 totals written\n"
    )


def test_bars_are_proportional_to_their_values() -> None:
    assert bars([0, 50, 100]) == "▁▅█"
    assert bars([0, 0]) == "▁▁"
    assert bars([]) == ""


def _shown(console: Console) -> str:
    file = console.file
    assert isinstance(file, io.StringIO)
    return file.getvalue()
