"""The producer ids this broker gives out, from blocks that the controller gives to it."""

import asyncio
from typing import TYPE_CHECKING

from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.allocate_producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)

if TYPE_CHECKING:
    from barnabas.server.broker import Broker

ALLOCATION_TIMEOUT_MS = 30_000
PREFETCH_BELOW = 0.1
"""The share of a block that is left when the next one is asked for, so that nobody waits."""


class ProducerIds:
    """Hands out ids one by one. No id is given twice: a block left unused is lost, not reused."""

    __slots__ = ("_allocation", "_left", "_prefetch_at", "_spare")

    def __init__(self) -> None:
        self._left = range(0)
        self._spare: range | None = None
        self._prefetch_at = 0
        self._allocation: asyncio.Future[None] | None = None

    async def take(self, broker: "Broker") -> int:
        while not self._left:
            if self._spare is not None:
                self._begin(self._spare)
                self._spare = None
            else:
                await asyncio.shield(self._allocate(broker))
        producer_id, self._left = self._left[0], self._left[1:]
        if self._spare is None and len(self._left) <= self._prefetch_at:
            self._allocate(broker)
        return producer_id

    def _begin(self, block: range) -> None:
        self._left = block
        self._prefetch_at = int(len(block) * PREFETCH_BELOW)

    def _allocate(self, broker: "Broker") -> "asyncio.Future[None]":
        """The allocation under way, begun if there is none."""
        if self._allocation is None:
            self._allocation = asyncio.ensure_future(self._ask_for_block(broker))
            # Who waits is told of a failure; a prefetch that nobody waits for may fail unheard.
            self._allocation.add_done_callback(_hear)
        return self._allocation

    async def _ask_for_block(self, broker: "Broker") -> None:
        registered = broker.image.brokers.get(broker.node_id)
        request = AllocateProducerIdsRequest(
            broker_id=broker.node_id, broker_epoch=registered.epoch if registered else -1
        )
        try:
            block: AllocateProducerIdsResponse = await broker.controller.handle(
                request, timeout_ms=ALLOCATION_TIMEOUT_MS
            )
        finally:
            self._allocation = None
        if block.error_code != ErrorCode.NONE:
            raise KafkaError(
                ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
                "The controller gave no producer ids: "
                f"{ErrorCode.of(block.error_code).name}. Try again.",
            )
        start = block.producer_id_start
        self._spare = range(start, start + block.producer_id_len)


def _hear(allocation: "asyncio.Future[None]") -> None:
    if not allocation.cancelled():
        allocation.exception()
