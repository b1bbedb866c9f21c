"""`barnabas up`: a broker and its controller in one process, on a new or an earlier directory."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from barnabas import __version__
from barnabas.cli.settings import check_settings, override

if TYPE_CHECKING:
    from barnabas.node import Node


@click.command("up")
@click.option(
    "--port",
    default=9092,
    show_default=True,
    type=click.IntRange(0, 65534),
    help="The port clients connect to; 0 for any that is free.",
)
@click.option(
    "--host",
    default="localhost",
    show_default=True,
    help="The name or address to listen on and to give to clients.",
)
@click.option(
    "--dir",
    "directory",
    default="data",
    show_default=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="Where the data lives; formatted when it is empty.",
)
@click.option(
    "--metrics-port",
    type=click.IntRange(0, 65535),
    help="Serve Prometheus metrics on this port.  [default: no metrics]",
)
@override
def command(
    port: int, host: str, directory: Path, metrics_port: int | None, overrides: dict[str, str]
) -> None:
    """Start a broker on this machine, and stop it with Ctrl-C."""
    from barnabas.cli.errors import one_line_errors
    from barnabas.cli.run import run_node
    from barnabas.node.format import format_new_directories

    host = f"[{host}]" if ":" in host else host
    properties = single_node_properties(host, port, directory.absolute())
    if metrics_port is not None:
        properties["barnabas.metrics.listener"] = f"{host}:{metrics_port}"
    settings = check_settings(properties | overrides)
    with one_line_errors():
        format_new_directories(settings)
    run_node(settings, greeting=_banner)


def single_node_properties(host: str, port: int, directory: Path) -> dict[str, str]:
    """server.properties of a node that is alone: its own controller, one copy of everything."""
    return {
        "process.roles": "broker,controller",
        "node.id": "1",
        "listeners": f"PLAINTEXT://{host}:{port},CONTROLLER://{host}:{port + 1}",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.bootstrap.servers": f"{host}:{port + 1}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "log.dirs": str(directory),
        "offsets.topic.replication.factor": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "share.coordinator.state.topic.replication.factor": "1",
        "share.coordinator.state.topic.min.isr": "1",
        "group.initial.rebalance.delay.ms": "0",
    }


def _banner(node: "Node") -> str:
    """Where it listens, and something to try."""
    address = node.address
    lines = [
        f"Barnabas {__version__} serves Kafka clients on {address}. Stop it with Ctrl-C.",
        f"Data: {', '.join(node.settings.log_dirs)}",
    ]
    if node.metrics_address:
        lines.append(f"Metrics: http://{node.metrics_address}/metrics")
    lines += [
        "",
        "Try it with any Kafka client, for instance:",
        f"  echo world | kcat -b {address} -t hello -P",
        f"  kcat -b {address} -t hello -C -o beginning -e",
        f"  kafka-console-producer.sh --bootstrap-server {address} --topic hello",
        f"  kafka-console-consumer.sh --bootstrap-server {address} --topic hello --from-beginning",
        "or in Python, after pip install confluent-kafka:",
        "  from confluent_kafka import Consumer, Producer",
        f'  producer = Producer({{"bootstrap.servers": "{address}"}})',
        '  producer.produce("hello", "world")',
        "  producer.flush()",
        f'  consumer = Consumer({{"bootstrap.servers": "{address}", "group.id": "readers",'
        ' "auto.offset.reset": "earliest"})',
        '  consumer.subscribe(["hello"])',
        "  print(consumer.poll(10).value())",
        "",
    ]
    return "\n".join(lines)
