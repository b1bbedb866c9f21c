"""This instance in the group of instances: who leads, and which connectors are assigned here."""

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass
from typing import Any, Protocol

from barnabas.client.cluster import ClusterClient, CoordinatorType, Deadline
from barnabas.client.group_membership import (
    GroupConfig,
    GroupGeneration,
    InstanceMembership,
    group_error_code,
)
from barnabas.client.settings import admin_settings
from barnabas.connect.herder.assignment import (
    PROTOCOL_NAME,
    PROTOCOL_TYPE,
    GroupAssignment,
    MemberMetadata,
    assign_connectors,
)
from barnabas.connect.storage.config_topic import ConfigTopic
from barnabas.connect.worker_config import WorkerConfig
from barnabas.wire.schema import Message

_log = logging.getLogger(__name__)
_CATCH_UP_TIMEOUT_S = 3.0
"""How long a leader reads what another instance has read, before it only keeps assignments."""
_LOST_AFTER = 0.75
"""Of the session timeout: this instance ends its connectors before others may start them."""


@dataclass(slots=True, frozen=True)
class InstanceAssignment:
    """What the group has assigned to this instance."""

    group: GroupAssignment
    generation: GroupGeneration
    connectors: frozenset[str]

    @property
    def is_leader(self) -> bool:
        return self.generation.is_leader


class RunningConnectors(Protocol):
    """What the group has to know of the connectors of this instance."""

    @property
    def running(self) -> Set[str]:
        """The connectors that may write, as assigned or not any more."""
        ...


