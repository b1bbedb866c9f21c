"""Blocks of producer ids come from the controller."""

from typing import Any

import pytest
from tests.server.harness import a_broker, on_a_loop

from barnabas.node.producer_id_blocks import ProducerIdBlockAllocator
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.allocate_producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)


class Allocator:
    """A controller that can do one thing."""

    def __init__(self, answer: AllocateProducerIdsResponse) -> None:
        self._answer = answer
        self.asked: list[AllocateProducerIdsRequest] = []

    async def handle(
        self, request: AllocateProducerIdsRequest, *, timeout_ms: int
    ) -> AllocateProducerIdsResponse:
        self.asked.append(request)
        return self._answer


def blocks_of(allocator: Any) -> ProducerIdBlockAllocator:
    broker = a_broker()
    broker.controller = allocator
    return ProducerIdBlockAllocator(broker)


@on_a_loop
async def test_a_block_is_asked_for_in_the_brokers_name() -> None:
    allocator = Allocator(AllocateProducerIdsResponse(producer_id_start=2000, producer_id_len=1000))
    assert await blocks_of(allocator).allocate() == range(2000, 3000)
    assert [each.broker_id for each in allocator.asked] == [1]


@on_a_loop
async def test_a_refused_block_is_an_error() -> None:
    allocator = Allocator(AllocateProducerIdsResponse(error_code=ErrorCode.STALE_BROKER_EPOCH))
    with pytest.raises(KafkaError, match="STALE_BROKER_EPOCH"):
        await blocks_of(allocator).allocate()
