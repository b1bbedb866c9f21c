"""The APIs of transactions that are one call of the transaction coordinator."""

from typing import TYPE_CHECKING

from barnabas.server.api.groups import in_chunks
from barnabas.server.request_context import RequestContext
from barnabas.wire.messages.transaction_descriptions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)

if TYPE_CHECKING:
    from barnabas.wire.messages.producer_ids import InitProducerIdRequest, InitProducerIdResponse
    from barnabas.wire.messages.transaction_descriptions import (
        ListTransactionsRequest,
        ListTransactionsResponse,
    )
    from barnabas.wire.messages.transactions import (
        AddOffsetsToTxnRequest,
        AddOffsetsToTxnResponse,
        AddPartitionsToTxnRequest,
        AddPartitionsToTxnResponse,
        EndTxnRequest,
        EndTxnResponse,
    )


async def init_producer_id(
    request: "InitProducerIdRequest", context: RequestContext
) -> "InitProducerIdResponse":
    """InitProducerId (key 22): assign an id and epoch to an idempotent or transactional producer.

    v2 flexible; v3 the producer's current id and epoch; v4 PRODUCER_FENCED for old epochs;
    v5 TRANSACTION_ABORTABLE (KIP-890). v6, for two-phase commit, is unstable and not served.
    """
    return await context.broker.transactions.init_producer_id(request, context.api_version)


async def add_partitions(
    request: "AddPartitionsToTxnRequest", context: RequestContext
) -> "AddPartitionsToTxnResponse":
    """AddPartitionsToTxn (key 24): add partitions to a transaction.

    v2 PRODUCER_FENCED; v3 flexible; v4 several transactions at once, and only verifying, for
    brokers; v5 TRANSACTION_ABORTABLE (KIP-890).
    """
    return await context.broker.transactions.add_partitions(request, context.api_version)


async def add_offsets(
    request: "AddOffsetsToTxnRequest", context: RequestContext
) -> "AddOffsetsToTxnResponse":
    """AddOffsetsToTxn (key 25): add the offsets of a group to a transaction.

    v2 PRODUCER_FENCED; v3 flexible; v4 TRANSACTION_ABORTABLE (KIP-890).
    """
    return await context.broker.transactions.add_offsets(request, context.api_version)


async def end(request: "EndTxnRequest", context: RequestContext) -> "EndTxnResponse":
    """EndTxn (key 26): commit or abort a transaction.

    v2 PRODUCER_FENCED; v3 flexible; v4 TRANSACTION_ABORTABLE; v5 the next transaction has another
    epoch, which the response contains (KIP-890).
    """
    return await context.broker.transactions.end(request, context.api_version)


async def describe(
    request: DescribeTransactionsRequest, context: RequestContext
) -> DescribeTransactionsResponse:
    """DescribeTransactions (key 65): the states of transactions, and their partitions."""
    return DescribeTransactionsResponse(
        transaction_states=await in_chunks(
            request.transactional_ids, context.broker.transactions.describe
        )
    )


async def list_transactions(
    request: "ListTransactionsRequest", context: RequestContext
) -> "ListTransactionsResponse":
    """ListTransactions (key 66): the transactional ids that this broker coordinates.

    v1 filter by duration; v2 filter by a pattern of the id (KIP-1152).
    """
    return await context.broker.transactions.list(request)