class HerderGroup:
    """Runs until it is cancelled. `current` is None while this instance is no member.

    `on_change` is called when `current` has changed.
    """

    def __init__(
        self,
        config: WorkerConfig,
        url: str,
        config_topic: ConfigTopic,
        connectors: RunningConnectors,
        on_change: Callable[[], None],
    ) -> None:
        self.current: InstanceAssignment | None = None
        self.considered: set[str] = set()
        """The connectors that existed when this instance last assigned."""
        self._group_id = config.group_id
        self._url = url
        self._client_id = f"connect-{url.partition('://')[2]}"
        settings = {**config.worker_client, "client.id": self._client_id}
        self._cluster = ClusterClient(admin_settings(settings))
        self._config_topic = config_topic
        self._connectors = connectors
        self._on_change = on_change
        self._is_stable = asyncio.Event()
        self._assigned: frozenset[str] = frozenset()
        self._delay_s = config.values["scheduled.rebalance.max.delay.ms"] / 1000
        self._delayed = _DelayedConnectors()
        self._delay_timer: asyncio.TimerHandle | None = None
        session_timeout_ms = config.values["session.timeout.ms"]
        self._membership = InstanceMembership(
            GroupConfig(
                config.group_id,
                PROTOCOL_TYPE,
                PROTOCOL_NAME,
                session_timeout_ms,
                config.values["rebalance.timeout.ms"],
                heartbeat_interval_ms=min(
                    config.values["heartbeat.interval.ms"], session_timeout_ms // 3
                ),
                lost_after_ms=int(session_timeout_ms * _LOST_AFTER),
            ),
            self._send_to_coordinator,
            self,
        )

    async def run(self) -> None:
        await self._membership.run()

    async def leave(self) -> None:
        await self._membership.leave("the instance stops")

    def request_rebalance(self) -> None:
        """Joins again: connectors have been added or removed, or were ended here."""
        self._membership.request_rejoin()

    async def wait_until_member(self, timeout_s: float) -> InstanceAssignment | None:
        """Returns what is assigned; None if this instance is no member before the timeout."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._is_stable.wait()
        except TimeoutError:
            return None
        return self.current

    async def close(self) -> None:
        if self._delay_timer is not None:
            self._delay_timer.cancel()
        await self._cluster.close()

    async def describe_cluster(self, timeout_ms: int) -> str:
        """Returns the id of the Kafka cluster."""
        described = await self._cluster.describe([], timeout_ms=timeout_ms)
        return described.cluster_id or ""

    # What the membership calls

    def metadata(self) -> bytes:
        """What is assigned counts as running: it may start while the group rebalances."""
        return MemberMetadata(
            self._url,
            self._config_topic.next_offset,
            self._assigned,
            frozenset(self._connectors.running - self._assigned),
        ).encode()

    def is_predecessor(self, client_id: str, metadata: bytes) -> bool:
        return client_id == self._client_id

    async def assign(self, members: Mapping[str, bytes]) -> Mapping[str, bytes]:
        decoded = {id_: MemberMetadata.decode(content) for id_, content in members.items()}
        self._warn_of_equal_urls(decoded)
        newest = max(member.config_offset for member in decoded.values())
        existing: set[str]
        if await self._has_read(newest):
            existing = set(self._config_topic.state.connectors)
            held_back = self._hold_back(decoded, existing)
        else:  # a later round assigns the rest
            existing = {name for member in decoded.values() for name in member.running}
            held_back = set()
            self.request_rebalance()
        self.considered = existing
        owners = assign_connectors(decoded, existing, held_back=held_back)
        content = GroupAssignment(
            self._url,
            self._config_topic.next_offset,
            owners,
            {id_: member.url for id_, member in decoded.items()},
        ).encode()
        return dict.fromkeys(members, content)

    async def on_assigned(self, assignment: bytes, generation: GroupGeneration) -> None:
        group = GroupAssignment.decode(assignment)
        before, self._assigned = self._assigned, frozenset(group.of(generation.member_id))
        self.current = InstanceAssignment(group, generation, self._assigned)
        self._is_stable.set()
        self._on_change()
        if before - self._assigned - self._connectors.running:
            self.request_rebalance()  # they never ran here, so another instance may start them

    async def on_rejoin_requested(self) -> None:
        """Everything goes on meanwhile."""

    async def on_lost(self) -> None:
        if self.current is not None:
            _log.warning(
                "group %s: this instance is no member any more, and ends its connectors",
                self._group_id,
            )
        self._assigned = frozenset()
        self.current = None
        self._is_stable.clear()
        self._on_change()

    # What the leader does

    async def _has_read(self, config_offset: int) -> bool:
        try:
            async with asyncio.timeout(_CATCH_UP_TIMEOUT_S):
                await self._config_topic.wait_until_applied(config_offset)
        except TimeoutError:
            return False
        return True

    def _hold_back(self, members: Mapping[str, MemberMetadata], existing: set[str]) -> set[str]:
        """Returns what nobody may start yet (scheduled.rebalance.max.delay.ms)."""
        if self._delay_s <= 0:
            return set()
        before = set() if self.current is None else set(self.current.group.connectors)
        running = {name for member in members.values() for name in member.running}
        stopping = {name for member in members.values() for name in member.stopping}
        orphaned = (before & existing) - running - stopping
        now_s = time.monotonic()
        held_back = self._delayed.update(orphaned, now_s, now_s + self._delay_s)
        self._schedule_rebalance(self._delayed.next_s)
        return held_back

    def _schedule_rebalance(self, at_s: float | None) -> None:
        if self._delay_timer is not None:
            self._delay_timer.cancel()
            self._delay_timer = None
        if at_s is not None:
            loop = asyncio.get_running_loop()
            self._delay_timer = loop.call_later(
                max(0.0, at_s - time.monotonic()), self.request_rebalance
            )

    def _warn_of_equal_urls(self, members: Mapping[str, MemberMetadata]) -> None:
        urls = [member.url for member in members.values()]
        for url in {url for url in urls if urls.count(url) > 1}:
            _log.error(
                "group %s: two instances have the same URL %s; set rest.advertised.host.name and "
                "rest.advertised.port of each to where the others reach it",
                self._group_id,
                url,
            )

    async def _send_to_coordinator(self, request: Message, timeout_ms: int) -> Any:
        return await self._cluster.send_to_coordinator(
            CoordinatorType.GROUP,
            self._group_id,
            request,
            group_error_code,
            deadline=Deadline.after(timeout_ms),
        )


class _DelayedConnectors:
    """Connectors whose instance is gone, and which wait for it to come back."""

    def __init__(self) -> None:
        self._until_s: dict[str, float] = {}

    @property
    def next_s(self) -> float | None:
        """When the first of them may be assigned."""
        return min(self._until_s.values(), default=None)

    def update(self, orphaned: set[str], now_s: float, until_s: float) -> set[str]:
        """Returns those that have to wait now."""
        known = {name: at_s for name, at_s in self._until_s.items() if name in orphaned}
        self._until_s = {
            name: at_s
            for name, at_s in {**dict.fromkeys(orphaned, until_s), **known}.items()
            if at_s > now_s
        }
        return set(self._until_s)
