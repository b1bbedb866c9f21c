"""The cluster: its brokers, partitions and log directories, and its metadata quorum with voters."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from barnabas.cli.operations.errors import CommandError
from barnabas.cli.operations.local_processes import process_on_port
from barnabas.cli.operations.settings import read_properties
from barnabas.cli.operations.topics import PartitionDetails, describe_topics, topic_names
from barnabas.client.admin import AioAdminClient
from barnabas.client.admin.cluster import MetadataQuorum, RaftVoterEndpoint, ReplicaState
from barnabas.client.admin.log_dirs import LogDirDescription
from barnabas.client.admin.model import Node, Uuid
from barnabas.client.errors import KafkaError, KafkaException
from barnabas.wire.uuid import ZERO, from_text, to_text

OFFLINE = "offline"
UNDER_MIN_ISR = "under min.insync.replicas"
UNDER_REPLICATED = "under-replicated"
PARTITION_PROBLEMS = (OFFLINE, UNDER_MIN_ISR, UNDER_REPLICATED)
"""Problems of a partition, the worst first."""

UNRESPONSIVE_MS = 5_000
"""A voter without a fetch for this long is unresponsive: voters fetch twice a second."""

QUORUM_TIMEOUT_S = 3.0
"""How long to wait for the active controller, which responds within milliseconds."""


@dataclass(slots=True, frozen=True)
class ClusterOverview:
    cluster_id: str | None
    brokers: list[Node]
    fenced: frozenset[int]
    partitions: list[PartitionDetails]
    quorum: "QuorumStatus | None"
    """None while no controller is active."""
    pids: dict[int, int]
    """The processes of the brokers that run on this machine, by broker id."""


async def describe_cluster(admin: AioAdminClient) -> ClusterOverview:
    """Describes the cluster. The quorum comes last: it times out without an active controller."""
    cluster = await admin.describe_cluster(include_fenced_brokers=True)
    topics = await describe_topics(admin, await topic_names(admin), with_reassignments=False)
    return ClusterOverview(
        cluster.cluster_id,
        sorted(cluster.nodes, key=lambda node: node.id),
        frozenset(cluster.fenced),
        [partition for topic in topics for partition in topic.partitions],
        await try_describe_quorum(admin),
        _local_pids(cluster.nodes),
    )


def _local_pids(brokers: Sequence[Node]) -> dict[int, int]:
    """Returns the processes that listen on the addresses of the brokers."""
    found = {broker.id: process_on_port(broker.host, broker.port) for broker in brokers}
    return {broker_id: process.pid for broker_id, process in found.items() if process is not None}


def problem_of(partition: PartitionDetails) -> str | None:
    in_sync, replicas = len(partition.state.isr), len(partition.state.replicas)
    if partition.is_offline:
        return OFFLINE
    if in_sync < min(partition.min_in_sync_replicas, replicas):
        return UNDER_MIN_ISR
    return UNDER_REPLICATED if in_sync < replicas else None


async def live_broker_ids(admin: AioAdminClient) -> list[int]:
    return sorted(node.id for node in (await admin.describe_cluster()).nodes)


async def describe_log_dirs(
    admin: AioAdminClient, brokers: Sequence[int]
) -> dict[int, dict[str, LogDirDescription]]:
    """Returns the log directories by broker and path."""
    return (await admin.describe_log_dirs(list(brokers))).all()


_NO_LEADER_ERRORS = (
    KafkaError._TIMED_OUT,
    KafkaError.REQUEST_TIMED_OUT,
    KafkaError.NOT_LEADER_OR_FOLLOWER,
    KafkaError.NOT_CONTROLLER,
    KafkaError._TRANSPORT,
)


@dataclass(slots=True, frozen=True)
class QuorumStatus:
    cluster_id: str | None
    metadata: MetadataQuorum

    @property
    def leader(self) -> ReplicaState | None:
        replicas = self.metadata.voters
        return next(
            (replica for replica in replicas if replica.replica_id == self.metadata.leader_id), None
        )

    @property
    def log_end_offset(self) -> int:
        """The log end offset of the leader, which is the highest."""
        replicas = [self.leader] if self.leader else self.metadata.voters
        return max(replica.log_end_offset for replica in replicas)

    @property
    def now_ms(self) -> int:
        """The time of the leader's clock: its own last fetch is the time of the response."""
        fetch_times = [voter.last_fetch_timestamp or 0 for voter in self.metadata.voters]
        leader = self.leader.last_fetch_timestamp if self.leader else None
        return leader or max(fetch_times, default=0) or round(time.time() * 1000)

    @property
    def slowest(self) -> ReplicaState:
        return min(self.metadata.voters, key=lambda voter: voter.log_end_offset)

    @property
    def unresponsive(self) -> list[int]:
        """The ids of voters that have stopped fetching."""
        return [
            voter.replica_id
            for voter in self.metadata.voters
            if self.now_ms - (voter.last_fetch_timestamp or 0) >= UNRESPONSIVE_MS
        ]


