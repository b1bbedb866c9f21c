"""A coordinator of classic groups, with short methods for the requests of members."""

import struct
from collections.abc import Sequence
from typing import Any

from tests.coordinator.environment import CoordinatorEnvironment, Settings, code_of

from barnabas.coordinator.groups import classic
from barnabas.coordinator.groups.classic.group import ClassicGroup
from barnabas.coordinator.groups.state import GROUP_RECORDS, GroupCoordinatorState
from barnabas.coordinator.pending_response import PendingResponse
from barnabas.coordinator.records import CoordinatorRecord
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.classic_groups import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)
from barnabas.wire.messages.consumer_protocol import ConsumerProtocolSubscription

GROUP = "g"
SESSION_MS = 10_000
REBALANCE_MS = 30_000
DELAY_MS = 3_000
"""Kafka's initial rebalance delay."""


class ClassicHarness:
    """One coordinator and, unless said otherwise, one group."""

    def __init__(self, **settings: Any) -> None:
        self.environment = CoordinatorEnvironment(Settings(**settings))
        self.groups: GroupCoordinatorState = self.lead()

    @property
    def group(self) -> ClassicGroup:
        group = self.groups.by_id[GROUP]
        assert isinstance(group, ClassicGroup)
        return group

    @property
    def written(self) -> list[CoordinatorRecord]:
        return self.environment.log.records(GROUP_RECORDS)

    @property
    def alarm_count(self) -> int:
        """How many there are of groups; the shard's own look at expired offsets is not counted."""
        timers = self.groups.timers
        return len(timers) - ("offset expiry" in timers)

    def lead(self) -> GroupCoordinatorState:
        """Becomes the coordinator by loading the log, also if it was the coordinator before."""
        self.groups = self.environment.lead_groups()
        return self.groups

    def advance(self, delay_ms: int) -> None:
        self.environment.advance(delay_ms)

    def join(
        self,
        member_id: str = "",
        *,
        instance: str | None = None,
        protocols: Sequence[str] = ("range",),
        topics: Sequence[str] = ("t",),
        metadata: bytes | None = None,
        protocol_type: str = "consumer",
        session_ms: int = SESSION_MS,
        rebalance_ms: int = REBALANCE_MS,
        version: int = 9,
        group: str = GROUP,
    ) -> PendingResponse[JoinGroupResponse]:
        what = subscription(*topics) if metadata is None else metadata
        request = JoinGroupRequest(
            group_id=group,
            session_timeout_ms=session_ms,
            rebalance_timeout_ms=rebalance_ms,
            member_id=member_id,
            group_instance_id=instance,
            protocol_type=protocol_type,
            protocols=[JoinGroupRequestProtocol(name=name, metadata=what) for name in protocols],
        )
        return self.environment.decide(classic.join, request, version)

    def enter(self, **terms: Any) -> tuple[str, PendingResponse[JoinGroupResponse]]:
        """A new member as clients join today: it gets its id, and joins with that."""
        response = self.join(**terms).result()
        assert response.error_code == ErrorCode.MEMBER_ID_REQUIRED
        return response.member_id, self.join(response.member_id, **terms)

    def sync(
        self,
        member_id: str,
        generation: int,
        assignments: dict[str, bytes] | None = None,
        *,
        instance: str | None = None,
        protocol: str | None = "range",
        protocol_type: str | None = "consumer",
        version: int = 5,
        group: str = GROUP,
    ) -> PendingResponse[SyncGroupResponse]:
        request = SyncGroupRequest(
            group_id=group,
            generation_id=generation,
            member_id=member_id,
            group_instance_id=instance,
            protocol_type=protocol_type,
            protocol_name=protocol,
            assignments=[
                SyncGroupRequestAssignment(member_id=each, assignment=assignment)
                for each, assignment in (assignments or {}).items()
            ],
        )
        return self.environment.decide(classic.sync, request, version)

    def heartbeat(
        self, member_id: str, generation: int, instance: str | None = None, group: str = GROUP
    ) -> ErrorCode:
        return code_of(self.send_heartbeat(member_id, generation, instance, group))

    def send_heartbeat(
        self, member_id: str, generation: int, instance: str | None = None, group: str = GROUP
    ) -> PendingResponse[HeartbeatResponse]:
        request = HeartbeatRequest(
            group_id=group,
            generation_id=generation,
            member_id=member_id,
            group_instance_id=instance,
        )
        return self.environment.decide(classic.heartbeat, request, 4)

    def leave(self, *members: tuple[str, str | None], group: str = GROUP) -> LeaveGroupResponse:
        return self.request_leave(*members, group=group).result()

    def request_leave(
        self, *members: tuple[str, str | None], group: str = GROUP
    ) -> PendingResponse[LeaveGroupResponse]:
        """Leave. Each is a member id and an instance id."""
        request = LeaveGroupRequest(
            group_id=group,
            members=[MemberIdentity(member_id=m, group_instance_id=i) for m, i in members],
        )
        return self.environment.decide(classic.leave, request, 5)

    def stable(self, count: int = 1, **terms: Any) -> list[str]:
        """A stable group of so many; their ids, the leader's first."""
        entered = [self.enter(**terms) for _ in range(count)]
        self.advance(DELAY_MS * min(count, 2))
        return self.synced([member_id for member_id, _ in entered])

    def synced(self, members: list[str]) -> list[str]:
        """All sync with the current generation. A member is assigned its own id."""
        leader, generation = self.group.leader, self.group.generation
        assignments = {each: each.encode() for each in members}
        terms = {"protocol": self.group.protocol, "protocol_type": self.group.protocol_type}
        leader_first = sorted(members, key=lambda each: each != leader)
        for each in leader_first:
            self.sync(each, generation, assignments if each == leader else None, **terms).result()
        return leader_first


def subscription(*topics: str, version: int = 1) -> bytes:
    return struct.pack(">h", version) + ConsumerProtocolSubscription(topics=list(topics)).write(
        version
    )
