"""Blocks of producer ids, which the controller allocates to each broker."""

import asyncio

from barnabas.coordinator.pending_response import PendingResponse
from barnabas.server.nodes import BrokerNode
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)

TIMEOUT_MS = 5_000
"""Producers that wait then get a retriable error, before their own request times out."""


class ProducerIdBlockAllocator:
    """Requests blocks from the controller."""

    __slots__ = ("_broker", "_request")

    def __init__(self, broker: BrokerNode) -> None:
        self._broker = broker
        self._request: asyncio.Task[range] | None = None

    def allocate(self) -> PendingResponse[range]:
        pending: PendingResponse[range] = PendingResponse()
        self._request = asyncio.ensure_future(self._allocate())
        self._request.add_done_callback(lambda done: pending.complete_with(done.result))
        return pending

    async def _allocate(self) -> range:
        broker = self._broker
        registered = broker.image.brokers.get(broker.node_id)
        block: AllocateProducerIdsResponse = await broker.controller.handle(
            AllocateProducerIdsRequest(
                broker_id=broker.node_id, broker_epoch=registered.epoch if registered else -1
            ),
            timeout_ms=TIMEOUT_MS,
        )
        if block.error_code != ErrorCode.NONE:
            raise KafkaError(ErrorCode.of(block.error_code), "The controller allocated no ids.")
        start = block.producer_id_start
        return range(start, start + block.producer_id_len)
