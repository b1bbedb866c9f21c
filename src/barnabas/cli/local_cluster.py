"""A cluster of node processes on one machine, as `barnabas up --brokers 3` runs it.

All files are in one directory: `1.properties` and `1/` belong to node 1, and so on. The nodes are
ordinary nodes: `barnabas start 1.properties` runs one of them alone.
"""

import asyncio
import signal
import socket
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import click

from barnabas.cli.operations.settings import check_settings, load_settings
from barnabas.client.admin import AioAdminClient
from barnabas.config import BrokerSettings
from barnabas.log.directory.directory_files import DirectoryInUse, DirectoryLock
from barnabas.node.errors import NodeError
from barnabas.node.format import QuorumBootstrap, format_storage
from barnabas.raft import VoterEndpoint, VoterNode, VoterSet
from barnabas.wire.uuid import random_uuid, to_text

CONTROLLERS = 3
"""The number of controllers if there are enough nodes: a quorum of three survives one failure."""

NODE_SETTINGS = ("node.id", "process.roles", "listeners", "advertised.listeners", "log.dirs")
"""Settings that differ between the nodes."""

STOP_TIMEOUT_S = 45.0
POLL_S = 0.05


@dataclass(slots=True, frozen=True)
class LocalNode:
    node_id: int
    file: Path
    settings: BrokerSettings

    @property
    def address(self) -> str:
        return str(self.settings.advertised_listeners[0]).partition("://")[2]


def prepare_nodes(
    directory: Path,
    host: str,
    port: int,
    brokers: int,
    metrics_port: int | None,
    overrides: dict[str, str],
) -> list[LocalNode]:
    """Returns the nodes of a directory, and creates them if the directory is new."""
    if files := node_files(directory):
        nodes = [LocalNode(int(file.stem), file, load_settings(file, {})) for file in files]
        _require_unchanged(directory, nodes, brokers, port, overrides)
        return nodes
    if Path(directory, "meta.properties").exists():
        raise NodeError(
            f"{directory} has the data of a single node: leave out --brokers, or choose another "
            "--dir."
        )
    if directory.exists() and any(directory.iterdir()):
        raise NodeError(f"{directory} contains other files: choose an empty directory.")
    for key in NODE_SETTINGS:
        if key in overrides:
            raise NodeError(f"{key} cannot be --set for several nodes: it differs between nodes.")
    return _new_nodes(directory, host, port, brokers, metrics_port, overrides)


def node_files(directory: Path) -> list[Path]:
    """Returns the settings files of the nodes in a directory, in the order of node ids."""
    files = [file for file in directory.glob("*.properties") if file.stem.isdecimal()]
    return sorted(files, key=lambda file: int(file.stem))


def _require_unchanged(
    directory: Path, nodes: Sequence[LocalNode], brokers: int, port: int, overrides: dict[str, str]
) -> None:
    if len(nodes) != brokers:
        raise NodeError(
            f"{directory} has a cluster of {len(nodes)}: use --brokers {len(nodes)}, or choose "
            "another --dir."
        )
    first_port = nodes[0].settings.advertised_listeners[0].port
    if port and first_port != port:
        raise NodeError(
            f"The cluster in {directory} uses port {first_port}: use --port {first_port}, or "
            "choose another --dir."
        )
    for node in nodes:
        _require_stopped(node)
        changed = [
            key for key, value in overrides.items() if node.settings.explicit.get(key) != value
        ]
        if changed:
            raise NodeError(
                f"{node.file} has another value of {changed[0]}: change it there, and leave "
                "out --set."
            )


def _require_stopped(node: LocalNode) -> None:
    """Raises NodeError if the node runs already: its responses would be taken for the new one's."""
    try:
        DirectoryLock(node.settings.metadata_log_dir).release()
    except DirectoryInUse:
        raise NodeError(f"Node {node.node_id} of {node.file.parent} is already running.") from None
    except OSError as error:
        raise NodeError(f"Node {node.node_id} cannot start: {error}.") from None


def _new_nodes(
    directory: Path,
    host: str,
    port: int,
    brokers: int,
    metrics_port: int | None,
    overrides: dict[str, str],
) -> list[LocalNode]:
    controller_count = CONTROLLERS if brokers >= CONTROLLERS else 1
    ports = _ports(host, port, 2 * brokers)
    metrics_ports = _ports(host, metrics_port, brokers) if metrics_port is not None else []
    controllers = {node_id: ports[2 * node_id - 1] for node_id in range(1, controller_count + 1)}
    nodes = []
    for node_id in range(1, brokers + 1):
        properties = cluster_properties(
            host, ports[2 * node_id - 2], node_id, controllers, brokers, directory / str(node_id)
        )
        if metrics_ports:
            properties["barnabas.metrics.listener"] = f"{host}:{metrics_ports[node_id - 1]}"
        settings = check_settings(properties | overrides)
        nodes.append(LocalNode(node_id, directory / f"{node_id}.properties", settings))
    voters = VoterSet(
        VoterNode(
            node_id,
            random_uuid(),
            (VoterEndpoint("CONTROLLER", host.strip("[]"), controller_port),),
        )
        for node_id, controller_port in controllers.items()
    )
    cluster_id = to_text(random_uuid())
    for node in nodes:
        # A broker finds the voters through controller.quorum.bootstrap.servers.
        quorum = voters if node.settings.is_controller else QuorumBootstrap.JOIN
        format_storage(node.settings, cluster_id=cluster_id, quorum=quorum)
    for node in nodes:
        lines = (f"{key}={value}\n" for key, value in node.settings.explicit.items())
        node.file.write_text("".join(lines), encoding="latin-1")
    return nodes


