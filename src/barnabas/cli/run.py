"""Run one node in the foreground, or watch over several, until told to stop."""

import asyncio
import gc
import logging
import os
import signal
import sys
from collections.abc import Callable, Sequence

import click

from barnabas.cli.local_cluster import LocalCluster, LocalNode
from barnabas.cli.logs import log_to_stderr
from barnabas.config import BrokerSettings
from barnabas.node import Node, NodeError


def run_node(
    settings: BrokerSettings,
    *,
    greeting: Callable[[Node], str] | None = None,
    stop_with_stdin: bool = False,
) -> None:
    """Start, serve, and stop cleanly on SIGTERM or Ctrl-C; a second one stops at once."""
    log_to_stderr()
    asyncio.run(_serve(settings, greeting, stop_with_stdin))


def run_cluster(nodes: Sequence[LocalNode], *, greeting: str) -> None:
    """Start them, and stop them one after the other on SIGTERM or Ctrl-C."""
    asyncio.run(_watch_over(nodes, greeting))


async def _serve(
    settings: BrokerSettings, greeting: Callable[[Node], str] | None, stop_with_stdin: bool
) -> None:
    stop = _told_to_stop(_abort)
    if stop_with_stdin:
        asyncio.get_running_loop().add_reader(sys.stdin, _look_for_the_end_of_stdin, stop)
    starting = asyncio.create_task(Node.start(settings))
    stopping = asyncio.create_task(stop.wait())
    await asyncio.wait([starting, stopping], return_when=asyncio.FIRST_COMPLETED)
    if not starting.done():
        starting.cancel()  # told to stop before there was anything to stop
        await asyncio.gather(starting, return_exceptions=True)
        return
    stopping.cancel()
    node = await starting
    # What is loaded by now lives as long as the process: collections need not look at it.
    gc.collect()
    gc.freeze()
    try:
        if greeting is not None:
            click.echo(greeting(node))
        await node.run_until(stop)
    finally:
        await node.stop()


async def _watch_over(nodes: Sequence[LocalNode], greeting: str) -> None:
    cluster = LocalCluster(nodes)
    stop = _told_to_stop(cluster.abort)
    await cluster.start()
    stopping = asyncio.create_task(stop.wait())
    try:
        ready = asyncio.create_task(cluster.ready())
        while cluster.running and not stop.is_set():
            ended = asyncio.create_task(cluster.next_end())
            waiting = [ended, stopping] if ready.done() else [ended, stopping, ready]
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            if ready in waiting and ready.done():
                click.echo(greeting)
            if ended.done() and not ready.done():
                raise NodeError(
                    f"Node {ended.result().node_id} did not start; see its lines above."
                )
            if ended.done() and not stop.is_set():
                node = ended.result()
                click.echo(
                    f"Node {node.node_id} has ended, the others go on. "
                    f"Start it again with: barnabas start {node.file}",
                    err=True,
                )
            ended.cancel()
        ready.cancel()
        if not stop.is_set():
            raise NodeError("Every node has ended; see their lines above.")
    finally:
        stopping.cancel()
        await cluster.stop()


def _told_to_stop(abort: Callable[[], None]) -> asyncio.Event:
    """Set by the first SIGTERM or Ctrl-C; the second one calls `abort`."""
    stop = asyncio.Event()

    def stop_or_abort() -> None:
        if stop.is_set():
            abort()
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop_or_abort)
    return stop


def _abort() -> None:
    logging.getLogger("barnabas").warning("stopped at once; the next start will recover")
    # Nothing below may run: the clean-shutdown mark must not be written.
    signal.raise_signal(signal.SIGKILL)


def _look_for_the_end_of_stdin(stop: asyncio.Event) -> None:
    if not os.read(sys.stdin.fileno(), 1024):
        asyncio.get_running_loop().remove_reader(sys.stdin)
        stop.set()
