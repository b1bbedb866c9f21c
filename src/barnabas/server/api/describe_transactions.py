"""DescribeTransactions (key 65): where transactions stand, and what they wrote to."""

from barnabas.server.call import Call
from barnabas.wire.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)


async def handle(request: DescribeTransactionsRequest, call: Call) -> DescribeTransactionsResponse:
    return await call.broker.transactions.describe(request)
