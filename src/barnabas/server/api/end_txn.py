"""EndTxn (key 26): commit or abort a transaction.

v2 PRODUCER_FENCED; v3 flexible; v4 TRANSACTION_ABORTABLE; v5 the next transaction has another
epoch, which the response contains (KIP-890).
"""

from barnabas.server.request_context import RequestContext
from barnabas.wire.messages.end_txn import EndTxnRequest, EndTxnResponse


async def handle(request: EndTxnRequest, context: RequestContext) -> EndTxnResponse:
    return await context.broker.transactions.end(request, context.api_version)
