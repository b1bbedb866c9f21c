"""Opens this node's replica of the metadata log, by its settings."""

from collections.abc import Sequence

from barnabas.config import BrokerSettings, Listener
from barnabas.config.addresses import parse_endpoint
from barnabas.log import LogDirectory
from barnabas.node.disk_threads import DiskThreads
from barnabas.node.environment import Environment
from barnabas.node.format import own_voter
from barnabas.raft import VoterEndpoint, Quorum, QuorumConfig, VoterNode, VoterSet
from barnabas.wire.peer import Peers
from barnabas.wire.uuid import ZERO


def open_quorum(
    settings: BrokerSettings,
    directory: LogDirectory,
    listeners: Sequence[Listener],
    *,
    peers: Peers,
    background: DiskThreads,
    environment: Environment,
) -> Quorum:
    """Opens the quorum. `listeners` are the controller's; an observer has none."""
    return Quorum.open(
        directory,
        own_voter(settings.node_id, listeners, directory.directory_id),
        static_voters=_static_voters(settings),
        bootstrap=[
            parse_endpoint(server) for server in settings["controller.quorum.bootstrap.servers"]
        ],
        config=_config(settings),
        is_controller=settings.is_controller,
        peers=peers,
        background=background,
        clock=environment.clock,
        random=environment.random,
    )


def _static_voters(settings: BrokerSettings) -> VoterSet | None:
    """Returns the voters of controller.quorum.voters, which have no directory ids."""
    if not settings.voters:
        return None
    name = settings["controller.listener.names"][0]
    return VoterSet(
        VoterNode(voter.node_id, ZERO, (VoterEndpoint(name, voter.endpoint.host, voter.endpoint.port),))
        for voter in settings.voters
    )


def _config(settings: BrokerSettings) -> QuorumConfig:
    return QuorumConfig(
        segment_bytes=settings["metadata.log.segment.bytes"],
        segment_ms=settings["metadata.log.segment.ms"],
        retention_bytes=settings["metadata.max.retention.bytes"],
        retention_ms=settings["metadata.max.retention.ms"],
        election_timeout_ms=settings["controller.quorum.election.timeout.ms"],
        election_backoff_max_ms=settings["controller.quorum.election.backoff.max.ms"],
        fetch_timeout_ms=settings["controller.quorum.fetch.timeout.ms"],
        fetch_max_bytes=settings["controller.quorum.fetch.max.bytes"],
        fetch_snapshot_max_bytes=settings["controller.quorum.fetch.snapshot.max.bytes"],
        request_timeout_ms=settings["controller.quorum.request.timeout.ms"],
        retry_backoff_ms=settings["controller.quorum.retry.backoff.ms"],
        auto_join=settings["controller.quorum.auto.join.enable"],
        listener_name=settings["controller.listener.names"][0],
    )
