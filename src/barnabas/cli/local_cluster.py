"""A cluster of node processes on one machine, as `barnabas up --brokers 3` runs it.

All files are in one directory: `1.properties` and `1/` belong to node 1, and so on. The nodes are
ordinary nodes: `barnabas start 1.properties` runs one of them alone. Each logs to `1/server.log`.
"""

import asyncio
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from barnabas.cli.child_output import echo_lines
from barnabas.cli.local_ports import any_free_port, is_free, next_free_port, suggest_port
from barnabas.cli.local_security import SECURITY_FOLDER, write_private
from barnabas.cli.operations.local_processes import describe_taken_directory, describe_taken_port
from barnabas.cli.operations.settings import check_settings, load_settings
from barnabas.cli.shell_commands import shell_command
from barnabas.cli.up_options import LOG_FILE, METRICS_LISTENER, UpOptions
from barnabas.config import BrokerSettings
from barnabas.log.directory.directory_files import DirectoryInUse, DirectoryLock
from barnabas.node.errors import NodeError
from barnabas.node.format import QuorumBootstrap, format_storage, host_for_local_nodes
from barnabas.raft import VoterEndpoint, VoterNode, VoterSet
from barnabas.wire.uuid import random_uuid, to_text

CONTROLLERS = 3
"""The number of controllers if there are enough nodes: a quorum of three survives one failure."""

NODE_SETTINGS = (
    "node.id",
    "process.roles",
    "listeners",
    "advertised.listeners",
    "log.dirs",
    METRICS_LISTENER,
)
"""Settings that differ between the nodes."""

STOP_TIMEOUT_S = 45.0
POLL_S = 0.05


@dataclass(slots=True, frozen=True)
class LocalNode:
    node_id: int
    file: Path
    settings: BrokerSettings
    metrics_listener: str = ""
    """Empty if it has no metrics."""

    @property
    def address(self) -> str:
        return str(self.settings.advertised_listeners[0]).partition("://")[2]

    @property
    def log_file(self) -> Path:
        return Path(self.settings.log_dirs[0], LOG_FILE)

    @property
    def start_arguments(self) -> list[str]:
        """The arguments of `barnabas` that start it alone."""
        arguments = ["start", str(self.file)]
        if self.metrics_listener != self.settings[METRICS_LISTENER]:
            arguments += ["--set", f"{METRICS_LISTENER}={self.metrics_listener}"]
        return arguments

    @property
    def restart_command(self) -> str:
        return shell_command("barnabas", *self.start_arguments)


def prepare_nodes(options: UpOptions) -> list[LocalNode]:
    """Returns the nodes of a directory, and creates them if the directory is new."""
    directory = options.directory
    if files := node_files(directory):
        nodes = [LocalNode(int(file.stem), file, load_settings(file, {})) for file in files]
        _require_unchanged(nodes, options)
        for node in nodes:
            _require_free_ports(node)
        return _with_metrics(nodes, options)
    if Path(directory, "meta.properties").exists():
        raise NodeError(
            f"{directory} has the data of a single node: leave out --brokers, or choose another "
            "--dir."
        )
    if directory.exists() and any(file.name != SECURITY_FOLDER for file in directory.iterdir()):
        raise NodeError(f"{directory} contains other files: choose an empty directory.")
    for key in NODE_SETTINGS:
        if key in options.overrides:
            raise NodeError(f"{key} cannot be --set for several nodes: it differs between nodes.")
    return _with_metrics(_new_nodes(options), options)


def _with_metrics(nodes: Sequence[LocalNode], options: UpOptions) -> list[LocalNode]:
    """Adds the address of the metrics: the option's, or else the file's, or else a free one."""
    ports = [listener.port for node in nodes for listener in node.settings.listeners]
    listeners = options.metrics_listeners(len(nodes), ports) or [""] * len(nodes)
    prepared = []
    for node, listener in zip(nodes, listeners, strict=True):
        from_file = node.settings[METRICS_LISTENER]
        is_kept = from_file and options.has_metrics and options.metrics_port is None
        prepared.append(replace(node, metrics_listener=from_file if is_kept else listener))
    if options.metrics_port or any(node.settings[METRICS_LISTENER] for node in nodes):
        for node in prepared:
            _require_free_metrics_port(node)
    return prepared


