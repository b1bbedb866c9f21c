"""FindCoordinator: a topic that cannot be made is waited for, and why it cannot is said."""

from types import SimpleNamespace
from typing import Any

import pytest
from tests.replication.world import World

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
