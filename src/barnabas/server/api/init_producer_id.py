"""InitProducerId (key 22): an identity for an idempotent producer.

v2 flexible; v3 the producer's present id and epoch; v4 PRODUCER_FENCED for old epochs;
v5 as v4, for transactions of version 2. v6, for two-phase commit, may still change: not served.
"""

from barnabas.server.call import Call
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

NONE_YET = -1


async def handle(request: InitProducerIdRequest, call: Call) -> InitProducerIdResponse:
    refusal = _refusal(request, call)
    if refusal is not None:
        return InitProducerIdResponse(error_code=refusal, producer_epoch=NONE_YET)
    # Kafka, too, gives an idempotent producer a new id whatever id and epoch it had.
    producer_id = await call.broker.producer_ids.take(call.broker)
    return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)


def _refusal(request: InitProducerIdRequest, call: Call) -> ErrorCode | None:
    if (request.producer_id == NONE_YET) != (request.producer_epoch == NONE_YET):
        return ErrorCode.INVALID_REQUEST
    if request.transactional_id is None:
        return None
    if not request.transactional_id:
        return ErrorCode.INVALID_REQUEST
    longest_ms = call.broker.settings["transaction.max.timeout.ms"]
    if not 0 < request.transaction_timeout_ms <= longest_ms:
        return ErrorCode.INVALID_TRANSACTION_TIMEOUT
    return ErrorCode.NOT_COORDINATOR
