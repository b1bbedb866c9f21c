"""What connects a member to its coordinator and its user, where those are slow or wrong."""

import asyncio
from typing import Any

import pytest
from tests.client.consumer.group.joining import Joined, on_a_loop
from tests.client.scripted import ScriptedBroker, metadata_of
from tests.wait import async_wait_until

from barnabas.client.consumer.group.classic_member import LEAVE_TIMEOUT_MS
from barnabas.client.consumer.group.classic_requests import write_assignment
from barnabas.client.errors import KafkaError
from barnabas.wire.apis import ApiKey
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.classic_groups import (
    HeartbeatResponse,
    JoinGroupResponse,
    LeaveGroupResponse,
    SyncGroupResponse,
)

COORDINATING = {
    ApiKey.JOIN_GROUP: lambda _: JoinGroupResponse(
        generation_id=1, protocol_name="range", leader="another", member_id="me"
    ),
    ApiKey.SYNC_GROUP: lambda _: SyncGroupResponse(assignment=write_assignment([("t", 0)])),
    ApiKey.HEARTBEAT: lambda _: HeartbeatResponse(),
    ApiKey.LEAVE_GROUP: lambda _: LeaveGroupResponse(),
}


def at(broker: ScriptedBroker, **settings: Any) -> Joined:
    return Joined(f"127.0.0.1:{broker.port}", **settings)


@on_a_loop
async def test_a_join_is_abandoned_when_the_coordinator_moves() -> None:
    hangs = ScriptedBroker({ApiKey.JOIN_GROUP: lambda _: asyncio.Event().wait()}, node_id=1)
    works = ScriptedBroker(COORDINATING, node_id=2)
    async with hangs, works:
        for each in (hangs, works):
            each.handlers[ApiKey.METADATA] = lambda request: metadata_of([hangs, works], request)
        works.handlers[ApiKey.FIND_COORDINATOR] = hangs.handlers[ApiKey.FIND_COORDINATOR]
        member = at(hangs, request_timeout_ms=100)
        member.group.subscribe(["t"])
        await async_wait_until(lambda: hangs.requests_of(ApiKey.JOIN_GROUP))
        moved = ScriptedBroker(node_id=2)
        moved.port = works.port
        for each in (hangs, works):
            each.handlers[ApiKey.FIND_COORDINATOR] = moved.handlers[ApiKey.FIND_COORDINATOR]
        await async_wait_until(lambda: member.partitions == {("t", 0)})
        await member.close()


@on_a_loop
async def test_leaving_takes_seconds_although_the_coordinator_hangs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert LEAVE_TIMEOUT_MS <= 3_000
    monkeypatch.setattr("barnabas.client.consumer.group.classic_member.LEAVE_TIMEOUT_MS", 200)
    async with ScriptedBroker(COORDINATING, topics={"t": 1}) as broker:
        member = at(broker, request_timeout_ms=3_600_000)  # which is not what is waited for
        member.group.subscribe(["t"])
        await async_wait_until(lambda: member.partitions)
        broker.handlers[ApiKey.LEAVE_GROUP] = lambda _: None
        await member.close()
        assert broker.requests_of(ApiKey.LEAVE_GROUP)


@on_a_loop
async def test_a_subscribed_topic_that_does_not_exist_is_reported_once() -> None:
    async with ScriptedBroker(COORDINATING, topics={"t": 1}) as broker:
        member = at(broker, metadata_max_age_ms=10)
        member.group.subscribe(["t", "nowhere"])
        await async_wait_until(lambda: len(broker.requests_of(ApiKey.METADATA)) > 5)
        (error,) = member.errors
        assert error == KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        assert "nowhere" in error.str()
        await member.close()


@on_a_loop
async def test_a_listener_that_raises_does_not_stop_the_group() -> None:
    async with ScriptedBroker(COORDINATING, topics={"t": 1}) as broker:
        member = at(broker)

        async def fail(what: str) -> None:
            if what == "assigned":
                raise RuntimeError("the user's callback went wrong")

        member.during = fail
        member.group.subscribe(["t"])
        await async_wait_until(lambda: broker.requests_of(ApiKey.HEARTBEAT))
        await member.close()
        assert [what for what, _ in member.events] == ["revoked"]


@on_a_loop
async def test_unsubscribed_topics_are_removed_from_metadata() -> None:
    async with ScriptedBroker(COORDINATING, topics={"t": 1, "u": 1}) as broker:
        member = at(broker, metadata_max_age_ms=10)
        member.group.subscribe(["t"])
        await async_wait_until(lambda: member.partitions)
        member.group.subscribe(["u"])
        await async_wait_until(
            lambda: [each.name for each in broker.requests_of(ApiKey.METADATA)[-1].topics] == ["u"]
        )
        await member.close()
