"""Run one node in the foreground until it is told to stop."""

import asyncio
import logging
import signal
import sys
import time

import click

from barnabas import __version__
from barnabas.config import BrokerSettings
from barnabas.node import Node, NodeError


def run_node(settings: BrokerSettings, *, banner: bool = False) -> None:
    """Start, serve, and stop cleanly on SIGTERM or Ctrl-C; a second one stops at once."""
    logging.basicConfig(
        level=logging.INFO,
        format="%(asctime)s %(levelname)-7s %(name)s: %(message)s",
        stream=sys.stderr,
    )
    try:
        asyncio.run(_serve(settings, banner))
    except NodeError as error:
        raise click.ClickException(str(error)) from None


async def _serve(settings: BrokerSettings, banner: bool) -> None:
    began = time.perf_counter()
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, _stop_or_abort, stop)
    node = await Node.start(settings)
    try:
        if banner:
            click.echo(_banner(node, settings, time.perf_counter() - began))
        await node.run_until(stop)
    finally:
        await node.stop()


def _stop_or_abort(stop: asyncio.Event) -> None:
    if stop.is_set():
        logging.getLogger("barnabas").warning("stopped at once; the next start will recover")
        # Nothing below may run: the clean-shutdown mark must not be written.
        signal.raise_signal(signal.SIGKILL)
    stop.set()


def _banner(node: Node, settings: BrokerSettings, seconds: float) -> str:
    address = node.address
    lines = [
        f"Barnabas {__version__} serves Kafka clients on {address} after {seconds:.2f} s.",
        f"Data: {', '.join(settings['log.dirs'])}",
    ]
    if node.metrics_address:
        lines.append(f"Metrics: http://{node.metrics_address}/metrics")
    lines += [
        "",
        "Try it with any Kafka client, for instance:",
        f"  kafka-console-producer.sh --bootstrap-server {address} --topic hello",
        f"  kafka-console-consumer.sh --bootstrap-server {address} --topic hello"
        " --partition 0 --offset earliest",
        "Stop with Ctrl-C.",
        "",
    ]
    return "\n".join(lines)
