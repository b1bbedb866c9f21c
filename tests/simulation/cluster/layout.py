"""The nodes of a cluster and their settings, drawn from the seed."""

from dataclasses import dataclass
from pathlib import Path
from random import Random

from barnabas.config import BrokerSettings
from barnabas.node.format import QuorumBootstrap, format_storage
from barnabas.raft import VoterEndpoint, VoterNode, VoterSet
from barnabas.wire.uuid import random_uuid, to_text

CLIENTS_PORT, CONTROLLERS_PORT = 9092, 9093

COMPACTED_TOPIC = "compacted"
INTERNAL_TOPICS = ("__transaction_state",)

TIMES = {
    "controller.quorum.election.timeout.ms": 300,
    "controller.quorum.election.backoff.max.ms": 200,
    "controller.quorum.fetch.timeout.ms": 900,
    "controller.quorum.request.timeout.ms": 900,
    "broker.heartbeat.interval.ms": 300,
    "broker.session.timeout.ms": 1_500,
    "replica.lag.time.max.ms": 1_200,
    "replica.fetch.wait.max.ms": 500,
    "replica.fetch.backoff.ms": 100,
    "replica.socket.timeout.ms": 900,
    "replica.high.watermark.checkpoint.interval.ms": 600,
    "metadata.max.idle.interval.ms": 1_000,
    "leader.imbalance.check.interval.seconds": 4,
}
"""Short timeouts, so that much happens in little time."""

STORAGE = {
    "log.cleaner.backoff.ms": 100,
    "log.cleaner.io.buffer.size": 32_768,
    "transaction.state.log.num.partitions": 1,
    "transaction.state.log.min.isr": 2,
}


@dataclass(slots=True, frozen=True)
class Layout:
    """The nodes by id, with their roles."""

    roles: dict[int, str]
    static_voters: bool
    settings: dict[str, str]

    @property
    def controllers(self) -> list[int]:
        return [node_id for node_id, roles in self.roles.items() if "controller" in roles]

    @property
    def brokers(self) -> list[int]:
        return [node_id for node_id, roles in self.roles.items() if "broker" in roles]

    def __str__(self) -> str:
        voters = "static" if self.static_voters else "dynamic"
        nodes = ", ".join(f"{node_id}: {roles}" for node_id, roles in self.roles.items())
        return f"{nodes}; {voters} voters"


def draw_layout(random: Random) -> Layout:
    both = "broker,controller"
    kind = random.random()
    if kind < 0.6:
        roles = dict.fromkeys((1, 2, 3), both)
    elif kind < 0.8:
        roles = {**dict.fromkeys((1, 2, 3), both), 4: "broker"}
    else:
        roles = {**dict.fromkeys((1, 2, 3), "broker"), **dict.fromkeys((11, 12, 13), "controller")}
    settings = {name: str(value) for name, value in (TIMES | STORAGE).items()}
    settings["metadata.log.max.record.bytes.between.snapshots"] = random.choice(
        ("2500", "8000", "20971520")
    )
    # So little that a node that was down fetches a snapshot.
    settings["metadata.max.retention.bytes"] = random.choice(("3000", "104857600"))
    settings["num.replica.fetchers"] = random.choice(("1", "1", "2"))
    return Layout(roles, random.random() < 0.3, settings)


def prepare(layout: Layout, folder: Path) -> list[BrokerSettings]:
    """Formats the directories of all nodes. Returns their settings."""
    cluster_id = to_text(random_uuid())
    voters = VoterSet(
        VoterNode(node_id, random_uuid(), (_voter_endpoint(node_id),))
        for node_id in layout.controllers
    )
    prepared = []
    for node_id, roles in layout.roles.items():
        settings = BrokerSettings.from_properties(_properties(layout, node_id, roles, folder))
        quorum: QuorumBootstrap | VoterSet = QuorumBootstrap.FROM_SETTINGS
        if not layout.static_voters:
            quorum = voters if "controller" in roles else QuorumBootstrap.JOIN
        format_storage(settings, cluster_id=cluster_id, quorum=quorum)
        prepared.append(settings)
    return prepared


def _voter_endpoint(node_id: int) -> VoterEndpoint:
    return VoterEndpoint("CONTROLLER", host(node_id), CONTROLLERS_PORT)


def host(node_id: int) -> str:
    return f"node-{node_id}"


def _properties(layout: Layout, node_id: int, roles: str, folder: Path) -> dict[str, str]:
    addresses = [f"{host(controller)}:{CONTROLLERS_PORT}" for controller in layout.controllers]
    listeners = []
    if "broker" in roles:
        listeners.append(f"PLAINTEXT://{host(node_id)}:{CLIENTS_PORT}")
    if "controller" in roles:
        listeners.append(f"CONTROLLER://{host(node_id)}:{CONTROLLERS_PORT}")
    if layout.static_voters:
        voters = zip(layout.controllers, addresses, strict=True)
        quorum = {
            "controller.quorum.voters": ",".join(f"{voter}@{address}" for voter, address in voters)
        }
    else:
        quorum = {"controller.quorum.bootstrap.servers": ",".join(addresses)}
    return {
        "node.id": str(node_id),
        "process.roles": roles,
        "listeners": ",".join(listeners),
        "controller.listener.names": "CONTROLLER",
        "log.dirs": str(folder / host(node_id)),
        "min.insync.replicas": "2",
        "default.replication.factor": "3",
        "num.recovery.threads.per.data.dir": "1",  # or the threads would not be simulated
        **layout.settings,
        **quorum,
    }