def cluster_properties(
    host: str, port: int, node_id: int, controllers: dict[int, int], brokers: int, directory: Path
) -> dict[str, str]:
    """Returns the server.properties of one node; `controllers` has their ports by node id."""
    replication_factor = min(brokers, 3)
    min_isr = str(replication_factor - 1 if replication_factor > 2 else 1)
    listeners, roles = f"PLAINTEXT://{host}:{port}", "broker"
    if node_id in controllers:
        listeners += f",CONTROLLER://{host}:{controllers[node_id]}"
        roles = "broker,controller"
    return {
        "process.roles": roles,
        "node.id": str(node_id),
        "listeners": listeners,
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.bootstrap.servers": ",".join(
            f"{host}:{controller_port}" for controller_port in controllers.values()
        ),
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "log.dirs": str(directory),
        "default.replication.factor": str(replication_factor),
        "min.insync.replicas": min_isr,
        "offsets.topic.replication.factor": str(replication_factor),
        "transaction.state.log.replication.factor": str(replication_factor),
        "transaction.state.log.min.isr": min_isr,
        "share.coordinator.state.topic.replication.factor": str(replication_factor),
        "share.coordinator.state.topic.min.isr": min_isr,
        "group.initial.rebalance.delay.ms": "0",
    }


def _ports(host: str, first: int, count: int) -> list[int]:
    """Returns `count` ports from `first` on, or free ports if it is 0."""
    if first:
        return list(range(first, first + count))
    address, family = host.strip("[]"), socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listeners = [socket.create_server((address, 0), family=family) for _ in range(count)]
    except OSError as error:
        raise NodeError(f"Cannot listen on {address}: {error.strerror}.") from None
    ports = [listener.getsockname()[1] for listener in listeners]
    for listener in listeners:
        listener.close()
    return ports


class LocalCluster:
    """Starts, watches and stops the node processes. Echoes their logs with their node ids."""

    def __init__(self, nodes: Sequence[LocalNode]) -> None:
        self._nodes = nodes
        self._processes: dict[int, asyncio.subprocess.Process] = {}
        self._running_nodes = list(nodes)
        self._echo_tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        for node in self._nodes:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "barnabas.cli", "start", str(node.file)),
                "--stop-with-stdin",
                stdin=asyncio.subprocess.PIPE,  # it stops when this process ends
                stderr=asyncio.subprocess.PIPE,
                start_new_session=True,  # Ctrl-C goes to this process, which stops them one by one
            )
            self._processes[node.node_id] = process
            assert process.stderr is not None
            self._echo_tasks.append(asyncio.create_task(_echo(node.node_id, process.stderr)))

    async def wait_until_ready(self) -> None:
        """Waits until every broker serves clients and knows all other brokers."""
        for node in self._nodes:
            await self._wait_until_serving(node)

    async def _wait_until_serving(self, node: LocalNode) -> None:
        async with AioAdminClient({"bootstrap.servers": node.address}) as admin:
            while len((await admin.describe_cluster()).nodes) != len(self._nodes):
                await asyncio.sleep(POLL_S)

    @property
    def is_running(self) -> bool:
        """Whether any node process is still running."""
        return bool(self._running_nodes)

    async def wait_for_exit(self) -> LocalNode:
        """Waits until a node process exits by itself, and returns the node."""
        waiting = {
            asyncio.create_task(self._processes[node.node_id].wait()): node
            for node in self._running_nodes
        }
        try:
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        finally:
            ended = [node for task, node in waiting.items() if task.done()]
            for task in waiting:
                task.cancel()
        self._running_nodes.remove(ended[0])
        return ended[0]

    async def stop(self) -> None:
        """Stops the nodes one after the other, controllers last, so that leaders can move."""
        for process in reversed(self._processes.values()):
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    process.send_signal(signal.SIGTERM)
                try:
                    async with asyncio.timeout(STOP_TIMEOUT_S):
                        await process.wait()
                except TimeoutError:
                    process.kill()
                    await process.wait()
        await asyncio.gather(*self._echo_tasks)

    def abort(self) -> None:
        """Kills the processes; the next start recovers the logs."""
        for process in self._processes.values():
            if process.returncode is None:
                process.kill()


async def _echo(node_id: int, lines: asyncio.StreamReader) -> None:
    while line := await lines.readline():
        click.echo(f"{node_id} | {line.decode(errors='replace').rstrip()}", err=True)
