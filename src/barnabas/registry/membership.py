"""Membership of an instance in the group of instances: joins, and reports elections."""

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace

from barnabas.client.group_membership import (
    GroupConfig,
    GroupGeneration,
    InstanceMembership,
    SendToCoordinator,
)
from barnabas.registry.election import (
    DUPLICATE_URLS,
    PROTOCOL_NAME,
    PROTOCOL_TYPE,
    ElectionOutcome,
    InstanceIdentity,
    elect,
)

_log = logging.getLogger(__name__)
_REBALANCE_TIMEOUT_MS = 10_000
_MAX_HEARTBEAT_INTERVAL_MS = 1000  # so that members soon notice a rebalance and do not delay it


class RegistryMembership:
    """Runs until it is cancelled. Calls `on_election` with each outcome and this member's id.

    The outcome is None when the leader is unknown again: the coordinator has not responded for as
    long as a session lasts, or has removed this member.
    """

    def __init__(
        self,
        group_id: str,
        identity: InstanceIdentity,
        send_request: SendToCoordinator,
        on_election: Callable[[ElectionOutcome | None, str], Awaitable[None]],
        *,
        session_timeout_ms: int,
    ) -> None:
        self._election = _Election(group_id, identity, on_election)
        config = GroupConfig(
            group_id,
            PROTOCOL_TYPE,
            PROTOCOL_NAME,
            session_timeout_ms,
            _REBALANCE_TIMEOUT_MS,
            heartbeat_interval_ms=min(_MAX_HEARTBEAT_INTERVAL_MS, session_timeout_ms // 3),
            lost_after_ms=session_timeout_ms,
        )
        self._membership = InstanceMembership(config, send_request, self._election)

    def request_election(self) -> None:
        """Joins again, so that a leader is elected again."""
        self._membership.request_rejoin()

    async def remove_leader(self) -> None:
        """Removes the leader from the group, which elects another. If it lives, it joins again."""
        leader_id = self._election.leader_id
        if leader_id is not None:
            await self._membership.remove([leader_id], "no process listens at its address")
        self.request_election()

    async def run(self) -> None:
        await self._membership.run()

    async def leave(self) -> None:
        """Leaves the group, so that others do not wait for the session to end."""
        await self._membership.leave("the registry stops")


class _Election:
    """What the members tell each other and assign: who the registry's leader is."""

    def __init__(
        self,
        group_id: str,
        identity: InstanceIdentity,
        on_election: Callable[[ElectionOutcome | None, str], Awaitable[None]],
    ) -> None:
        self.leader_id: str | None = None
        self._group_id = group_id
        self._identity = identity
        self._on_election = on_election
        self._member_id = ""

    def metadata(self) -> bytes:
        return self._identity.encode()

    def is_predecessor(self, client_id: str, metadata: bytes) -> bool:
        identity = InstanceIdentity.from_member_metadata(metadata)
        return identity is not None and identity.url == self._identity.url

    async def assign(self, members: Mapping[str, bytes]) -> Mapping[str, bytes]:
        return dict.fromkeys(members, elect(members).encode())

    async def on_assigned(self, assignment: bytes, generation: GroupGeneration) -> None:
        outcome = ElectionOutcome.decode(assignment)
        if outcome.error == DUPLICATE_URLS:
            _log.error(
                "group %s: two instances have the same URL (one of them %s); start each with a "
                "host and port at which the others reach it",
                self._group_id,
                self._identity.url,
            )
        self._member_id = generation.member_id
        is_leader = outcome.member_id == self._member_id
        self._identity = replace(self._identity, is_leader=is_leader)
        self.leader_id = outcome.member_id
        await self._on_election(outcome, self._member_id)

    async def on_rejoin_requested(self) -> None:
        await self.on_lost()

    async def on_lost(self) -> None:
        """The leader is unknown again, and this instance does not claim to be it."""
        self._identity = replace(self._identity, is_leader=False)
        self.leader_id = None
        await self._on_election(None, self._member_id)
