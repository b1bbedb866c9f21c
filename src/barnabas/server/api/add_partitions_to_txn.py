"""AddPartitionsToTxn (key 24): add partitions to a transaction.

v2 PRODUCER_FENCED; v3 flexible; v4 several transactions at once, and only verifying, for brokers;
v5 TRANSACTION_ABORTABLE (KIP-890).
"""

from barnabas.server.request_context import RequestContext
from barnabas.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
)


async def handle(
    request: AddPartitionsToTxnRequest, context: RequestContext
) -> AddPartitionsToTxnResponse:
    return await context.broker.transactions.add_partitions(request, context.api_version)
