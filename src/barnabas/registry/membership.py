"""Membership of an instance in the group of instances: joins, sends heartbeats, reports elections.

The coordinator removes a dead member when its session ends. Two cases do not wait for that: an
instance that starts at the address of another, which must be dead; and one that finds no process
listening at the leader's address. They remove the dead member from the group.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any, Protocol

from barnabas.client.errors import KafkaError, KafkaException, error_in
from barnabas.registry.election import (
    DUPLICATE_URLS,
    PROTOCOL_NAME,
    PROTOCOL_TYPE,
    ElectionOutcome,
    InstanceIdentity,
    elect,
)
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.classic_groups import (
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
    LeaveGroupRequest,
    MemberIdentity,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
)
from barnabas.wire.messages.groups import DescribeGroupsRequest
from barnabas.wire.schema import Message

_log = logging.getLogger(__name__)
_RETRY_PAUSE_S = 0.5
_REBALANCE_TIMEOUT_MS = 10_000
_MAX_HEARTBEAT_INTERVAL_S = 1  # so that members soon notice a rebalance and do not delay it
_REMOVAL_TIMEOUT_MS = 2_000


class SendToCoordinator(Protocol):
    """Sends a request to the group's coordinator. Raises KafkaException after the timeout."""

    async def __call__(self, request: Message, timeout_ms: int) -> Any: ...


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
        self._group_id = group_id
        self._identity = identity
        self._send_request = send_request
        self._on_election = on_election
        self._session_timeout_ms = session_timeout_ms
        self._member_id = ""
        self._generation = -1
        self._outcome: ElectionOutcome | None = None
        self._election_requested = asyncio.Event()

    def request_election(self) -> None:
        """Joins again, so that a leader is elected again."""
        self._election_requested.set()

    async def remove_leader(self) -> None:
        """Removes the leader from the group, which elects another. If it lives, it joins again."""
        if self._outcome is not None and self._outcome.member_id is not None:
            await self._remove([self._outcome.member_id], "no process listens at its address")
        self.request_election()

    async def run(self) -> None:
        await self._remove_predecessors()
        while True:
            try:
                self._election_requested.clear()
                outcome = await self._join()
                if outcome is None:
                    continue
                await self._accept(outcome)
                await self._send_heartbeats()
            except Exception as failure:
                _log.warning("group %s: %s", self._group_id, _describe(failure))
                await self._forget_leader()
                await asyncio.sleep(_RETRY_PAUSE_S)

    async def leave(self) -> None:
        """Leaves the group, so that others do not wait for the session to end."""
        if self._member_id:
            await self._remove([self._member_id], "the registry stops")

    async def _remove_predecessors(self) -> None:
        try:
            described = await self._send_request(
                DescribeGroupsRequest(groups=[self._group_id]), _REMOVAL_TIMEOUT_MS
            )
        except KafkaException as failure:
            _log.info("group %s cannot be described: %s", self._group_id, _describe(failure))
            return
        before = [
            member.member_id
            for group in described.groups
            for member in group.members
            if (identity := InstanceIdentity.from_member_metadata(bytes(member.member_metadata)))
            is not None
            and identity.url == self._identity.url
        ]
        if before:
            await self._remove(before, "another instance has its address now")

    async def _remove(self, member_ids: Sequence[str], reason: str) -> None:
        members = [MemberIdentity(member_id=id_, reason=reason) for id_ in member_ids]
        request = LeaveGroupRequest(group_id=self._group_id, members=members)
        try:
            await self._send_request(request, _REMOVAL_TIMEOUT_MS)
        except KafkaException as failure:
            _log.info(
                "members were not removed from group %s: %s", self._group_id, _describe(failure)
            )

    async def _join(self) -> ElectionOutcome | None:
        """Returns the outcome of an election, or None to join again."""
        protocol = JoinGroupRequestProtocol(name=PROTOCOL_NAME, metadata=self._identity.encode())
        request = JoinGroupRequest(
            group_id=self._group_id,
            session_timeout_ms=self._session_timeout_ms,
            rebalance_timeout_ms=_REBALANCE_TIMEOUT_MS,
            member_id=self._member_id,
            protocol_type=PROTOCOL_TYPE,
            protocols=[protocol],
        )
        joined: JoinGroupResponse = await self._send_request(
            request, _REBALANCE_TIMEOUT_MS + self._session_timeout_ms
        )
        if joined.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self._member_id = joined.member_id
            return None
        if not await self._is_success(joined.error_code):
            return None
        self._member_id = joined.member_id
        self._generation = joined.generation_id
        return await self._sync(joined)

    async def _sync(self, joined: JoinGroupResponse) -> ElectionOutcome | None:
        """Elects if this member is the group's leader. Returns the outcome."""
        assignments = []
        if joined.leader == self._member_id:
            members = {member.member_id: bytes(member.metadata) for member in joined.members}
            content = elect(members).encode()
            assignments = [
                SyncGroupRequestAssignment(member_id=id_, assignment=content) for id_ in members
            ]
        synced = await self._send_request(
            SyncGroupRequest(
                group_id=self._group_id,
                generation_id=self._generation,
                member_id=self._member_id,
                protocol_type=PROTOCOL_TYPE,
                protocol_name=PROTOCOL_NAME,
                assignments=assignments,
            ),
            _REBALANCE_TIMEOUT_MS + self._session_timeout_ms,
        )
        if not await self._is_success(synced.error_code):
            return None
        return ElectionOutcome.decode(bytes(synced.assignment))

    async def _accept(self, outcome: ElectionOutcome) -> None:
        if outcome.error == DUPLICATE_URLS:
            _log.error(
                "group %s: two instances have the same URL (one of them %s); start each with a "
                "host and port at which the others reach it",
                self._group_id,
                self._identity.url,
            )
        self._identity = replace(self._identity, is_leader=outcome.member_id == self._member_id)
        self._outcome = outcome
        await self._on_election(outcome, self._member_id)

    async def _send_heartbeats(self) -> None:
        responded_s = time.monotonic()
        heartbeat = HeartbeatRequest(
            group_id=self._group_id, generation_id=self._generation, member_id=self._member_id
        )
        interval_s = min(_MAX_HEARTBEAT_INTERVAL_S, self._session_timeout_ms / 3000)
        while not await self._is_election_requested(interval_s):
            try:
                response = await self._send_request(heartbeat, self._session_timeout_ms // 3)
            except KafkaException:
                if time.monotonic() - responded_s > self._session_timeout_ms / 1000:
                    raise
                continue
            responded_s = time.monotonic()
            if response.error_code == ErrorCode.REBALANCE_IN_PROGRESS:
                return  # the leader continues until another is elected
            if not await self._is_success(response.error_code):
                return

    async def _is_election_requested(self, timeout_s: float) -> bool:
        try:
            await asyncio.wait_for(self._election_requested.wait(), timeout_s)
        except TimeoutError:
            return False
        await self._forget_leader()
        return True

    async def _forget_leader(self) -> None:
        """The leader is unknown again, and this instance does not claim to be it."""
        self._identity = replace(self._identity, is_leader=False)
        self._outcome = None
        await self._on_election(None, self._member_id)

    async def _is_success(self, code: int) -> bool:
        if not code:
            return True
        if code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION):
            if code == ErrorCode.UNKNOWN_MEMBER_ID:
                self._member_id = ""
            await self._forget_leader()
        elif code != ErrorCode.REBALANCE_IN_PROGRESS:
            raise KafkaException(KafkaError(code))
        return False


def _describe(failure: Exception) -> str:
    return error_in(failure).str() if isinstance(failure, KafkaException) else repr(failure)
