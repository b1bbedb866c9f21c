"""Warns when the quorum has had no leader for a while, with the likely reason."""

import logging

from barnabas.node.errors import FatalErrors
from barnabas.raft import Quorum

FIRST_WARNING_MS = 5_000
"""An election takes a fraction of a second: after this time something is wrong."""

WARNING_INTERVAL_MS = 60_000

log = logging.getLogger(__name__)


class QuorumLeaderMonitor:
    """Checked periodically. Stops a new node that reaches only controllers of another cluster."""

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
