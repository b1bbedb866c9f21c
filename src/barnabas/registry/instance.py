"""One instance of the registry: its state, its log and its membership in the group of instances."""

import asyncio
import contextlib
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from barnabas.client.cluster import ClusterClient, CoordinatorType, Deadline
from barnabas.client.group_membership import group_error_code
from barnabas.client.settings import admin_settings
from barnabas.registry import errors
from barnabas.registry.commands import RegistryDecision
from barnabas.registry.election import ElectionOutcome, InstanceIdentity
from barnabas.registry.membership import RegistryMembership
from barnabas.registry.schema_log import SchemaLog
from barnabas.registry.settings import RegistrySettings
from barnabas.registry.state import RegistryState
from barnabas.wire.schema import Message

if TYPE_CHECKING:
    from barnabas.net.http_tls import HttpTls

Request = TypeVar("Request")
Response = TypeVar("Response")
_log = logging.getLogger(__name__)


class RegistryInstance:
    """Runs on one event loop. Request handlers read `state` and change it by `write`."""

    def __init__(
        self,
        settings: RegistrySettings,
        identity: InstanceIdentity,
        tls: "HttpTls | None" = None,
    ) -> None:
        self.settings = settings
        self.tls = tls
        """Of this instance and of its requests to others; None for plain HTTP."""
        self.kafka_cluster_id = ""
        self._cluster = ClusterClient(admin_settings(settings.kafka_client_config))
        self._log = SchemaLog(settings, self._cluster)
        self._membership = RegistryMembership(
            settings.group_id,
            identity,
            self._send_to_coordinator,
            self._on_election,
            session_timeout_ms=settings.session_timeout_ms,
        )
        self._tasks: list[asyncio.Task[None]] = []
        self._write_lock = asyncio.Lock()
        self._leader: InstanceIdentity | None = None  # None: the leader is unknown
        self._is_leader = False
        self._leader_known = asyncio.Event()
        self._lost_leaders: set[str] = set()  # URLs that have not been reached since

    async def start(self) -> None:
        """Returns when the log has been read to its end. Writes wait until a leader is elected."""
        await self._log.start()
        described = await self._cluster.describe([], timeout_ms=self.settings.start_timeout_ms)
        self.kafka_cluster_id = described.cluster_id or ""
        self._tasks.append(asyncio.create_task(self._membership.run()))

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._membership.leave()
        await self._log.stop()
        await self._cluster.close()

    @property
    def state(self) -> RegistryState:
        return self._log.state

    @property
    def applied_offset(self) -> int:
        return self._log.applied_offset

    async def wait_until_applied(self, offset: int) -> None:
        """Waits until a record of another instance is applied, no longer than a write may take."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(
                self._log.wait_until_applied(offset), self.settings.timeout_ms / 1000
            )

    @property
    def other_leader_url(self) -> str | None:
        """The URL of the leader if it is known and another instance."""
        if self._leader is None or self._is_leader or not self._leader_known.is_set():
            return None
        return self._leader.url

    async def find_leader_url(self) -> str | None:
        """Returns the leader's URL, or None if it is this instance. Waits for an election."""
        try:
            await asyncio.wait_for(self._leader_known.wait(), self.settings.timeout_ms / 1000)
        except TimeoutError:
            raise errors.no_leader(
                f"No instance of group {self.settings.group_id} is known to write; is there a "
                f"broker at {self.settings.bootstrap_servers}?"
            ) from None
        return self.other_leader_url

    async def on_leader_lost(self, url: str) -> None:
        """Removes a leader at whose URL no process listens, and waits for the next election.

        This happens once until the leader is reached. A leader that is elected again is alive, but
        this instance cannot reach it.
        """
        if url in self._lost_leaders or self._leader is None or self._leader.url != url:
            return
        self._lost_leaders.add(url)
        self._leader_known.clear()
        await self._membership.remove_leader()

    def on_leader_reachable(self, url: str) -> None:
        self._lost_leaders.discard(url)

    async def write(
        self,
        decide: Callable[[Request, RegistryState], RegistryDecision[Response]],
        request: Request,
    ) -> Response:
        """Decides on the state of all earlier writes. Returns when the records are applied."""
        async with self._write_lock:
            self._log.require_topic()
            try:
                if not self._log.is_leader:
                    await self._log.become_leader()
                # On a thread: comparing large schemas must not delay other requests.
                decision = await asyncio.to_thread(decide, request, self.state)
                if decision.records:
                    await self._log.append(decision.records)
                return decision.response
            finally:
                if not self._log.is_leader:  # the broker rejected the write or was unreachable
                    self._leader_known.clear()
                    self._membership.request_election()

    async def _on_election(self, outcome: ElectionOutcome | None, member_id: str) -> None:
        was_leader, self._is_leader = self._is_leader, False
        if outcome is None or outcome.identity is None:
            self._leader_known.clear()
            self._leader = None
        else:
            self._leader = outcome.identity
            self._is_leader = outcome.member_id == member_id
            self._leader_known.set()
        if was_leader and not self._is_leader:
            leader = "unknown" if self._leader is None else self._leader.url
            _log.info("no longer the leader of %s; the leader is %s", self.settings.topic, leader)
            self._log.resign()
        elif self._is_leader and not was_leader:
            _log.info("this instance is the leader of %s", self.settings.topic)

    async def _send_to_coordinator(self, request: Message, timeout_ms: int) -> Any:
        return await self._cluster.send_to_coordinator(
            CoordinatorType.GROUP,
            self.settings.group_id,
            request,
            group_error_code,
            deadline=Deadline.after(timeout_ms),
        )
