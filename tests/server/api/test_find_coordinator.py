"""FindCoordinator creates the topic it needs once, or returns why it cannot."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from tests.replication.world import World
from tests.server.harness import on_a_loop

from barnabas.server.api.find_coordinator import handle
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.find_coordinator import FindCoordinatorRequest
from barnabas.wire.messages.topics import (
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)


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
def test_a_failed_creation_is_a_retriable_error_with_the_reason(
    world: World, key_type: int, controller: Any
) -> None:
    broker: Any = world.broker
    broker.controller = SimpleNamespace(handle=controller)
    broker.groups = broker.transactions = SimpleNamespace(
        runtime=SimpleNamespace(topic="__state", partition_of=lambda _: 0)
    )
    request = FindCoordinatorRequest(coordinator_keys=["g"], key_type=key_type)
    entry: Any = world.request(handle, request, 4)
    (reported,) = entry.coordinators
    assert reported.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert "3 replicas, 1 broker" in reported.error_message


@on_a_loop
async def test_a_request_for_a_topic_in_creation_waits_for_it(world: World) -> None:
    sent_request: list[Any] = []
    made: asyncio.Future[CreateTopicsResponse] = asyncio.Future()

    async def create(request: Any, *, timeout_ms: int) -> CreateTopicsResponse:
        sent_request.append(request)
        return await made

    broker: Any = world.broker
    broker.controller = SimpleNamespace(handle=create)
    broker.groups = SimpleNamespace(
        runtime=SimpleNamespace(topic="__state", partition_of=lambda _: 0)
    )
    request = FindCoordinatorRequest(coordinator_keys=["g", "h"])
    pending = [world.begin_request(handle, request, 4) for _ in range(3)]
    world.create_topic("__state")
    made.set_result(CreateTopicsResponse())
    for item in pending:
        item.resume()
        assert [entry.node_id for entry in item.response.coordinators] == [1, 1]
    assert len(sent_request) == 1
