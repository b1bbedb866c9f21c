"""Opens this node's replica of the metadata log, and warns while the quorum has no leader."""

import logging
from collections.abc import Sequence

from barnabas.config import BrokerSettings, Listener
from barnabas.config.addresses import parse_endpoint
from barnabas.log import LogDirectory
from barnabas.node.environment import DiskThreads, Environment
from barnabas.node.errors import FatalErrors
from barnabas.node.format import own_voter
from barnabas.raft import Quorum, QuorumConfig, VoterEndpoint, VoterNode, VoterSet
from barnabas.wire.peer import Peers
from barnabas.wire.uuid import ZERO

FIRST_WARNING_MS = 5_000
"""An election takes a fraction of a second: after this time something is wrong."""

WARNING_INTERVAL_MS = 60_000

log = logging.getLogger(__name__)


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
    return Quorum(
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
        VoterNode(
            voter.node_id, ZERO, (VoterEndpoint(name, voter.endpoint.host, voter.endpoint.port),)
        )
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


class QuorumLeaderMonitor:
    """Warns when there has been no leader for a while, with the likely reason.

    Checked periodically. Stops a new node that reaches only controllers of another cluster.
    """

    def __init__(self, quorum: Quorum, cluster_id: str, fatal: FatalErrors) -> None:
        self._quorum = quorum
        self._cluster_id = cluster_id
        self._fatal = fatal
        self._had_leader = False
        self._leaderless_since_ms: int | None = None
        self._next_warning_ms = 0

    def check(self, now_ms: int) -> None:
        if self._quorum.is_leader_reachable:
            self._had_leader = True
            self._leaderless_since_ms = None
            return
        if self._leaderless_since_ms is None:
            self._leaderless_since_ms = now_ms
            self._next_warning_ms = now_ms + FIRST_WARNING_MS
        if now_ms >= self._next_warning_ms:
            self._next_warning_ms = now_ms + WARNING_INTERVAL_MS
            self._warn((now_ms - self._leaderless_since_ms) // 1000)

    def _warn(self, leaderless_s: int) -> None:
        contacts = self._quorum.peer_failures
        if contacts.are_of_another_cluster and not self._had_leader:
            self._fatal.report(
                f"This node belongs to cluster {self._cluster_id}, and "
                f"{', '.join(f'{host}:{port}' for host, port in contacts.by_address)} to another "
                "one: correct controller.quorum.bootstrap.servers or controller.quorum.voters, or "
                "format this node with the id of that cluster."
            )
            return
        voters = ", ".join(map(str, self._quorum.voters.ids()))
        log.warning(
            "no active controller for %d s: %s. %s",
            leaderless_s,
            f"a majority of the voters {voters} must run and reach each other"
            if voters
            else "controller.quorum.bootstrap.servers must name a running controller",
            "; ".join(f"{host}:{port}: {why}" for (host, port), why in contacts.by_address.items())
            or "No controller could be reached",
        )
