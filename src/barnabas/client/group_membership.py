"""Membership of a service's instance in a group of instances, by Kafka's classic group protocol.

The coordinator makes one member the leader, which assigns something to all members. What that is,
and what members tell of themselves, is up to the service (`GroupCallbacks`).

The coordinator removes a dead member when its session ends. Two cases do not wait for that: an
instance that starts at the address of another, which must be dead; and one that finds out in
another way that a member is dead. They remove it from the group.
"""

import asyncio
import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from barnabas.client.errors import KafkaError, KafkaException, error_in
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
from barnabas.wire.messages.groups import DescribeGroupsRequest, DescribeGroupsResponse
from barnabas.wire.schema import Message

_log = logging.getLogger(__name__)
_RETRY_PAUSE_S = 0.5
_REMOVAL_TIMEOUT_MS = 2_000


class SendToCoordinator(Protocol):
    """Sends a request to the group's coordinator. Raises KafkaException after the timeout."""

    async def __call__(self, request: Message, timeout_ms: int) -> Any: ...


@dataclass(slots=True, frozen=True)
class GroupConfig:
    group_id: str
    protocol_type: str
    protocol_name: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    heartbeat_interval_ms: int
    lost_after_ms: int
    """Without a response to heartbeats for so long, the membership is considered lost."""


@dataclass(slots=True, frozen=True)
class GroupGeneration:
    """The membership in one generation of the group."""

    member_id: str
    generation_id: int
    is_leader: bool


class GroupCallbacks(Protocol):
    """What a service decides. The callbacks must not wait for anything that takes long."""

    def metadata(self) -> bytes:
        """Returns what this member tells the leader."""
        ...

    def is_predecessor(self, client_id: str, metadata: bytes) -> bool:
        """Whether this instance has replaced a member.

        Its metadata is empty while the group rebalances.
        """
        ...

    async def assign(self, members: Mapping[str, bytes]) -> Mapping[str, bytes]:
        """Returns the assignments of all members, as their leader."""
        ...

    async def on_assigned(self, assignment: bytes, generation: GroupGeneration) -> None: ...

    async def on_rejoin_requested(self) -> None:
        """This member joins again because `request_rejoin` was called."""
        ...

    async def on_lost(self) -> None:
        """The coordinator has removed this member, or has not responded for too long."""
        ...