def node_files(directory: Path) -> list[Path]:
    """Returns the settings files of the nodes in a directory, in the order of node ids."""
    files = [file for file in directory.glob("*.properties") if file.stem.isdecimal()]
    return sorted(files, key=lambda file: int(file.stem))


def _require_unchanged(nodes: Sequence[LocalNode], options: UpOptions) -> None:
    directory = options.directory
    if len(nodes) != options.brokers:
        raise NodeError(
            f"{directory} has a cluster of {len(nodes)}: use --brokers {len(nodes)}, or choose "
            "another --dir."
        )
    first_port = nodes[0].settings.advertised_listeners[0].port
    if options.port and first_port != options.port:
        raise NodeError(
            f"The cluster in {directory} uses port {first_port}: use --port {first_port}, or "
            "choose another --dir."
        )
    for node in nodes:
        _require_stopped(node)
        changed = [
            key
            for key, value in options.overrides.items()
            if node.settings.explicit.get(key) != value
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
        holder = describe_taken_directory(node.settings.metadata_log_dir)
        raise NodeError(f"Node {node.node_id} is already running: {holder}.") from None
    except OSError as error:
        raise NodeError(f"Node {node.node_id} cannot start: {error}.") from None


def _require_free_ports(node: LocalNode) -> None:
    for listener in node.settings.listeners:
        if not is_free(listener.host, listener.port):
            raise NodeError(
                f"{describe_taken_port(listener.host, listener.port)}. Stop it, or change "
                f"listeners in {node.file}."
            )


def _require_free_metrics_port(node: LocalNode) -> None:
    host, _, port = node.metrics_listener.rpartition(":")
    if port and not is_free(host.strip("[]"), int(port)):
        raise NodeError(
            f"{describe_taken_port(host.strip('[]'), int(port))}. Stop it, or choose other ports "
            f"for the metrics: --metrics-port {suggest_port(host.strip('[]'), int(port))}"
        )


def _new_nodes(options: UpOptions) -> list[LocalNode]:
    directory, local_host = options.directory, host_for_local_nodes(options.host)
    ports = _broker_ports(options)
    controllers = _controller_ports(options, local_host, ports)
    nodes = []
    for node_id, port in enumerate(ports, start=1):
        properties = cluster_properties(
            options.host, port, node_id, controllers, options.brokers, directory / str(node_id)
        )
        settings = check_settings(options.node_properties(properties))
        nodes.append(LocalNode(node_id, directory / f"{node_id}.properties", settings))
    voters = VoterSet(
        VoterNode(
            node_id,
            random_uuid(),
            (VoterEndpoint("CONTROLLER", local_host.strip("[]"), controller_port),),
        )
        for node_id, controller_port in controllers.items()
    )
    cluster_id = to_text(random_uuid())
    users = options.scram_users()
    for node in nodes:
        # A broker finds the voters through controller.quorum.bootstrap.servers.
        quorum = voters if node.settings.is_controller else QuorumBootstrap.JOIN
        format_storage(node.settings, cluster_id=cluster_id, quorum=quorum, scram_users=users)
    for node in nodes:
        lines = (f"{key}={value}\n" for key, value in node.settings.explicit.items())
        write_private(node.file, "".join(lines))  # it can have passwords
    return nodes


def _broker_ports(options: UpOptions) -> list[int]:
    """Returns every second port from `--port` on, or free ports if it is 0."""
    host = options.host.strip("[]")
    if not options.port:
        return _distinct_free_ports(host, options.brokers, options.reserved_ports)
    ports = [options.port + 2 * number for number in range(options.brokers)]
    for port in ports:
        if not is_free(host, port):
            raise NodeError(
                f"{describe_taken_port(host, port)}. Stop it, or choose other ports: "
                f"--port {suggest_port(host, options.port)}"
            )
    return ports


def _controller_ports(
    options: UpOptions, local_host: str, broker_ports: Sequence[int]
) -> dict[int, int]:
    """Returns the ports of the controllers by node id: after the broker's, if that one is free."""
    count = CONTROLLERS if options.brokers >= CONTROLLERS else 1
    host = local_host.strip("[]")
    if not options.port:
        reserved = (*options.reserved_ports, *broker_ports)
        return dict(enumerate(_distinct_free_ports(host, count, reserved), start=1))
    ports: list[int] = []
    for broker_port in broker_ports[:count]:
        reserved = (*options.reserved_ports, *broker_ports, *ports)
        ports.append(next_free_port(host, broker_port + 1, reserved))
    return dict(enumerate(ports, start=1))


def _distinct_free_ports(host: str, count: int, others: Sequence[int] = ()) -> list[int]:
    ports: list[int] = []
    while len(ports) < count:
        ports.append(any_free_port(host, (*ports, *others)))
    return ports


def cluster_properties(
    host: str, port: int, node_id: int, controllers: dict[int, int], brokers: int, directory: Path
) -> dict[str, str]:
    """Returns the server.properties of one node; `controllers` has their ports by node id."""
    replication_factor = min(brokers, 3)
    min_isr = str(replication_factor - 1 if replication_factor > 2 else 1)
    local_host = host_for_local_nodes(host)
    listeners, roles = f"PLAINTEXT://{host}:{port}", "broker"
    if node_id in controllers:
        listeners += f",CONTROLLER://{local_host}:{controllers[node_id]}"
        roles = "broker,controller"
    return {
        "process.roles": roles,
        "node.id": str(node_id),
        "listeners": listeners,
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.bootstrap.servers": ",".join(
            f"{local_host}:{controller_port}" for controller_port in controllers.values()
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


class LocalCluster:
    """Starts, watches and stops the node processes. Echoes their logs with their node ids."""

    def __init__(
        self, nodes: Sequence[LocalNode], client_settings: Mapping[str, str], is_verbose: bool
    ) -> None:
        """`client_settings` are those with which clients connect, apart from the address."""
        self.nodes = nodes
        self._client_settings = client_settings
        self._is_verbose = is_verbose
        self._processes: dict[int, asyncio.subprocess.Process] = {}
        self._running_nodes = list(nodes)
        self._echo_tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        for node in self.nodes:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "barnabas.cli", *node.start_arguments),
                *("--stop-with-stdin", "--log-file", str(node.log_file)),
                *(["--verbose"] if self._is_verbose else []),
                stdin=asyncio.subprocess.PIPE,  # it stops when this process ends
                stderr=asyncio.subprocess.PIPE,
                start_new_session=True,  # Ctrl-C goes to this process, which stops them one by one
            )
            self._processes[node.node_id] = process
            assert process.stderr is not None
            self._echo_tasks.append(
                asyncio.create_task(echo_lines(str(node.node_id), process.stderr))
            )

    def pid_of(self, node: LocalNode) -> int:
        return self._processes[node.node_id].pid

    async def wait_until_ready(self) -> None:
        """Waits until every broker serves clients and knows all other brokers."""
        for node in self.nodes:
            await self._wait_until_serving(node)

    async def _wait_until_serving(self, node: LocalNode) -> None:
        from barnabas.client.admin import AioAdminClient  # a single broker does not need it

        settings = {**self._client_settings, "bootstrap.servers": node.address}
        async with AioAdminClient(settings) as admin:
            while len((await admin.describe_cluster()).nodes) != len(self.nodes):
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
