"""Run one node in the foreground, or watch over several, until told to stop."""

import asyncio
import gc
import logging
import signal
from collections.abc import Callable, Sequence

import click

from barnabas.cli.local_cluster import LocalCluster, LocalNode
from barnabas.cli.logs import log_to_stderr
from barnabas.cli.registry_process import RegistryProcess
from barnabas.cli.signals import stop_event
from barnabas.config import BrokerSettings
from barnabas.node import Node, NodeError


def run_node(
    settings: BrokerSettings,
    *,
    greeting: Callable[[Node], str] | None = None,
    registry: RegistryProcess | None = None,
    stop_with_stdin: bool = False,
) -> None:
    """Start, serve, and stop cleanly on SIGTERM or Ctrl-C; a second one stops at once."""
    log_to_stderr()
    asyncio.run(_serve(settings, greeting, registry, stop_with_stdin))


def run_cluster(
    nodes: Sequence[LocalNode], *, greeting: str, registry: RegistryProcess | None = None
) -> None:
    """Start them, and stop them one after the other on SIGTERM or Ctrl-C."""
    asyncio.run(_watch_over(nodes, greeting, registry))


async def _serve(
    settings: BrokerSettings,
    greeting: Callable[[Node], str] | None,
    registry: RegistryProcess | None,
    stop_with_stdin: bool,
) -> None:
    stop = stop_event(_abort, with_stdin=stop_with_stdin)
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
        if registry is not None:
            await registry.start(node.address)
        await node.run_until(stop)
    finally:
        if registry is not None:
            await registry.stop()
        await node.stop()


async def _watch_over(
    nodes: Sequence[LocalNode], greeting: str, registry: RegistryProcess | None
) -> None:
    cluster = LocalCluster(nodes)
    stop = stop_event(cluster.abort)
    await cluster.start()
    stopping = asyncio.create_task(stop.wait())
    try:
        ready = asyncio.create_task(cluster.wait_until_ready())
        while cluster.is_running and not stop.is_set():
            ended = asyncio.create_task(cluster.wait_for_exit())
            waiting = [ended, stopping] if ready.done() else [ended, stopping, ready]
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            if ready in waiting and ready.done():
                click.echo(greeting)
                if registry is not None:
                    await registry.start(",".join(node.address for node in nodes))
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
        if registry is not None:
            await registry.stop()
        await cluster.stop()


def _abort() -> None:
    logging.getLogger("barnabas").warning("stopped at once; the next start will recover")
    # Nothing below may run: the clean-shutdown mark must not be written.
    signal.raise_signal(signal.SIGKILL)
