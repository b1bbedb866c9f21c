"""FindCoordinator: the topic that it needs is made once, or why it cannot be made is said."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from tests.replication.world import World
from tests.server.harness import on_a_loop

from barnabas.server.api.find_coordinator import handle
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.create_topics import (
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from barnabas.wire.messages.find_coordinator import FindCoordinatorRequest


async def refuse(request: CreateTopicsRequest, *, timeout_ms: int) -> CreateTopicsResponse:
    code, reason = ErrorCode.INVALID_REPLICATION_FACTOR, "3 replicas, 1 broker"
    return CreateTopicsResponse(
        topics=[
            CreatableTopicResult(name=topic.name, error_code=code, error_message=reason)
            for topic in request.topics
        ]
    )


async def lose(request: CreateTopicsRequest, *, timeout_ms: int) -> CreateTopicsResponse:
    raise TimeoutError("3 replicas, 1 broker")


async def fail(request: CreateTopicsRequest, *, timeout_ms: int) -> CreateTopicsResponse:
    raise KafkaError(ErrorCode.NOT_CONTROLLER, "3 replicas, 1 broker")


@pytest.mark.parametrize("key_type", [0, 1])
@pytest.mark.parametrize("controller", [refuse, fail, lose])
def test_who_asks_is_to_ask_again_and_told_why(
    world: World, key_type: int, controller: Any
) -> None:
    broker: Any = world.broker
    broker.controller = SimpleNamespace(handle=controller)
    broker.groups = broker.transactions = SimpleNamespace(
        runtime=SimpleNamespace(topic="__state", partition_of=lambda _: 0)
    )
    request = FindCoordinatorRequest(coordinator_keys=["g"], key_type=key_type)
    found: Any = world.ask(handle, request, 4)
    (told,) = found.coordinators
    assert told.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert "3 replicas, 1 broker" in told.error_message


@on_a_loop
async def test_who_asks_for_a_topic_that_is_being_made_waits_for_it(world: World) -> None:
    asked: list[Any] = []
    made: asyncio.Future[CreateTopicsResponse] = asyncio.Future()

    async def create(request: Any, *, timeout_ms: int) -> CreateTopicsResponse:
        asked.append(request)
        return await made

    broker: Any = world.broker
    broker.controller = SimpleNamespace(handle=create)
    broker.groups = SimpleNamespace(
        runtime=SimpleNamespace(topic="__state", partition_of=lambda _: 0)
    )
    request = FindCoordinatorRequest(coordinator_keys=["g", "h"])
    waiting = [world.begin(handle, request, 4) for _ in range(3)]
    world.create_topic("__state")
    made.set_result(CreateTopicsResponse())
    for each in waiting:
        each.resume()
        assert [found.node_id for found in each.answer.coordinators] == [1, 1]
    assert len(asked) == 1
