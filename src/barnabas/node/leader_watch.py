"""Says so when the quorum has had no leader for a while, and what keeps it from having one."""

import logging

from barnabas.node.errors import Fatal
from barnabas.raft import Quorum

PATIENCE_MS = 5_000
"""An election takes a fraction of a second: a quorum without a leader for so long has none soon."""

AGAIN_MS = 60_000

log = logging.getLogger(__name__)


class LeaderWatch:
    """Looks now and then. A new node that meets only another cluster's controllers is stopped."""

    def __init__(self, quorum: Quorum, cluster_id: str, fatal: Fatal) -> None:
        self._quorum = quorum
        self._cluster_id = cluster_id
        self._fatal = fatal
        self._was_led = False
        self._silent_since_ms: int | None = None
        self._next_ms = 0

    def look(self, now_ms: int) -> None:
        if self._quorum.hears_leader:
            self._was_led = True
            self._silent_since_ms = None
            return
        if self._silent_since_ms is None:
            self._silent_since_ms = now_ms
            self._next_ms = now_ms + PATIENCE_MS
        if now_ms >= self._next_ms:
            self._next_ms = now_ms + AGAIN_MS
            self._tell((now_ms - self._silent_since_ms) // 1000)

    def _tell(self, silent_s: int) -> None:
        contacts = self._quorum.contacts
        if contacts.are_strangers and not self._was_led:
            self._fatal.declare(
                f"This node belongs to cluster {self._cluster_id}, and "
                f"{', '.join(f'{host}:{port}' for host, port in contacts.failures)} to another "
                "one: correct controller.quorum.bootstrap.servers or controller.quorum.voters, or "
                "format this node with the id of that cluster."
            )
            return
        voters = ", ".join(map(str, self._quorum.voters.ids()))
        log.warning(
            "no active controller for %d s: %s. %s",
            silent_s,
            f"a majority of the voters {voters} must run and reach each other"
            if voters
            else "controller.quorum.bootstrap.servers must lead to a controller that runs",
            "; ".join(f"{host}:{port}: {why}" for (host, port), why in contacts.failures.items())
            or "Nobody could be asked",
        )
