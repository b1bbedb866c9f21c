"""Brokers get blocks of producer ids from the controller."""

from typing import Any

import pytest
from tests.server.harness import a_broker, on_a_loop

from barnabas.node.coordinators import ProducerIdBlockAllocator
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)


class FakeController:
    """Responds to AllocateProducerIds."""

    def __init__(self, response: AllocateProducerIdsResponse) -> None:
        self._response = response
        self.requests: list[AllocateProducerIdsRequest] = []

    async def handle(
        self, request: AllocateProducerIdsRequest, *, timeout_ms: int
    ) -> AllocateProducerIdsResponse:
        self.requests.append(request)
        return self._response


def blocks_of(controller: Any) -> ProducerIdBlockAllocator:
    broker = a_broker()
    broker.controller = controller
    return ProducerIdBlockAllocator(broker)


@on_a_loop
async def test_a_broker_requests_a_block_with_its_id() -> None:
    controller = FakeController(
        AllocateProducerIdsResponse(producer_id_start=2000, producer_id_len=1000)
    )
    assert await blocks_of(controller).allocate() == range(2000, 3000)
    assert [request.broker_id for request in controller.requests] == [1]


@on_a_loop
async def test_an_error_response_to_a_block_request_is_raised() -> None:
    controller = FakeController(
        AllocateProducerIdsResponse(error_code=ErrorCode.STALE_BROKER_EPOCH)
    )
    with pytest.raises(KafkaError, match="STALE_BROKER_EPOCH"):
        await blocks_of(controller).allocate()
