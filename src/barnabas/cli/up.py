"""`barnabas up`: a broker and its controller in one process, on a new or an earlier directory."""

from pathlib import Path

import click

from barnabas.cli.run import run_node
from barnabas.cli.settings import check_settings, override
from barnabas.config import BrokerSettings


@click.command("up")
@click.option("--port", default=9092, show_default=True, help="The port clients connect to.")
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
    type=int,
    help="Serve Prometheus metrics on this port.  [default: no metrics]",
)
@override
def command(
    port: int, host: str, directory: Path, metrics_port: int | None, overrides: dict[str, str]
) -> None:
    """Start a broker on this machine."""
    properties = single_node_properties(host, port, directory.absolute())
    if metrics_port is not None:
        properties["barnabas.metrics.listener"] = f"{host}:{metrics_port}"
    settings = check_settings(properties | overrides)
    _format_if_empty(settings)
    run_node(settings, banner=True)


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


def _format_if_empty(settings: BrokerSettings) -> None:
    from barnabas.node.format import format_storage, is_formatted
    from barnabas.wire.uuid import random_uuid, to_text

    if not is_formatted(settings):
        format_storage(settings, cluster_id=to_text(random_uuid()))
