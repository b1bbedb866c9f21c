"""DescribeTransactions (key 65): the states of transactions, and their partitions."""

from barnabas.server.group_requests import in_chunks
from barnabas.server.request_context import RequestContext
from barnabas.wire.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)


async def handle(
    request: DescribeTransactionsRequest, context: RequestContext
) -> DescribeTransactionsResponse:
    return DescribeTransactionsResponse(
        transaction_states=await in_chunks(
            request.transactional_ids, context.broker.transactions.describe
        )
    )
