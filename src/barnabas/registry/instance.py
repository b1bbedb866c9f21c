"""One instance of the registry: what it knows, where it writes, and who may."""

import asyncio
import contextlib
import logging
from collections.abc import Callable
from typing import Any, TypeVar

from barnabas.client.cluster import Cluster, CoordinatorType, Deadline
from barnabas.client.settings import admin_settings
from barnabas.registry import errors
from barnabas.registry.commands import RegistryDecision
from barnabas.registry.election import ElectionOutcome, InstanceIdentity
from barnabas.registry.membership import GroupMembership
from barnabas.registry.schema_log import SchemaLog
from barnabas.registry.settings import RegistrySettings
from barnabas.registry.state import RegistryState
from barnabas.wire.messages.describe_groups import DescribeGroupsResponse
from barnabas.wire.schema import Message

Request = TypeVar("Request")
Response = TypeVar("Response")
_log = logging.getLogger(__name__)


class RegistryInstance:
    """Lives on one loop. Whoever answers requests reads `state`; `write` is how it changes."""

    def __init__(self, settings: RegistrySettings, identity: InstanceIdentity) -> None:
        self.settings = settings
        self.kafka_cluster_id = ""
        self._cluster = Cluster(admin_settings(settings.kafka_client_config))
        self._log = SchemaLog(settings, self._cluster)
        self._membership = GroupMembership(
            settings.group_id,
            identity,
            self._ask_coordinator,
            self._hear,
            session_timeout_ms=settings.session_timeout_ms,
        )
        self._tasks: list[asyncio.Task[None]] = []
        self._writing = asyncio.Lock()
        self._writer: InstanceIdentity | None = None  # None: it is not known who writes
        self._is_writer = False
        self._elected = asyncio.Event()
        self._buried: set[str] = set()  # writers that nobody has met since

    async def start(self) -> None:
        """Return when all that is written is read. Who writes shows later; writes wait for it."""
        await self._log.start()
        told = await self._cluster.describe([], timeout_ms=self.settings.start_timeout_ms)
        self.kafka_cluster_id = told.cluster_id or ""
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
        """Wait for what another instance wrote; no longer than a write may take."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(
                self._log.wait_until_applied(offset), self.settings.timeout_ms / 1000
            )

    @property
    def other_leader_url(self) -> str | None:
        """The URL of who writes, if that is known and another instance."""
        if self._writer is None or self._is_writer or not self._elected.is_set():
            return None
        return self._writer.url

    async def find_leader_url(self) -> str | None:
        """The URL of who writes; None if it is this instance. Waits for an election."""
        try:
            await asyncio.wait_for(self._elected.wait(), self.settings.timeout_ms / 1000)
        except TimeoutError:
            raise errors.no_leader(
                f"No instance of group {self.settings.group_id} is known to write; is there a "
                f"broker at {self.settings.bootstrap_servers}?"
            ) from None
        return self.other_leader_url

    async def on_leader_lost(self, writer: str) -> None:
        """Nobody listens at the writer's URL: have another one elected, who is then waited for.

        Once, until it is met: one that is elected again is there, but not to be reached from here.
        """
        if writer in self._buried or self._writer is None or self._writer.url != writer:
            return
        self._buried.add(writer)
        self._elected.clear()
        await self._membership.remove_leader()

    def on_leader_reachable(self, writer: str) -> None:
        self._buried.discard(writer)

    async def write(
        self,
        decide: Callable[[Request, RegistryState], RegistryDecision[Response]],
        request: Request,
    ) -> Response:
        """Decide with all that was written before in view, and answer when it is written too."""
        async with self._writing:
            self._log.require_topic()
            try:
                if not self._log.is_leader:
                    await self._log.become_leader()
                # Comparing large schemas takes its time, and others want theirs.
                decision = await asyncio.to_thread(decide, request, self.state)
                if decision.records:
                    await self._log.append(decision.records)
                return decision.response
            finally:
                if not self._log.is_leader:  # the broker refused, or was not to be reached
                    self._elected.clear()
                    self._membership.request_election()

    async def _hear(self, outcome: ElectionOutcome | None, member_id: str) -> None:
        was_writer, self._is_writer = self._is_writer, False
        if outcome is None or outcome.identity is None:
            self._elected.clear()
            self._writer = None
        else:
            self._writer = outcome.identity
            self._is_writer = outcome.member_id == member_id
            self._elected.set()
        if was_writer and not self._is_writer:
            instead = "nobody is known to" if self._writer is None else f"{self._writer.url} does"
            _log.info("this instance writes %s no more: %s", self.settings.topic, instead)
            self._log.resign()
        elif self._is_writer and not was_writer:
            _log.info("this instance writes %s", self.settings.topic)

    async def _ask_coordinator(self, request: Message, timeout_ms: int) -> Any:
        return await self._cluster.send_to_coordinator(
            CoordinatorType.GROUP,
            self.settings.group_id,
            request,
            _error_code,
            deadline=Deadline.after(timeout_ms),
        )


def _error_code(response: Any) -> int:
    told = response.groups[0] if isinstance(response, DescribeGroupsResponse) else response
    return int(told.error_code)