class InstanceMembership:
    """Runs until it is cancelled."""

    def __init__(
        self, config: GroupConfig, send_request: SendToCoordinator, callbacks: GroupCallbacks
    ) -> None:
        self._config = config
        self._send_request = send_request
        self._callbacks = callbacks
        self._member_id = ""
        self._generation = -1
        self._rejoin_requested = asyncio.Event()

    def request_rejoin(self) -> None:
        """Joins again, so that the leader assigns again."""
        self._rejoin_requested.set()

    async def run(self) -> None:
        await self._remove_predecessors()
        while True:
            try:
                self._rejoin_requested.clear()
                if await self._join():
                    await self._send_heartbeats()
            except Exception as failure:
                _log.warning("group %s: %s", self._config.group_id, _describe(failure))
                await self._callbacks.on_lost()
                await asyncio.sleep(_RETRY_PAUSE_S)

    async def leave(self, reason: str) -> None:
        """Leaves the group, so that others do not wait for the session to end."""
        if self._member_id:
            await self.remove([self._member_id], reason)

    async def remove(self, member_ids: Sequence[str], reason: str) -> None:
        """Removes members from the group. If they live, they join again."""
        members = [MemberIdentity(member_id=id_, reason=reason) for id_ in member_ids]
        request = LeaveGroupRequest(group_id=self._config.group_id, members=members)
        try:
            await self._send_request(request, _REMOVAL_TIMEOUT_MS)
        except KafkaException as failure:
            _log.info(
                "members were not removed from group %s: %s",
                self._config.group_id,
                _describe(failure),
            )

    async def _remove_predecessors(self) -> None:
        request = DescribeGroupsRequest(groups=[self._config.group_id])
        try:
            described: DescribeGroupsResponse = await self._send_request(
                request, _REMOVAL_TIMEOUT_MS
            )
        except KafkaException as failure:
            _log.info("group %s cannot be described: %s", self._config.group_id, _describe(failure))
            return
        before = [
            member.member_id
            for group in described.groups
            for member in group.members
            if self._callbacks.is_predecessor(member.client_id, bytes(member.member_metadata))
        ]
        if before:
            await self.remove(before, "another instance has its address now")

    async def _join(self) -> bool:
        """Joins the group. Returns whether this member has got its assignment."""
        config = self._config
        protocol = JoinGroupRequestProtocol(
            name=config.protocol_name, metadata=self._callbacks.metadata()
        )
        request = JoinGroupRequest(
            group_id=config.group_id,
            session_timeout_ms=config.session_timeout_ms,
            rebalance_timeout_ms=config.rebalance_timeout_ms,
            member_id=self._member_id,
            protocol_type=config.protocol_type,
            protocols=[protocol],
        )
        joined: JoinGroupResponse = await self._send_request(
            request, config.rebalance_timeout_ms + config.session_timeout_ms
        )
        if joined.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self._member_id = joined.member_id
            return False
        if not await self._is_success(joined.error_code):
            return False
        self._member_id = joined.member_id
        self._generation = joined.generation_id
        return await self._sync(joined)

    async def _sync(self, joined: JoinGroupResponse) -> bool:
        """Assigns if this member is the group's leader."""
        config, is_leader = self._config, joined.leader == self._member_id
        assignments = []
        if is_leader:
            members = {member.member_id: bytes(member.metadata) for member in joined.members}
            assignments = [
                SyncGroupRequestAssignment(member_id=id_, assignment=content)
                for id_, content in (await self._callbacks.assign(members)).items()
            ]
        synced = await self._send_request(
            SyncGroupRequest(
                group_id=config.group_id,
                generation_id=self._generation,
                member_id=self._member_id,
                protocol_type=config.protocol_type,
                protocol_name=config.protocol_name,
                assignments=assignments,
            ),
            config.rebalance_timeout_ms + config.session_timeout_ms,
        )
        if not await self._is_success(synced.error_code):
            return False
        generation = GroupGeneration(self._member_id, self._generation, is_leader)
        await self._callbacks.on_assigned(bytes(synced.assignment), generation)
        return True

    async def _send_heartbeats(self) -> None:
        """Returns when this member has to join again."""
        config = self._config
        heartbeat = HeartbeatRequest(
            group_id=config.group_id, generation_id=self._generation, member_id=self._member_id
        )
        lost_after_s = config.lost_after_ms / 1000
        responded_s = time.monotonic()
        while not await self._is_rejoin_requested():
            sent_s = time.monotonic()
            remaining_ms = int((responded_s + lost_after_s - sent_s) * 1000)
            timeout_ms = max(1, min(config.session_timeout_ms // 3, remaining_ms))
            try:
                response = await self._send_request(heartbeat, timeout_ms)
            except KafkaException:
                if time.monotonic() - responded_s >= lost_after_s:
                    raise
                continue
            responded_s = sent_s  # the coordinator has received it later than that
            if response.error_code == ErrorCode.REBALANCE_IN_PROGRESS:
                return
            if not await self._is_success(response.error_code):
                return

    async def _is_rejoin_requested(self) -> bool:
        try:
            # Unlike `wait_for` on Python 3.11, it never loses a cancellation of `run`.
            async with asyncio.timeout(self._config.heartbeat_interval_ms / 1000):
                await self._rejoin_requested.wait()
        except TimeoutError:
            return False
        await self._callbacks.on_rejoin_requested()
        return True

    async def _is_success(self, code: int) -> bool:
        if not code:
            return True
        if code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION):
            if code == ErrorCode.UNKNOWN_MEMBER_ID:
                self._member_id = ""
            await self._callbacks.on_lost()
        elif code != ErrorCode.REBALANCE_IN_PROGRESS:
            raise KafkaException(KafkaError(code))
        return False


def group_error_code(response: Any) -> int:
    """Returns the error code of a coordinator's response."""
    part = response.groups[0] if isinstance(response, DescribeGroupsResponse) else response
    return int(part.error_code)


def _describe(failure: Exception) -> str:
    return error_in(failure).str() if isinstance(failure, KafkaException) else repr(failure)
