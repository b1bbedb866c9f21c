"""A whole pipeline, live: orders through the registry, totals by Spark, written exactly once.

    python -m examples.orders

Starts a broker, a registry and Spark, sells for half a minute, and checks at the end that every
order was counted once. Nothing is left behind.
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

from .ledger import Lag, Ledger
from .place import Platform, Process, start_job, wait_until
from .screen import Screen, View
from .shop import Shop, Total, Window

SPARK_START_S = 300
LAST_TOTALS_S = 180
SPEED_OVER_S = 5
LOOK_EVERY_S = 0.25


def main() -> int:
    options = parse()
    console = Console()
    for ending in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(ending, signal.default_int_handler)
    try:
        require_all()
        with TemporaryDirectory(prefix="barnabas-orders-", ignore_cleanup_errors=True) as folder:
            return run(options, Path(folder), console)
    except KeyboardInterrupt:
        console.print("Stopped; nothing is left behind.")
        return 130
    except (PrerequisiteError, RuntimeError) as error:
        console.print(str(error), style="red", markup=False, highlight=False, soft_wrap=True)
        return 1


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m examples.orders", description=__doc__)
    parser.add_argument("--seconds", type=float, default=30, help="how long orders come in")
    parser.add_argument("--rate", type=float, default=500, help="orders a second")
    return parser.parse_args()


def run(options: argparse.Namespace, folder: Path, console: Console) -> int:
    platform = Platform(folder)
    job: Process | None = None
    try:
        with console.status("A broker and a schema registry start ..."):
            platform.wait()
        console.print(
            f"Broker at {platform.servers}, schema registry at {platform.registry}.",
            highlight=False,
            soft_wrap=True,
        )
        shop = Shop(platform.servers, platform.registry)
        shop.open()
        job = start_job(platform, folder)
        return follow(options, platform, shop, job, console)
    finally:
        for ending in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(ending, signal.SIG_IGN)  # a second Ctrl-C would leave processes behind
        with console.status("Ending ..."):
            if job is not None:
                job.stop()
            platform.stop()


def follow(
    options: argparse.Namespace, platform: Platform, shop: Shop, job: Process, console: Console
) -> int:
    ledger, lag = Ledger(platform.servers, platform.registry), Lag(platform.servers)
    stopped = threading.Event()
    seller = threading.Thread(target=shop.sell, args=(options.seconds, options.rate, stopped))
    ledger.open()
    try:
        with console.status("Spark starts ..."):
            wait_until(lambda: lag.look()[0] > 0, "Spark reads", job, SPARK_START_S)
        seller.start()
        watch(options.seconds, Screen(console), shop, ledger, lag, job, seller)
    finally:
        stopped.set()
        if seller.is_alive():
            seller.join()
        ledger.close()
        lag.close()
    return judge(shop.expected(), ledger, console)


def watch(
    seconds: float,
    screen: Screen,
    shop: Shop,
    ledger: Ledger,
    lag: Lag,
    job: Process,
    seller: threading.Thread,
) -> None:
    """Until all totals are there, or it has taken too long."""
    began = time.monotonic()
    ends = None
    selling, doing = Speed(), Speed()
    with screen.lit():
        while ends is None or time.monotonic() < ends:
            if not job.is_running:
                raise RuntimeError(f"The job ended:\n{job.last_words()}")
            if not seller.is_alive() and ends is None:
                ends = time.monotonic() + LAST_TOTALS_S
            passed_s = time.monotonic() - began
            done, behind = lag.look()
            # A stranger's order comes before the first and after the last: neither is sold.
            done = min(done - 1, shop.sold)
            screen.show(
                View(
                    stage=f"Selling, {passed_s:.0f} s of {seconds:.0f}"
                    if ends is None
                    else "All is sold, the last windows close",
                    sold=shop.sold,
                    done=done,
                    lag=behind,
                    sold_per_s=selling.at(shop.sold),
                    done_per_s=doing.at(done),
                    totals=dict(ledger.totals),
                    job=tuple(job.lines),
                )
            )
            if ends is not None and len(ledger.totals) >= len(shop.expected()):
                return
            time.sleep(LOOK_EVERY_S)


class Speed:
    """Of a figure that grows, over the last seconds."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, int]] = deque(maxlen=round(SPEED_OVER_S / LOOK_EVERY_S))

    def at(self, figure: int) -> float:
        self._seen.append((time.monotonic(), figure))
        (since_s, least), (now_s, most) = self._seen[0], self._seen[-1]
        return (most - least) / (now_s - since_s) if now_s > since_s else 0.0


def judge(expected: dict[Window, Total], ledger: Ledger, console: Console) -> int:
    """Compare every total with what was sold."""
    wrong = [order for order in expected if ledger.totals.get(order) != expected[order]]
    wrong += ledger.totals.keys() - expected.keys()
    repeated = [order for order, times in ledger.written.items() if times > 1]
    orders = sum(total.orders for total in ledger.totals.values())
    cents = sum(total.cents for total in ledger.totals.values())
    verdict = (
        f"{len(wrong)} are wrong, {len(repeated)} are there twice."
        if wrong or repeated
        else "each is right, and there once."
    )
    console.print(
        f"{orders:,} orders of {cents / 100:,.2f} in {len(ledger.totals)} totals: {verdict}",
        style="red" if wrong or repeated else "green",
        highlight=False,
        soft_wrap=True,
    )
    return 1 if wrong or repeated else 0


if __name__ == "__main__":
    sys.exit(main())
