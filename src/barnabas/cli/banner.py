"""What `barnabas up` prints when its brokers serve: their addresses, and commands to try."""

import os
from collections.abc import Sequence
from pathlib import Path

from barnabas import __version__
from barnabas.cli.local_cluster import LocalCluster
from barnabas.cli.local_security import ADMIN, LocalSecurity
from barnabas.cli.registry_process import RegistryPlan
from barnabas.cli.shell_commands import python_word, shell_command, shown_path, wrapped
from barnabas.cli.up_options import UpOptions
from barnabas.config import BrokerSettings
from barnabas.config.addresses import ALL_INTERFACES
from barnabas.node import Node
from barnabas.node.format import host_for_local_nodes

_DEFAULT_BOOTSTRAP_SERVER = "localhost:9092"
"""What the commands connect to by default."""

_PYTHON_ON_PATH = ("python", "python3")


def node_banner(
    node: Node,
    log: str,
    registry_plan: RegistryPlan | None,
    security: LocalSecurity | None = None,
) -> str:
    client_file = security.client_file if security is not None else None
    bound = node.settings.listeners[0]
    where = f"{node.address} and all other addresses" if _is_everywhere(bound.host) else None
    lines = [
        f"Barnabas {__version__} serves Kafka clients on {where or node.address}. "
        "Press Ctrl-C to stop.",
        f"Data: {', '.join(node.settings.log_dirs)}",
        f"Log: {log}",
        f"Metrics: {_metrics_url(node.settings, node.metrics_address)}",
        *_registry_lines(registry_plan),
        *_security_lines(security),
        *_commands_to_try(node.address, client_file),
    ]
    return "\n".join(lines)


def cluster_banner(
    cluster: LocalCluster, registry_plan: RegistryPlan | None, options: UpOptions
) -> str:
    nodes, client_file = cluster.nodes, options.client_file
    connection = _connection(nodes[0].address, client_file)
    addresses = ",".join(node.address for node in nodes)
    controllers = [str(node.node_id) for node in nodes if node.settings.is_controller]
    rows = [
        (
            str(node.node_id),
            node.address,
            str(pid),
            _metrics_url(node.settings, node.metrics_listener),
        )
        for node in nodes
        if (pid := cluster.pid_of(node))
    ]
    lines = [
        f"Barnabas {__version__}: {len(nodes)} brokers serve Kafka clients. Press Ctrl-C to stop.",
        *_table([("BROKER", "ADDRESS", "PID", "METRICS"), *rows]),
        f"Controllers: {', '.join(controllers)}",
        f"Bootstrap servers: {addresses}",
        f"Data: {options.directory}",
        f"Logs: {nodes[0].log_file}, and so on",
        *_registry_lines(registry_plan),
        *_security_lines(options.security),
        "",
        "Leaders, lag and under-replicated partitions:",
        *wrapped(shell_command("barnabas", "cluster", "describe", *connection)),
        *wrapped(shell_command("barnabas", "quorum", "describe", *connection)),
        *_commands_to_try(nodes[0].address, client_file),
    ]
    return "\n".join(lines)


def _commands_to_try(address: str, client_file: Path | None) -> list[str]:
    connection = _connection(address, client_file)
    kafka = ("--bootstrap-server", address, *_command_config(client_file), "--topic", "hello")
    commands = [
        f"echo world | {shell_command('barnabas', 'produce', 'hello', *connection)}",
        shell_command("barnabas", "consume", "hello", "--from-beginning", *connection),
        shell_command("kafka-console-producer.sh", *kafka),
        shell_command("kafka-console-consumer.sh", *kafka, "--from-beginning"),
    ]
    return [
        "",
        "Try it with any Kafka client, for instance in another terminal:",
        *(line for command in commands for line in wrapped(command)),
        "or in Python:" if python_word() in _PYTHON_ON_PATH else f"or in Python ({python_word()}):",
        "  from barnabas import Consumer, Producer",
        *_python_settings(address, client_file),
        "  producer = Producer(settings)",
        '  producer.produce("hello", "world")',
        "  producer.flush()",
        '  reading = {"group.id": "readers", "auto.offset.reset": "earliest"}',
        "  consumer = Consumer(settings | reading)",
        '  consumer.subscribe(["hello"])',
        "  print(consumer.poll(10).value())",
        "",
    ]


def _python_settings(address: str, client_file: Path | None) -> list[str]:
    if client_file is None:
        return [f'  settings = {{"bootstrap.servers": "{address}"}}']
    return [
        "  from pathlib import Path",
        "  from barnabas.config import parse_properties",
        f'  file = Path("{shown_path(client_file)}")',
        "  settings = parse_properties(file.read_text())",
        f'  settings["bootstrap.servers"] = "{address}"',
    ]


def _connection(address: str, client_file: Path | None) -> Sequence[str]:
    """Returns the options with which a command connects."""
    return (*_server(address), *_command_config(client_file))


def _command_config(client_file: Path | None) -> Sequence[str]:
    return () if client_file is None else ("--command-config", shown_path(client_file))


def _server(address: str) -> Sequence[str]:
    """Returns the option that names the broker, if it is not the default."""
    default = os.environ.get("BARNABAS_BOOTSTRAP_SERVER", _DEFAULT_BOOTSTRAP_SERVER)
    return () if address == default else ("-b", address)


def _is_everywhere(host: str) -> bool:
    return not host or host in ALL_INTERFACES


def _metrics_url(settings: BrokerSettings, address: str | None) -> str:
    if not address:
        return "off"
    host, _, port = address.rpartition(":")
    scheme = settings["barnabas.metrics.protocol"]
    return f"{scheme}://{host_for_local_nodes(host)}:{port}/metrics"


def _registry_lines(registry_plan: RegistryPlan | None) -> list[str]:
    return [] if registry_plan is None else [registry_plan.banner_line]


def _security_lines(security: LocalSecurity | None) -> list[str]:
    """Returns how to connect to a secured cluster, also with clients of HTTP."""
    if security is None:
        return []
    authority = shown_path(security.authority_file)
    return [
        f"Secured with TLS and ACLs; the login of {ADMIN} is in {shown_path(security.client_file)}",
        f"Clients of the registry: settings in {shown_path(security.registry_client_file)}",
        f"Metrics and registry by curl: curl --cacert {authority} -u USER URL",
    ]


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
