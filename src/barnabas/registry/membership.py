"""An instance in its group: joins, beats, and hears who was elected."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, Protocol

from barnabas.client.errors import KafkaError, KafkaException, error_in
from barnabas.registry.election import (
    DUPLICATE_URLS,
    PROTOCOL_NAME,
    PROTOCOL_TYPE,
    Identity,
    Outcome,
    elect,
)
from barnabas.wire.errors import ErrorCode
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


class Coordinator(Protocol):
    """Whoever coordinates the group, wherever it is. KafkaException if nobody answers in time."""

    async def __call__(self, request: Message, timeout_ms: int) -> Any: ...


class Membership:
    """Runs until it is cancelled. `elected` is told who writes, whenever that is known anew.

    None is told when it is not known any more: the coordinator has not been heard of for as long
    as a session lasts, or goes on without this member.
    """

    def __init__(
        self,
        group_id: str,
        identity: Identity,
        ask: Coordinator,
        elected: Callable[[Outcome | None, str], Awaitable[None]],
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
        self._doubt = asyncio.Event()

    def doubt(self) -> None:
        """Something spoke against what was elected: let it be elected again."""
        self._doubt.set()

    async def run(self) -> None:
        while True:
            try:
                self._doubt.clear()
                outcome = await self._join()
                if outcome is None:
                    continue
                await self._accept(outcome)
                await self._beat_until_unsettled()
            except KafkaException as failure:
                _log.warning("group %s: %s", self._group_id, error_in(failure).str())
                await self._forget()
                await asyncio.sleep(_PAUSE_S)

    async def leave(self) -> None:
        """So that others need not wait for the end of its session."""
        if not self._member_id:
            return
        member = MemberIdentity(member_id=self._member_id, reason="the registry stops")
        try:
            await self._ask(LeaveGroupRequest(group_id=self._group_id, members=[member]), 2_000)
        except KafkaException as failure:
            _log.info("group %s was not left: %s", self._group_id, error_in(failure).str())

    async def _join(self) -> Outcome | None:
        """The outcome of an election, or None to begin again."""
        protocol = JoinGroupRequestProtocol(name=PROTOCOL_NAME, metadata=self._identity.write())
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
        assignments = []
        if joined.leader == self._member_id:
            members = {each.member_id: bytes(each.metadata) for each in joined.members}
            content = elect(members).write()
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
        return Outcome.read(bytes(synced.assignment))

    async def _accept(self, outcome: Outcome) -> None:
        if outcome.error == DUPLICATE_URLS:
            _log.error(
                "group %s: two instances give the same URL (one of them %s); start each with a "
                "host and port that the others reach it at",
                self._group_id,
                self._identity.url,
            )
        self._identity = replace(self._identity, writes=outcome.member_id == self._member_id)
        await self._elected(outcome, self._member_id)

    async def _beat_until_unsettled(self) -> None:
        heard_s = time.monotonic()
        beat = HeartbeatRequest(
            group_id=self._group_id, generation_id=self._generation, member_id=self._member_id
        )
        while not await self._is_doubted(self._session_timeout_ms / 3000):
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
        self._identity = replace(self._identity, writes=False)
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
