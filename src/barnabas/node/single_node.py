"""The settings of a single-node cluster."""

from pathlib import Path


def single_node_properties(host: str, port: int, directory: Path) -> dict[str, str]:
    """Returns the properties of a node that is broker and only controller, with one replica."""
    controller_port = port + 1 if port else 0
    return {
        "process.roles": "broker,controller",
        "node.id": "1",
        "listeners": f"PLAINTEXT://{host}:{port},CONTROLLER://{host}:{controller_port}",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.bootstrap.servers": f"{host}:{controller_port}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "log.dirs": str(directory),
        "offsets.topic.replication.factor": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "share.coordinator.state.topic.replication.factor": "1",
        "share.coordinator.state.topic.min.isr": "1",
        "group.initial.rebalance.delay.ms": "0",
    }
