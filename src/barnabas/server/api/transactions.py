"""The APIs of transactions that are one call of the transaction coordinator."""

from typing import TYPE_CHECKING

from barnabas.coordinator.transactions.add_partitions import FIRST_VERSION_FOR_BROKERS
from barnabas.security.authorizer.model import (
    CLUSTER,
    AclOperation,
    ResourceType,
    group_resource,
    transactional_id_resource,
)
from barnabas.server.api.groups import in_chunks
from barnabas.server.authorization import is_describable
from barnabas.server.request_context import RequestContext
from barnabas.server.topic_authorization import split_by_permission
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.transaction_descriptions import (
    DescribedTransactionState,
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
    if context.broker.authorizer is not None:
        _require_producer(request.transactional_id, context)
    return await context.broker.transactions.init_producer_id(request, context.api_version)


async def add_partitions(
    request: "AddPartitionsToTxnRequest", context: RequestContext
) -> "AddPartitionsToTxnResponse":
    """AddPartitionsToTxn (key 24): add partitions to a transaction.

    v2 PRODUCER_FENCED; v3 flexible; v4 several transactions at once, and only verifying, for
    brokers; v5 TRANSACTION_ABORTABLE (KIP-890).
    """
    coordinator = context.broker.transactions
    if context.broker.authorizer is None:
        return await coordinator.add_partitions(request, context.api_version)
    if context.api_version >= FIRST_VERSION_FOR_BROKERS:
        context.require_allowed(AclOperation.CLUSTER_ACTION, CLUSTER)
        return await coordinator.add_partitions(request, context.api_version)
    _require_write(request.v3_and_below_transactional_id, context)
    topics = request.v3_and_below_topics
    _, rejected = split_by_permission(topics, AclOperation.WRITE, context)
    return await coordinator.add_partitions(
        request, context.api_version, denied_topics={topic.name for topic in rejected}
    )


async def add_offsets(
    request: "AddOffsetsToTxnRequest", context: RequestContext
) -> "AddOffsetsToTxnResponse":
    """AddOffsetsToTxn (key 25): add the offsets of a group to a transaction.

    v2 PRODUCER_FENCED; v3 flexible; v4 TRANSACTION_ABORTABLE (KIP-890).
    """
    _require_write(request.transactional_id, context)
    context.require_allowed(AclOperation.READ, group_resource(request.group_id))
    return await context.broker.transactions.add_offsets(request, context.api_version)


async def end(request: "EndTxnRequest", context: RequestContext) -> "EndTxnResponse":
    """EndTxn (key 26): commit or abort a transaction.

    v2 PRODUCER_FENCED; v3 flexible; v4 TRANSACTION_ABORTABLE; v5 the next transaction has another
    epoch, which the response contains (KIP-890).
    """
    _require_write(request.transactional_id, context)
    return await context.broker.transactions.end(request, context.api_version)


async def describe(
    request: DescribeTransactionsRequest, context: RequestContext
) -> DescribeTransactionsResponse:
    """DescribeTransactions (key 65): the states of transactions, and their partitions."""
    describe_chunk = context.broker.transactions.describe
    if context.broker.authorizer is None:
        states = await in_chunks(request.transactional_ids, describe_chunk)
        return DescribeTransactionsResponse(transaction_states=states)
    allowed, states = [], []
    for transactional_id in request.transactional_ids:
        if context.is_allowed(AclOperation.DESCRIBE, transactional_id_resource(transactional_id)):
            allowed.append(transactional_id)
        else:
            error = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
            states.append(
                DescribedTransactionState(transactional_id=transactional_id, error_code=error)
            )
    for state in await in_chunks(allowed, describe_chunk):
        state.topics = [topic for topic in state.topics if is_describable(topic.topic, context)]
        states.append(state)
    return DescribeTransactionsResponse(transaction_states=states)


async def list_transactions(
    request: "ListTransactionsRequest", context: RequestContext
) -> "ListTransactionsResponse":
    """ListTransactions (key 66): the transactional ids that this broker coordinates.

    v1 filter by duration; v2 filter by a pattern of the id (KIP-1152).
    """
    response = await context.broker.transactions.list(request)
    if context.broker.authorizer is not None:
        response.transaction_states = [
            state
            for state in response.transaction_states
            if context.is_allowed(
                AclOperation.DESCRIBE,
                transactional_id_resource(state.transactional_id),
                is_audited=False,
            )
        ]
    return response


def _require_write(transactional_id: str, context: RequestContext) -> None:
    if context.broker.authorizer is not None:
        context.require_allowed(AclOperation.WRITE, transactional_id_resource(transactional_id))


def _require_producer(transactional_id: str | None, context: RequestContext) -> None:
    """Raises KafkaError unless the client may be a producer.

    One without a transactional id must be allowed to write to some topic.
    """
    if transactional_id is not None:
        _require_write(transactional_id, context)
    elif not context.is_allowed_on_any(AclOperation.WRITE, ResourceType.TOPIC):
        context.require_allowed(AclOperation.IDEMPOTENT_WRITE, CLUSTER)
