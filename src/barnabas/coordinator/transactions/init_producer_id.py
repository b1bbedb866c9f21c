"""InitProducerId (key 22) with a transactional id: the producer of the id from now on.

A producer that names no producer id is a new incarnation: it fences the one before. A producer
that names its id and epoch recovers after an error (KIP-360), and is fenced if another producer
has come since.
"""

import logging
from typing import TYPE_CHECKING

from barnabas.coordinator.decision import CoordinatorDecision, log_line
from barnabas.coordinator.transactions.markers import prepare
from barnabas.coordinator.transactions.metadata import (
    LAST_ASSIGNED_EPOCH,
    TransactionContext,
    TransactionMetadata,
    TransactionState,
    concurrent_transactions,
    fenced,
)
from barnabas.coordinator.transactions.records import to_record
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.producer_ids import InitProducerIdRequest, InitProducerIdResponse
from barnabas.wire.records.batch import NO_PRODUCER_EPOCH, NO_PRODUCER_ID

if TYPE_CHECKING:
    from barnabas.coordinator.transactions.state import TransactionCoordinatorState

log = logging.getLogger(__name__)


def needs_new_producer_id(transactional_id: str, state: "TransactionCoordinatorState") -> bool:
    current = state.by_id.get(transactional_id)
    return current is None or current.is_exhausted


def init_producer_id(
    request: InitProducerIdRequest,
    state: "TransactionCoordinatorState",
    context: TransactionContext,
) -> CoordinatorDecision[InitProducerIdResponse]:
    current = state.by_id.get(request.transactional_id or "")
    if current is None:
        return _write(_first(request, context), context)
    if current.is_ending:
        raise concurrent_transactions(current)
    if _is_replaced(request, current):
        raise fenced(current, request.producer_id, request.producer_epoch)
    if current.state is TransactionState.ONGOING:
        return _abort(request, current, context)
    return _write(_next(request, current, context), context)


def _first(request: InitProducerIdRequest, context: TransactionContext) -> TransactionMetadata:
    assert request.transactional_id
    return TransactionMetadata(
        transactional_id=request.transactional_id,
        producer_id=context.new_producer_id,
        producer_epoch=0,
        timeout_ms=request.transaction_timeout_ms,
        updated_ms=context.now_ms,
        previous_producer_id=context.new_producer_id,
    )


def _is_replaced(request: InitProducerIdRequest, current: TransactionMetadata) -> bool:
    """Whether the sender is no longer the producer of this transactional id."""
    if request.producer_id in (NO_PRODUCER_ID, current.producer_id):
        return False
    # It may not know yet that it got a new id when its epochs ran out.
    return (
        request.producer_id != current.previous_producer_id
        or request.producer_epoch < LAST_ASSIGNED_EPOCH
    )


def _abort(
    request: InitProducerIdRequest, current: TransactionMetadata, context: TransactionContext
) -> CoordinatorDecision[InitProducerIdResponse]:
    """Aborts the ongoing transaction. The producer retries until that is done."""
    aborted = current.fenced(
        transaction_version=context.transaction_version,
        next_producer_id=context.new_producer_id,
        now_ms=context.now_ms,
    )
    response = InitProducerIdResponse(
        error_code=ErrorCode.CONCURRENT_TRANSACTIONS, producer_epoch=NO_PRODUCER_EPOCH
    )
    is_new_producer = request.producer_id == NO_PRODUCER_ID
    lines = [log_line(_log_fenced, current)] if is_new_producer else []
    return prepare(aborted, response, context, *lines)


def _log_fenced(last: TransactionMetadata) -> None:
    log.info(
        "The transaction of %s is aborted: a new producer with this transactional id fences the "
        "one that began it (producer id %d, epoch %d)",
        last.transactional_id,
        last.producer_id,
        last.producer_epoch,
    )


def _next(
    request: InitProducerIdRequest, current: TransactionMetadata, context: TransactionContext
) -> TransactionMetadata:
    request_epoch = request.producer_epoch

    def renewed(producer_id: int, producer_epoch: int) -> TransactionMetadata:
        return current.renewed(
            producer_id,
            producer_epoch,
            last_epoch=request_epoch,
            timeout_ms=request.transaction_timeout_ms,
            now_ms=context.now_ms,
        )

    if request_epoch not in (NO_PRODUCER_EPOCH, current.producer_epoch):
        if request_epoch != current.last_producer_epoch:
            raise fenced(current, request.producer_id, request_epoch)
        return renewed(current.producer_id, current.producer_epoch)  # a retry
    if current.is_exhausted:
        return renewed(context.new_producer_id, 0)
    return renewed(current.producer_id, current.producer_epoch + 1)


def _write(
    renewed: TransactionMetadata, context: TransactionContext
) -> CoordinatorDecision[InitProducerIdResponse]:
    response = InitProducerIdResponse(
        producer_id=renewed.producer_id, producer_epoch=renewed.producer_epoch
    )
    return CoordinatorDecision([to_record(renewed, context.transaction_version)], response)
