"""A complete pipeline: orders with schemas, totals by Spark, written exactly once.

    python -m examples.orders

Starts a broker, a registry and Spark, produces orders for half a minute, and verifies at the end
that every order was counted once. All processes and files are removed.
"""

import argparse
import signal
import sys
import threading
import time
from collections import deque
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import Console

from barnabas.spark.prerequisites import PrerequisiteError, require_all

from .processes import Platform, Process, start_job, wait_until
from .screen import Screen, View
from .shop import Shop, Total, Window
from .totals_reader import Lag, TotalsReader

SPARK_START_TIMEOUT_S = 300
LAST_TOTALS_TIMEOUT_S = 180
RATE_PERIOD_S = 5
UPDATE_INTERVAL_S = 0.25


def main() -> int:
    options = parse()
    console = Console()
    for ending in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(ending, signal.default_int_handler)
    try:
        require_all()
        with TemporaryDirectory(prefix="barnabas-orders-", ignore_cleanup_errors=True) as directory:
            return run(options, Path(directory), console)
    except KeyboardInterrupt:
        console.print("Stopped; all processes and files are removed.")
        return 130
    except (PrerequisiteError, RuntimeError) as error:
        console.print(str(error), style="red", markup=False, highlight=False, soft_wrap=True)
        return 1


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m examples.orders", description=__doc__)
    parser.add_argument("--seconds", type=float, default=30, help="how long orders are produced")
    parser.add_argument("--rate", type=float, default=500, help="orders per second")
    return parser.parse_args()


def run(options: argparse.Namespace, directory: Path, console: Console) -> int:
    platform = Platform(directory)
    job: Process | None = None
    try:
        with console.status("Starting a broker and a schema registry ..."):
            platform.wait()
        console.print(
            f"Broker at {platform.servers}, schema registry at {platform.registry}.",
            highlight=False,
            soft_wrap=True,
        )
        shop = Shop(platform.servers, platform.registry)
        shop.open()
        job = start_job(platform, directory)
        return follow(options, platform, shop, job, console)
    finally:
        for ending in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(ending, signal.SIG_IGN)  # a second Ctrl-C would leave processes behind
        with console.status("Stopping ..."):
            if job is not None:
                job.stop()
            platform.stop()


def follow(
    options: argparse.Namespace, platform: Platform, shop: Shop, job: Process, console: Console
) -> int:
    totals_reader, lag = TotalsReader(platform.servers, platform.registry), Lag(platform.servers)
    stopped = threading.Event()
    seller = threading.Thread(target=shop.sell, args=(options.seconds, options.rate, stopped))
    totals_reader.open()
    try:
        with console.status("Starting Spark ..."):
            wait_until(
                lambda: lag.measure()[0] > 0, "Spark reads the orders", job, SPARK_START_TIMEOUT_S
            )
        seller.start()
        watch(options.seconds, Screen(console), shop, totals_reader, lag, job, seller)
    finally:
        stopped.set()
        if seller.is_alive():
            seller.join()
        totals_reader.close()
        lag.close()
    return verify(shop.expected(), totals_reader, console)


def watch(
    seconds: float,
    screen: Screen,
    shop: Shop,
    totals_reader: TotalsReader,
    lag: Lag,
    job: Process,
    seller: threading.Thread,
) -> None:
    """Updates the screen until all totals are written, or a timeout."""
    started = time.monotonic()
    deadline_s = None
    selling, doing = Rate(), Rate()
    with screen.live():
        while deadline_s is None or time.monotonic() < deadline_s:
            if not job.is_running:
                raise RuntimeError(f"The job exited:\n{job.error_output()}")
            if not seller.is_alive() and deadline_s is None:
                deadline_s = time.monotonic() + LAST_TOTALS_TIMEOUT_S
            passed_s = time.monotonic() - started
            done, behind = lag.measure()
            # The first and the last order have an unknown customer and are not counted as sold.
            done = min(done - 1, shop.sold)
            screen.show(
                View(
                    stage=f"Producing, {passed_s:.0f} s of {seconds:.0f}"
                    if deadline_s is None
                    else "All orders are produced, the last windows close",
                    sold=shop.sold,
                    done=done,
                    lag=behind,
                    sold_per_s=selling.at(shop.sold),
                    done_per_s=doing.at(done),
                    totals=dict(totals_reader.totals),
                    job=tuple(job.lines),
                )
            )
            if deadline_s is not None and len(totals_reader.totals) >= len(shop.expected()):
                return
            time.sleep(UPDATE_INTERVAL_S)


class Rate:
    """The rate of a growing number over the last seconds."""

    def __init__(self) -> None:
        self._samples: deque[tuple[float, int]] = deque(
            maxlen=round(RATE_PERIOD_S / UPDATE_INTERVAL_S)
        )

    def at(self, figure: int) -> float:
        self._samples.append((time.monotonic(), figure))
        (first_s, first), (last_s, last) = self._samples[0], self._samples[-1]
        return (last - first) / (last_s - first_s) if last_s > first_s else 0.0


def verify(expected: dict[Window, Total], totals_reader: TotalsReader, console: Console) -> int:
    """Compares every total with the expected one."""
    wrong = [key for key in expected if totals_reader.totals.get(key) != expected[key]]
    wrong += totals_reader.totals.keys() - expected.keys()
    repeated = [key for key, times in totals_reader.written.items() if times > 1]
    orders = sum(total.orders for total in totals_reader.totals.values())
    cents = sum(total.cents for total in totals_reader.totals.values())
    outcome = (
        f"{len(wrong)} are wrong, {len(repeated)} are written twice."
        if wrong or repeated
        else "all are correct and written once."
    )
    console.print(
        f"{orders:,} orders of {cents / 100:,.2f} in {len(totals_reader.totals)} totals: {outcome}",
        style="red" if wrong or repeated else "green",
        highlight=False,
        soft_wrap=True,
    )
    return 1 if wrong or repeated else 0


if __name__ == "__main__":
    sys.exit(main())
