"""Running one node, or several node processes, in the foreground until stopped."""

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
    banner: Callable[[Node], str] | None = None,
    registry: RegistryProcess | None = None,
    stop_with_stdin: bool = False,
) -> None:
    """Runs a node until SIGTERM or Ctrl-C, then stops it cleanly; a second signal kills it."""
    log_to_stderr()
    asyncio.run(_serve(settings, banner, registry, stop_with_stdin))


def run_cluster(
    nodes: Sequence[LocalNode], *, banner: str, registry: RegistryProcess | None = None
) -> None:
    """Runs the nodes until SIGTERM or Ctrl-C, then stops them one after the other."""
    asyncio.run(_supervise(nodes, banner, registry))


async def _serve(
    settings: BrokerSettings,
    banner: Callable[[Node], str] | None,
    registry: RegistryProcess | None,
    stop_with_stdin: bool,
) -> None:
    stop = stop_event(_abort, with_stdin=stop_with_stdin)
    starting = asyncio.create_task(Node.start(settings))
    stopping = asyncio.create_task(stop.wait())
    await asyncio.wait([starting, stopping], return_when=asyncio.FIRST_COMPLETED)
    if not starting.done():
        starting.cancel()  # stopped before the start completed
        await asyncio.gather(starting, return_exceptions=True)
        return
    stopping.cancel()
    node = await starting
    # What is loaded now lives as long as the process: the garbage collector can skip it.
    gc.collect()
    gc.freeze()
    try:
        if banner is not None:
            click.echo(banner(node))
        if registry is not None:
            await registry.start(node.address)
        await node.run_until(stop)
    finally:
        if registry is not None:
            await registry.stop()
        await node.stop()


async def _supervise(
    nodes: Sequence[LocalNode], banner: str, registry: RegistryProcess | None
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
                click.echo(banner)
                if registry is not None:
                    await registry.start(",".join(node.address for node in nodes))
            if ended.done() and not ready.done():
                raise NodeError(
                    f"Node {ended.result().node_id} did not start; see its log lines above."
                )
            if ended.done() and not stop.is_set():
                node = ended.result()
                click.echo(
                    f"Node {node.node_id} has exited; the other nodes keep running. "
                    f"Restart it with: barnabas start {node.file}",
                    err=True,
                )
            ended.cancel()
        ready.cancel()
        if not stop.is_set():
            raise NodeError("All nodes have exited; see their log lines above.")
    finally:
        stopping.cancel()
        if registry is not None:
            await registry.stop()
        await cluster.stop()


def _abort() -> None:
    logging.getLogger("barnabas").warning(
        "Killed by a second signal; the next start recovers the logs"
    )
    # Nothing below may run: the clean-shutdown file must not be written.
    signal.raise_signal(signal.SIGKILL)
