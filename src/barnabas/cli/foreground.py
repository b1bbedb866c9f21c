"""Running one node, or several node processes, in the foreground until stopped."""

import asyncio
import gc
import logging
import signal
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import click

from barnabas.cli.child_output import echo_error
from barnabas.cli.local_cluster import LocalCluster, LocalNode
from barnabas.cli.operations.errors import CommandError
from barnabas.cli.operations.local_processes import describe_taken_directory, describe_taken_port
from barnabas.cli.operations.settings import load_settings
from barnabas.cli.registry_process import RegistryProcess
from barnabas.cli.signals import stop_event
from barnabas.config import BrokerSettings
from barnabas.node import Node, NodeError
from barnabas.node.errors import LogDirInUse, PortInUse


def run_node(
    settings: BrokerSettings,
    *,
    banner: Callable[[Node], str] | None = None,
    registry: RegistryProcess | None = None,
    stop_with_stdin: bool = False,
) -> None:
    """Runs a node until SIGTERM or Ctrl-C, then stops it cleanly; a second signal kills it."""
    asyncio.run(_serve(settings, banner, registry, stop_with_stdin))


def run_node_from_file(
    file: Path, overrides: dict[str, str], *, stop_with_stdin: bool = False
) -> None:
    """Runs the node of a server.properties file. Raises CommandError if it cannot start."""
    try:
        run_node(load_settings(file, overrides), stop_with_stdin=stop_with_stdin)
    except PortInUse as taken:
        holder = describe_taken_port(taken.host, taken.port)
        raise CommandError(f"{holder}. Stop it, or change {taken.setting} in {file}.") from None
    except LogDirInUse as taken:
        holder = describe_taken_directory(taken.path)
        raise CommandError(f"{holder}. Stop it, or change log.dirs in {file}.") from None


def run_cluster(
    nodes: Sequence[LocalNode],
    *,
    banner: Callable[[LocalCluster], str],
    client_settings: Mapping[str, str],
    registry: RegistryProcess | None = None,
    is_verbose: bool = False,
) -> None:
    """Runs the nodes until SIGTERM or Ctrl-C, then stops them one after the other."""
    cluster = LocalCluster(nodes, client_settings, is_verbose)
    asyncio.run(_supervise(cluster, banner, registry))


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
        if banner is not None:
            echo_error("Stopping. Press Ctrl-C again to kill the broker.")
    finally:
        if registry is not None:
            await registry.stop()
        await node.stop()


async def _supervise(
    cluster: LocalCluster,
    banner: Callable[[LocalCluster], str],
    registry: RegistryProcess | None,
) -> None:
    stop = stop_event(cluster.abort)
    stopping = asyncio.create_task(stop.wait())
    try:
        await cluster.start()
        ready = asyncio.create_task(cluster.wait_until_ready())
        while cluster.is_running and not stop.is_set():
            ended = asyncio.create_task(cluster.wait_for_exit())
            waiting = [ended, stopping] if ready.done() else [ended, stopping, ready]
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            if ready in waiting and ready.done():
                ready.result()
                click.echo(banner(cluster))
                if registry is not None:
                    await registry.start(",".join(node.address for node in cluster.nodes))
            if ended.done() and not stop.is_set():
                _report_exit(ended.result(), is_starting=not ready.done())
            ended.cancel()
        ready.cancel()
        if not stop.is_set():
            raise NodeError("All nodes have exited; see the messages above, and their logs.")
        echo_error("Stopping one broker after the other. Press Ctrl-C again to kill them.")
    finally:
        stopping.cancel()
        if registry is not None:
            await registry.stop()
        await cluster.stop()


def _report_exit(node: LocalNode, *, is_starting: bool) -> None:
    if is_starting:
        raise NodeError(
            f"Node {node.node_id} did not start: see the message above, and {node.log_file}."
        )
    echo_error(
        f"Node {node.node_id} has exited; the other nodes keep running. "
        f"Restart it with: {node.restart_command}"
    )


def _abort() -> None:
    logging.getLogger("barnabas").warning(
        "Killed by a second signal; the next start recovers the logs"
    )
    # Nothing below may run: the clean-shutdown file must not be written.
    signal.raise_signal(signal.SIGKILL)
