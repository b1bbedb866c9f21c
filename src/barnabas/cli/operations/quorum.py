"""The quorum of controllers: how it stands, and changing who votes."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from barnabas.cli.operations.errors import Refused
from barnabas.cli.operations.settings import read_properties
from barnabas.client.admin import AioAdminClient
from barnabas.client.admin.model import Uuid
from barnabas.client.admin.quorum import MetadataQuorum, RaftVoterEndpoint, ReplicaState
from barnabas.client.errors import KafkaError, KafkaException
from barnabas.wire.uuid import ZERO, from_text, to_text

SILENT_MS = 5_000
"""Whoever has not fetched for so long is named: all do, twice a second at least."""

QUORUM_TIMEOUT_S = 3.0
"""How long the active controller may take: it answers within milliseconds, if there is one."""

_WITHOUT_A_LEADER = (
    KafkaError._TIMED_OUT,
    KafkaError.REQUEST_TIMED_OUT,
    KafkaError.NOT_LEADER_OR_FOLLOWER,
    KafkaError.NOT_CONTROLLER,
    KafkaError._TRANSPORT,
)


@dataclass(slots=True, frozen=True)
class Quorum:
    cluster_id: str | None
    told: MetadataQuorum

    @property
    def leader(self) -> ReplicaState | None:
        replicas = self.told.voters
        return next((each for each in replicas if each.replica_id == self.told.leader_id), None)

    @property
    def end_offset(self) -> int:
        """Of the leader's log, which is the longest."""
        replicas = [self.leader] if self.leader else self.told.voters
        return max(each.log_end_offset for each in replicas)

    @property
    def now_ms(self) -> int:
        """By the leader's clock: it "fetched" at the moment it was asked."""
        told = [each.last_fetch_timestamp or 0 for each in self.told.voters]
        leader = self.leader.last_fetch_timestamp if self.leader else None
        return leader or max(told, default=0) or round(time.time() * 1000)

    @property
    def slowest(self) -> ReplicaState:
        return min(self.told.voters, key=lambda voter: voter.log_end_offset)

    @property
    def silent(self) -> list[int]:
        """The voters that do not fetch any more."""
        return [
            voter.replica_id
            for voter in self.told.voters
            if self.now_ms - (voter.last_fetch_timestamp or 0) >= SILENT_MS
        ]


@dataclass(slots=True, frozen=True)
class Controller:
    """A controller that is to vote, by its own server.properties."""

    node_id: int
    directory_id: str
    endpoints: tuple[RaftVoterEndpoint, ...]


async def describe_quorum(admin: AioAdminClient) -> Quorum:
    cluster = await admin.describe_cluster()
    return Quorum(cluster.cluster_id, await admin.describe_metadata_quorum())


async def try_describe_quorum(admin: AioAdminClient) -> Quorum | None:
    """None while no controller is active: a broker cannot tell more than that."""
    cluster = await admin.describe_cluster()
    try:
        told = await admin.describe_metadata_quorum(request_timeout=QUORUM_TIMEOUT_S)
    except KafkaException as failure:
        if failure.args[0].code() not in _WITHOUT_A_LEADER:
            raise
        return None
    return Quorum(cluster.cluster_id, told)


async def add_controller(admin: AioAdminClient, controller: Controller) -> None:
    directory = Uuid.from_bytes(from_text(controller.directory_id))
    await admin.add_raft_voter(controller.node_id, directory, controller.endpoints)


async def remove_controller(admin: AioAdminClient, node_id: int, directory_id: str) -> None:
    try:
        directory = Uuid.from_bytes(from_text(directory_id))
    except ValueError:
        raise Refused(
            f"{directory_id!r} is no id of a directory: see meta.properties there"
        ) from None
    await admin.remove_raft_voter(node_id, directory)


def read_controller(file: str | Path) -> Controller:
    from barnabas.cli.operations.settings import load_settings
    from barnabas.log import NotFormatted
    from barnabas.log.directory import meta_properties

    if "controller" not in read_properties(file).get("process.roles", ""):
        raise Refused(
            "process.roles did not contain 'controller' in configuration file. Is this a valid "
            "controller configuration file?"
        )
    settings = load_settings(Path(file), {})
    directory = settings.metadata_log_dir
    try:
        directory_id = meta_properties.read(directory).directory_id
    except (OSError, ValueError, NotFormatted):
        raise Refused(f"Unable to read meta.properties from {directory}") from None
    names = settings["controller.listener.names"]
    listeners = {each.name: each for each in settings.advertised_listeners}
    listeners = {each.name: each for each in settings["listeners"]} | listeners
    return Controller(
        settings.node_id,
        to_text(directory_id) if isinstance(directory_id, bytes) else str(directory_id),
        tuple(
            RaftVoterEndpoint(name, listeners[name].host or "localhost", listeners[name].port)
            for name in names
            if name in listeners
        ),
    )


def directory_text(replica: ReplicaState) -> str | None:
    """The id of the directory that has its log; None where nobody says."""
    directory_id = bytes(replica.replica_directory_id)
    return to_text(directory_id) if directory_id != ZERO else None


def endpoint_texts(endpoints: Sequence[RaftVoterEndpoint]) -> list[str]:
    return [
        f"{each.listener}://{f'[{each.host}]' if ':' in each.host else each.host}:{each.port}"
        for each in endpoints
    ]
