"""Membership in a group of instances, with a scripted coordinator."""

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from barnabas.client.errors import KafkaError, KafkaException
from barnabas.client.group_membership import GroupConfig, GroupGeneration, InstanceMembership
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.classic_groups import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    JoinGroupResponseMember,
    LeaveGroupRequest,
    LeaveGroupResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)
from barnabas.wire.messages.groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)


class Service:
    """Notes what the membership calls."""

    def __init__(self) -> None:
        self.assigned: list[tuple[bytes, GroupGeneration]] = []
        self.lost_at_s: list[float] = []

    def metadata(self) -> bytes:
        return b"mine"

    def is_predecessor(self, client_id: str, metadata: bytes) -> bool:
        return client_id == "me"

    async def assign(self, members: Mapping[str, bytes]) -> Mapping[str, bytes]:
        return {member: b"for " + metadata for member, metadata in members.items()}

    async def on_assigned(self, assignment: bytes, generation: GroupGeneration) -> None:
        self.assigned.append((assignment, generation))

    async def on_rejoin_requested(self) -> None: ...

    async def on_lost(self) -> None:
        self.lost_at_s.append(time.monotonic())


class Coordinator:
    """Has one member, whose heartbeats it answers by a function."""

    def __init__(self, heartbeat: Callable[[], Any]) -> None:
        self.requests: list[Any] = []
        self.before: list[DescribedGroupMember] = []
        self._heartbeat = heartbeat

    async def __call__(self, request: Any, timeout_ms: int) -> Any:
        self.requests.append((request, timeout_ms))
        match request:
            case DescribeGroupsRequest():
                group = DescribedGroup(group_id="g", members=self.before)
                return DescribeGroupsResponse(groups=[group])
            case JoinGroupRequest():
                member = JoinGroupResponseMember(member_id="m", metadata=b"mine")
                return JoinGroupResponse(
                    generation_id=1, leader="m", member_id="m", members=[member]
                )
            case SyncGroupRequest():
                return SyncGroupResponse(assignment=bytes(request.assignments[0].assignment))
            case LeaveGroupRequest():
                return LeaveGroupResponse()
            case HeartbeatRequest():
                response = self._heartbeat()
                if response is None:
                    await asyncio.sleep(timeout_ms / 1000)
                    raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
                return response


def membership_of(
    service: Service, coordinator: Coordinator, *, heartbeat_ms: int = 1
) -> InstanceMembership:
    config = GroupConfig(
        "g",
        "type",
        "protocol",
        session_timeout_ms=300,
        rebalance_timeout_ms=300,
        heartbeat_interval_ms=heartbeat_ms,
        lost_after_ms=200,
    )
    return InstanceMembership(config, coordinator, service)


def alive() -> HeartbeatResponse:
    return HeartbeatResponse(error_code=ErrorCode.NONE)


async def run_until(membership: InstanceMembership, condition: Callable[[], object]) -> None:
    running = asyncio.create_task(membership.run())
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0.001)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


def test_the_leader_assigns() -> None:
    service, coordinator = Service(), Coordinator(alive)
    asyncio.run(run_until(membership_of(service, coordinator), lambda: service.assigned))
    assert service.assigned == [(b"for mine", GroupGeneration("m", 1, is_leader=True))]


def test_a_predecessor_is_removed_also_while_the_group_rebalances() -> None:
    """Its metadata is not shown then."""
    service, coordinator = Service(), Coordinator(alive)
    coordinator.before = [
        DescribedGroupMember(member_id="old", client_id="me"),
        DescribedGroupMember(member_id="other", client_id="you"),
    ]
    asyncio.run(run_until(membership_of(service, coordinator), lambda: service.assigned))
    left = [each for each, _ in coordinator.requests if isinstance(each, LeaveGroupRequest)]
    assert [member.member_id for each in left for member in each.members] == ["old"]


def test_the_membership_is_lost_in_time_without_responses() -> None:
    """A heartbeat may not last past that time: other members count on it."""
    service = Service()
    last_s = [0.0]

    def once() -> HeartbeatResponse | None:
        if last_s[0]:
            return None
        last_s[0] = time.monotonic()
        return alive()

    coordinator = Coordinator(once)
    asyncio.run(run_until(membership_of(service, coordinator), lambda: service.lost_at_s))
    timeouts = [ms for each, ms in coordinator.requests if isinstance(each, HeartbeatRequest)]
    assert sum(timeouts[1:]) <= 200  # and not until the third of them has timed out


@pytest.mark.parametrize("steps", range(4))
def test_a_member_that_is_cancelled_just_after_a_request_to_rejoin_ends(steps: int) -> None:
    """`steps` of the event loop after it."""

    async def scenario() -> None:
        service = Service()
        membership = membership_of(service, Coordinator(alive), heartbeat_ms=10_000)
        running = asyncio.create_task(membership.run())
        while not service.assigned:
            await asyncio.sleep(0)
        for _ in range(10):
            await asyncio.sleep(0)
        membership.request_rejoin()
        for _ in range(steps):
            await asyncio.sleep(0)
        running.cancel()
        try:
            async with asyncio.timeout(2):
                await asyncio.gather(running, return_exceptions=True)
        except TimeoutError:
            pytest.fail("the cancellation was lost")

    asyncio.run(scenario())
