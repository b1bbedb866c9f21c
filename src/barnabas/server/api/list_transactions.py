"""ListTransactions (key 66): the transactional ids that this broker coordinates.

v1 filter by duration; v2 filter by a pattern of the id (KIP-1152).
"""

from barnabas.server.request_context import RequestContext
from barnabas.wire.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
)


async def handle(
    request: ListTransactionsRequest, context: RequestContext
) -> ListTransactionsResponse:
    return await context.broker.transactions.list(request)
