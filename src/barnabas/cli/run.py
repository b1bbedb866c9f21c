"""Run one node in the foreground until it is told to stop."""

import asyncio
import logging
import signal
from collections.abc import Callable

import click

from barnabas.cli.errors import one_line_errors
from barnabas.cli.logs import log_to_stderr
from barnabas.config import BrokerSettings
from barnabas.node import Node


def run_node(settings: BrokerSettings, *, greeting: Callable[[Node], str] | None = None) -> None:
    """Start, serve, and stop cleanly on SIGTERM or Ctrl-C; a second one stops at once."""
    log_to_stderr()
    with one_line_errors():
        asyncio.run(_serve(settings, greeting))


async def _serve(settings: BrokerSettings, greeting: Callable[[Node], str] | None) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, _stop_or_abort, stop)
    node = await Node.start(settings)
    try:
        if greeting is not None:
            click.echo(greeting(node))
        await node.run_until(stop)
    finally:
        await node.stop()


def _stop_or_abort(stop: asyncio.Event) -> None:
    if stop.is_set():
        logging.getLogger("barnabas").warning("stopped at once; the next start will recover")
        # Nothing below may run: the clean-shutdown mark must not be written.
        signal.raise_signal(signal.SIGKILL)
    stop.set()
