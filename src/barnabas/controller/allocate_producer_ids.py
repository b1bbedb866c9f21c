"""AllocateProducerIds (key 67): allocates a block of producer ids to a broker."""

from typing import Final

from barnabas.controller.broker_lifecycle import require_broker_epoch
from barnabas.controller.context import ControllerContext, ControllerDecision
from barnabas.decision import Decision
from barnabas.metadata.image import MetadataImage
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.metadata_records import ProducerIdsRecord
from barnabas.wire.messages.producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)

BLOCK_SIZE: Final = 1000
_MAX_PRODUCER_ID: Final = 2**63 - 1


def decide(
    request: AllocateProducerIdsRequest, image: MetadataImage, context: ControllerContext
) -> ControllerDecision:
    require_broker_epoch(request.broker_id, request.broker_epoch, image)
    start = image.next_producer_id
    if start > _MAX_PRODUCER_ID - BLOCK_SIZE:
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "All producer ids have been allocated.")
    record = ProducerIdsRecord(
        broker_id=request.broker_id,
        broker_epoch=request.broker_epoch,
        next_producer_id=start + BLOCK_SIZE,
    )
    response = AllocateProducerIdsResponse(producer_id_start=start, producer_id_len=BLOCK_SIZE)
    return Decision([record], response)
