"""InitProducerId (key 22): assign an id and epoch to an idempotent or transactional producer.

v2 flexible; v3 the producer's current id and epoch; v4 PRODUCER_FENCED for old epochs;
v5 TRANSACTION_ABORTABLE (KIP-890). v6, for two-phase commit, is unstable and not served.
"""

from barnabas.server.request_context import RequestContext
from barnabas.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse


async def handle(request: InitProducerIdRequest, context: RequestContext) -> InitProducerIdResponse:
    return await context.broker.transactions.init_producer_id(request, context.api_version)
