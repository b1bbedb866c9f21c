"""Blocks of producer ids, which the controller gives to each broker."""

import asyncio

from barnabas.coordinator.answer import Answer
from barnabas.server.broker import Broker
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.allocate_producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)

TIMEOUT_MS = 5_000
"""Producers that wait are then told to ask again, before they lose their patience."""


class ControllerBlocks:
    """Asks the controller for them."""

    __slots__ = ("_asking", "_broker")

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._asking: asyncio.Task[range] | None = None

    def allocate(self) -> Answer[range]:
        answer: Answer[range] = Answer()
        self._asking = asyncio.ensure_future(self._ask())
        self._asking.add_done_callback(lambda done: answer.settle(done.result))
        return answer

    async def _ask(self) -> range:
        broker = self._broker
        registered = broker.image.brokers.get(broker.node_id)
        block: AllocateProducerIdsResponse = await broker.controller.handle(
            AllocateProducerIdsRequest(
                broker_id=broker.node_id, broker_epoch=registered.epoch if registered else -1
            ),
            timeout_ms=TIMEOUT_MS,
        )
        if block.error_code != ErrorCode.NONE:
            raise KafkaError(ErrorCode.of(block.error_code), "No producer ids were given.")
        start = block.producer_id_start
        return range(start, start + block.producer_id_len)
