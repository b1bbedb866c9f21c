"""An instance in its group: joins, beats, and hears who was elected.

A member that dies is missed when its session ends. Two cases need not wait for that: an instance
that begins where another was, whose address it could not have otherwise; and one that finds
nobody listening where the writer should be. They have the coordinator go on without the dead.
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
from barnabas.wire.messages.describe_groups import DescribeGroupsRequest
from barnabas.wire.messages.heartbeat import HeartbeatRequest
from barnabas.wire.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from barnabas.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from barnabas.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from barnabas.wire.schema import Message

_log = logging.getLogger(__name__)
_PAUSE_S = 0.5
_REBALANCE_TIMEOUT_MS = 10_000
_LONGEST_BEAT_S = 1  # so that all soon hear of an election, and nobody waits for them
_DEATH_TIMEOUT_MS = 2_000


class SendToCoordinator(Protocol):
    """Whoever coordinates the group, wherever it is. KafkaException if nobody answers in time."""

    async def __call__(self, request: Message, timeout_ms: int) -> Any: ...


class GroupMembership:
    """Runs until it is cancelled. `elected` is told who writes, whenever that is known anew.

    None is told when it is not known any more: the coordinator has not been heard of for as long
    as a session lasts, or goes on without this member.
    """

    def __init__(
        self,
        group_id: str,
        identity: InstanceIdentity,
        ask: SendToCoordinator,
        elected: Callable[[ElectionOutcome | None, str], Awaitable[None]],
        *,
        session_timeout_ms: int,
    ) -> None:
        self._group_id = group_id
        self._identity = identity
        self._ask = ask
        self._elected = elected
        self._session_timeout_ms = session_timeout_ms
        self._member_id = ""
        self._generation = -1
        self._outcome: ElectionOutcome | None = None
        self._doubt = asyncio.Event()

    def request_election(self) -> None:
        """Something spoke against what was elected: let it be elected again."""
        self._doubt.set()

    async def remove_leader(self) -> None:
        """Nobody is where it should be: have another one elected. A mistake does no harm."""
        if self._outcome is not None and self._outcome.member_id is not None:
            await self._remove([self._outcome.member_id], "nobody listens at its address")
        self.request_election()

    async def run(self) -> None:
        await self._bury_predecessors()
        while True:
            try:
                self._doubt.clear()
                outcome = await self._join()
                if outcome is None:
                    continue
                await self._accept(outcome)
                await self._beat_until_unsettled()
            except Exception as failure:
                _log.warning("group %s: %s", self._group_id, _said(failure))
                await self._forget()
                await asyncio.sleep(_PAUSE_S)

    async def leave(self) -> None:
        """So that others need not wait for the end of its session."""
        if self._member_id:
            await self._remove([self._member_id], "the registry stops")

    async def _bury_predecessors(self) -> None:
        try:
            told = await self._ask(
                DescribeGroupsRequest(groups=[self._group_id]), _DEATH_TIMEOUT_MS
            )
        except KafkaException as failure:
            _log.info("group %s cannot be seen: %s", self._group_id, _said(failure))
            return
        before = [
            member.member_id
            for group in told.groups
            for member in group.members
            if (it := InstanceIdentity.from_member_metadata(bytes(member.member_metadata)))
            is not None
            and it.url == self._identity.url
        ]
        if before:
            await self._remove(before, "another instance has its address now")

    async def _remove(self, member_ids: Sequence[str], reason: str) -> None:
        members = [MemberIdentity(member_id=each, reason=reason) for each in member_ids]
        request = LeaveGroupRequest(group_id=self._group_id, members=members)
        try:
            await self._ask(request, _DEATH_TIMEOUT_MS)
        except KafkaException as failure:
            _log.info("group %s was not left: %s", self._group_id, _said(failure))

    async def _join(self) -> ElectionOutcome | None:
        """The outcome of an election, or None to begin again."""
        protocol = JoinGroupRequestProtocol(name=PROTOCOL_NAME, metadata=self._identity.encode())
        request = JoinGroupRequest(
            group_id=self._group_id,
            session_timeout_ms=self._session_timeout_ms,
            rebalance_timeout_ms=_REBALANCE_TIMEOUT_MS,
            member_id=self._member_id,
            protocol_type=PROTOCOL_TYPE,
            protocols=[protocol],
        )
        joined: JoinGroupResponse = await self._ask(
            request, _REBALANCE_TIMEOUT_MS + self._session_timeout_ms
        )
        if joined.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self._member_id = joined.member_id
            return None
        if not await self._is_fine(joined.error_code):
            return None
        self._member_id = joined.member_id
        self._generation = joined.generation_id
        return await self._sync(joined)

    async def _sync(self, joined: JoinGroupResponse) -> ElectionOutcome | None:
        """Whoever leads the group elects, and all are told."""
        assignments = []
        if joined.leader == self._member_id:
            members = {each.member_id: bytes(each.metadata) for each in joined.members}
            content = elect(members).encode()
            assignments = [
                SyncGroupRequestAssignment(member_id=id_, assignment=content) for id_ in members
            ]
        synced = await self._ask(
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
        if not await self._is_fine(synced.error_code):
            return None
        return ElectionOutcome.decode(bytes(synced.assignment))

    async def _accept(self, outcome: ElectionOutcome) -> None:
        if outcome.error == DUPLICATE_URLS:
            _log.error(
                "group %s: two instances give the same URL (one of them %s); start each with a "
                "host and port that the others reach it at",
                self._group_id,
                self._identity.url,
            )
        self._identity = replace(self._identity, is_leader=outcome.member_id == self._member_id)
        self._outcome = outcome
        await self._elected(outcome, self._member_id)

    async def _beat_until_unsettled(self) -> None:
        heard_s = time.monotonic()
        beat = HeartbeatRequest(
            group_id=self._group_id, generation_id=self._generation, member_id=self._member_id
        )
        pause_s = min(_LONGEST_BEAT_S, self._session_timeout_ms / 3000)
        while not await self._is_doubted(pause_s):
            try:
                answer = await self._ask(beat, self._session_timeout_ms // 3)
            except KafkaException:
                if time.monotonic() - heard_s > self._session_timeout_ms / 1000:
                    raise
                continue
            heard_s = time.monotonic()
            if answer.error_code == ErrorCode.REBALANCE_IN_PROGRESS:
                return  # who writes goes on writing until somebody else is elected
            if not await self._is_fine(answer.error_code):
                return

    async def _is_doubted(self, within_s: float) -> bool:
        try:
            await asyncio.wait_for(self._doubt.wait(), within_s)
        except TimeoutError:
            return False
        await self._forget()
        return True

    async def _forget(self) -> None:
        """It is not known any more who writes, and this instance does not claim to."""
        self._identity = replace(self._identity, is_leader=False)
        self._outcome = None
        await self._elected(None, self._member_id)

    async def _is_fine(self, code: int) -> bool:
        if not code:
            return True
        if code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION):
            if code == ErrorCode.UNKNOWN_MEMBER_ID:
                self._member_id = ""
            await self._forget()
        elif code != ErrorCode.REBALANCE_IN_PROGRESS:
            raise KafkaException(KafkaError(code))
        return False


def _said(failure: Exception) -> str:
    return error_in(failure).str() if isinstance(failure, KafkaException) else repr(failure)