@dataclass(slots=True, frozen=True)
class ControllerVoter:
    """A controller to be added as a voter, from its server.properties."""

    node_id: int
    directory_id: str
    endpoints: tuple[RaftVoterEndpoint, ...]


async def describe_quorum(admin: AioAdminClient) -> QuorumStatus:
    cluster = await admin.describe_cluster()
    return QuorumStatus(cluster.cluster_id, await admin.describe_metadata_quorum())


async def try_describe_quorum(admin: AioAdminClient) -> QuorumStatus | None:
    """Returns None while no controller is active."""
    cluster = await admin.describe_cluster()
    try:
        metadata = await admin.describe_metadata_quorum(request_timeout=QUORUM_TIMEOUT_S)
    except KafkaException as failure:
        if failure.args[0].code() not in _NO_LEADER_ERRORS:
            raise
        return None
    return QuorumStatus(cluster.cluster_id, metadata)


async def add_controller(admin: AioAdminClient, controller: ControllerVoter) -> None:
    directory = Uuid.from_bytes(from_text(controller.directory_id))
    await admin.add_raft_voter(controller.node_id, directory, controller.endpoints)


async def remove_controller(admin: AioAdminClient, node_id: int, directory_id: str) -> None:
    try:
        directory = Uuid.from_bytes(from_text(directory_id))
    except ValueError:
        raise CommandError(
            f"{directory_id!r} is not a directory id: see meta.properties there"
        ) from None
    await admin.remove_raft_voter(node_id, directory)


def read_controller(file: str | Path) -> ControllerVoter:
    from barnabas.cli.operations.settings import load_settings
    from barnabas.log import NotFormatted
    from barnabas.log.directory.directory_files import read_meta_properties

    if "controller" not in read_properties(file).get("process.roles", ""):
        raise CommandError(
            "process.roles did not contain 'controller' in configuration file. Is this a valid "
            "controller configuration file?"
        )
    settings = load_settings(Path(file), {})
    directory = settings.metadata_log_dir
    try:
        directory_id = read_meta_properties(directory).directory_id
    except (OSError, ValueError, NotFormatted):
        raise CommandError(f"Unable to read meta.properties from {directory}") from None
    names = settings["controller.listener.names"]
    listeners = {listener.name: listener for listener in settings.advertised_listeners}
    listeners = {listener.name: listener for listener in settings["listeners"]} | listeners
    return ControllerVoter(
        settings.node_id,
        to_text(directory_id) if isinstance(directory_id, bytes) else str(directory_id),
        tuple(
            RaftVoterEndpoint(name, listeners[name].host or "localhost", listeners[name].port)
            for name in names
            if name in listeners
        ),
    )


def format_directory_id(replica: ReplicaState) -> str | None:
    """Returns the directory id of the replica, or None if it is unknown."""
    directory_id = bytes(replica.replica_directory_id)
    return to_text(directory_id) if directory_id != ZERO else None


def format_endpoints(endpoints: Sequence[RaftVoterEndpoint]) -> list[str]:
    return [
        f"{endpoint.listener}://{format_address(endpoint.host, endpoint.port)}"
        for endpoint in endpoints
    ]


def format_address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
