"""DescribeTransactions (key 65): where transactions stand, and what they wrote to."""

from barnabas.server.group_requests import in_slices
from barnabas.server.request_context import Call
from barnabas.wire.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)


async def handle(request: DescribeTransactionsRequest, call: Call) -> DescribeTransactionsResponse:
    return DescribeTransactionsResponse(
        transaction_states=await in_slices(
            request.transactional_ids, call.broker.transactions.describe
        )
    )
