"""InitProducerId: who gets an id, and that nobody gets the same."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from tests.replication.world import World
from tests.server.harness import a_broker, on_a_loop

from barnabas.server.api.init_producer_id import handle
from barnabas.server.broker import Broker
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.allocate_producer_ids import AllocateProducerIdsResponse
from barnabas.wire.messages.init_producer_id import InitProducerIdRequest

BLOCK = 20


class Allocator:
    """A controller that can do one thing."""

    def __init__(self) -> None:
        self.blocks = 0
        self.error = ErrorCode.NONE
        self.answering = asyncio.Event()
        self.answering.set()

    async def handle(self, request: Any, *, timeout_ms: int) -> AllocateProducerIdsResponse:
        await self.answering.wait()
        if self.error:
            return AllocateProducerIdsResponse(error_code=self.error)
        self.blocks += 1
        return AllocateProducerIdsResponse(
            producer_id_start=(self.blocks - 1) * BLOCK, producer_id_len=BLOCK
        )


def broker_and_allocator() -> tuple[Broker, Allocator]:
    broker = a_broker()
    allocator: Any = Allocator()
    broker.controller = allocator
    return broker, allocator


@on_a_loop
async def test_ids_are_given_once_and_in_order() -> None:
    broker, _ = broker_and_allocator()
    ids = [await broker.producer_ids.take(broker) for _ in range(3 * BLOCK)]
    assert ids == list(range(3 * BLOCK))


@on_a_loop
async def test_those_who_wait_share_one_block() -> None:
    broker, allocator = broker_and_allocator()
    allocator.answering.clear()
    takers = [asyncio.ensure_future(broker.producer_ids.take(broker)) for _ in range(5)]
    await asyncio.sleep(0)
    allocator.answering.set()
    assert sorted(await asyncio.gather(*takers)) == [0, 1, 2, 3, 4]
    assert allocator.blocks == 1


@on_a_loop
async def test_the_next_block_is_there_before_it_is_needed() -> None:
    broker, allocator = broker_and_allocator()
    for _ in range(BLOCK - 2):
        await broker.producer_ids.take(broker)
    while allocator.blocks < 2:
        await asyncio.sleep(0)
    allocator.answering.clear()
    ids = [await broker.producer_ids.take(broker) for _ in range(4)]  # none of them waits
    assert ids == [BLOCK - 2, BLOCK - 1, BLOCK, BLOCK + 1]


@on_a_loop
async def test_without_a_block_the_producer_is_told_to_try_again() -> None:
    broker, allocator = broker_and_allocator()
    allocator.error = ErrorCode.STALE_BROKER_EPOCH
    with pytest.raises(KafkaError, match="COORDINATOR_LOAD_IN_PROGRESS"):
        await broker.producer_ids.take(broker)
    allocator.error = ErrorCode.NONE
    assert await broker.producer_ids.take(broker) == 0


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"producer_id": 3}, ErrorCode.INVALID_REQUEST),
        ({"producer_epoch": 3}, ErrorCode.INVALID_REQUEST),
        ({"transactional_id": ""}, ErrorCode.INVALID_REQUEST),
        ({"transactional_id": "t"}, ErrorCode.NOT_COORDINATOR),
        (
            {"transactional_id": "t", "transaction_timeout_ms": 0},
            ErrorCode.INVALID_TRANSACTION_TIMEOUT,
        ),
        (
            {"transactional_id": "t", "transaction_timeout_ms": 900_001},
            ErrorCode.INVALID_TRANSACTION_TIMEOUT,
        ),
    ],
)
def test_who_gets_no_id(world: World, fields: dict[str, Any], code: ErrorCode) -> None:
    asked = {"transactional_id": None, "transaction_timeout_ms": 1000, **fields}
    response = world.ask(handle, InitProducerIdRequest(**asked), 5)
    assert (response.error_code, response.producer_id, response.producer_epoch) == (code, -1, -1)


@on_a_loop
async def test_an_idempotent_producer_gets_a_new_id_whatever_it_had() -> None:
    broker, _ = broker_and_allocator()
    call: Any = SimpleNamespace(broker=broker, api_version=5)
    for expected in (0, 1):
        request = InitProducerIdRequest(
            transactional_id=None, transaction_timeout_ms=0, producer_id=7, producer_epoch=3
        )
        response = await handle(request, call)
        assert (response.producer_id, response.producer_epoch) == (expected, 0)
