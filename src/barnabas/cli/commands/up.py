"""`barnabas up` and `barnabas start`: run brokers on this machine, or one node from a file."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from barnabas import __version__
from barnabas.cli.options import listener_options, override_option, stop_with_stdin_option

if TYPE_CHECKING:
    from barnabas.cli.local_cluster import LocalNode
    from barnabas.cli.registry_process import RegistryPlan
    from barnabas.node import Node

DEFAULT_REGISTRY_PORT = 8081


@click.command("up")
@listener_options(9092, highest=65534, users="clients")
@click.option(
    "--dir",
    "directory",
    default="data",
    show_default=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="The data directory; formatted if it is empty.",
)
@click.option(
    "--brokers",
    default=1,
    show_default=True,
    type=click.IntRange(1, 100),
    help="Number of brokers, each a process on the next ports, with replicated topics.",
)
@click.option(
    "--metrics-port",
    type=click.IntRange(0, 65535),
    help="Serve Prometheus metrics on this port; further brokers on the next ports.  "
    "[default: no metrics]",
)
@click.option(
    "--registry-port",
    type=click.IntRange(0, 65535),
    help="Port of the schema registry; 0 for any free port.  [default: 8081, or any with --port 0]",
)
@click.option("--no-registry", is_flag=True, help="Do not run a schema registry.")
@override_option
def command(
    port: int,
    host: str,
    directory: Path,
    brokers: int,
    metrics_port: int | None,
    registry_port: int | None,
    no_registry: bool,
    overrides: dict[str, str],
) -> None:
    """Run one or more brokers on this machine until Ctrl-C."""
    from barnabas.cli.registry_process import RegistryPlan

    host = f"[{host}]" if ":" in host else host
    if registry_port is None:
        registry_port = DEFAULT_REGISTRY_PORT if port else 0
    registry_plan = None if no_registry else RegistryPlan.for_port(host, registry_port)
    if brokers == 1:
        _run_one(host, port, directory.absolute(), metrics_port, registry_plan, overrides)
    else:
        _run_several(
            host, port, directory.absolute(), brokers, metrics_port, registry_plan, overrides
        )


def _run_one(
    host: str,
    port: int,
    directory: Path,
    metrics_port: int | None,
    registry_plan: "RegistryPlan | None",
    overrides: dict[str, str],
) -> None:
    from barnabas.cli.foreground import run_node
    from barnabas.cli.local_cluster import node_files
    from barnabas.cli.operations.settings import check_settings
    from barnabas.cli.registry_process import RegistryProcess
    from barnabas.node.format import format_new_directories, single_node_properties

    if files := node_files(directory):
        raise click.ClickException(
            f"{directory} has a cluster of {len(files)}: use --brokers {len(files)}, or choose "
            "another --dir."
        )
    properties = single_node_properties(host, port, directory)
    if metrics_port is not None:
        properties["barnabas.metrics.listener"] = f"{host}:{metrics_port}"
    settings = check_settings(properties | overrides)
    format_new_directories(settings)
    run_node(
        settings,
        banner=lambda node: _banner(node, registry_plan),
        registry=None if registry_plan is None else RegistryProcess(registry_plan),
    )


def _run_several(
    host: str,
    port: int,
    directory: Path,
    brokers: int,
    metrics_port: int | None,
    registry_plan: "RegistryPlan | None",
    overrides: dict[str, str],
) -> None:
    from barnabas.cli.foreground import run_cluster
    from barnabas.cli.local_cluster import prepare_nodes
    from barnabas.cli.registry_process import RegistryProcess

    nodes = prepare_nodes(directory, host, port, brokers, metrics_port, overrides)
    run_cluster(
        nodes,
        banner=_cluster_banner(nodes, directory, registry_plan),
        registry=None if registry_plan is None else RegistryProcess(registry_plan),
    )


def _banner(node: "Node", registry_plan: "RegistryPlan | None") -> str:
    """Returns the addresses of the node, and commands to try."""
    lines = [
        f"Barnabas {__version__} serves Kafka clients on {node.address}. Press Ctrl-C to stop.",
        f"Data: {', '.join(node.settings.log_dirs)}",
    ]
    if node.metrics_address:
        lines.append(f"Metrics: http://{node.metrics_address}/metrics")
    if registry_plan is not None:
        lines.append(registry_plan.banner_line)
    return "\n".join(lines + _commands_to_try(node.address))


def _cluster_banner(
    nodes: "Sequence[LocalNode]", directory: Path, registry_plan: "RegistryPlan | None"
) -> str:
    """Returns the addresses of the nodes, and commands to try."""
    addresses = ",".join(node.address for node in nodes)
    controllers = [str(node.node_id) for node in nodes if node.settings.is_controller]
    lines = [
        f"Barnabas {__version__}: {len(nodes)} brokers serve Kafka clients. Press Ctrl-C to stop.",
        f"Bootstrap servers: {addresses}",
        f"Controllers: {', '.join(controllers)}",
        f"Data: {directory}",
    ]
    for node in nodes:
        if address := node.settings["barnabas.metrics.listener"]:
            lines.append(f"Metrics of {node.node_id}: http://{address}/metrics")
    if registry_plan is not None:
        lines.append(registry_plan.banner_line)
    lines += [
        "",
        "Leaders, lag and under-replicated partitions:",
        f"  barnabas cluster describe --bootstrap-server {nodes[0].address}",
        f"  barnabas quorum describe --bootstrap-server {nodes[0].address}",
    ]
    return "\n".join(lines + _commands_to_try(addresses))


def _commands_to_try(address: str) -> list[str]:
    return [
        "",
        "Try it with any Kafka client, for instance:",
        f"  echo world | barnabas produce hello -b {address}",
        f"  barnabas consume hello --from-beginning -b {address}",
        f"  kafka-console-producer.sh --bootstrap-server {address} --topic hello",
        f"  kafka-console-consumer.sh --bootstrap-server {address} --topic hello --from-beginning",
        "or in Python:",
        "  from barnabas import Consumer, Producer",
        f'  producer = Producer({{"bootstrap.servers": "{address}"}})',
        '  producer.produce("hello", "world")',
        "  producer.flush()",
        f'  consumer = Consumer({{"bootstrap.servers": "{address}", "group.id": "readers",'
        ' "auto.offset.reset": "earliest"})',
        '  consumer.subscribe(["hello"])',
        "  print(consumer.poll(10).value())",
        "",
    ]


@click.command("start")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@stop_with_stdin_option
@override_option
def start(file: Path, stop_with_stdin: bool, overrides: dict[str, str]) -> None:
    """Run a node from a server.properties FILE.

    Its log directories must be formatted: see `barnabas storage format`.
    """
    from barnabas.cli.foreground import run_node
    from barnabas.cli.operations.settings import load_settings

    run_node(load_settings(file, overrides), stop_with_stdin=stop_with_stdin)
