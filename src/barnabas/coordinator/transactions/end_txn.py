"""EndTxn (key 26): commit or abort a transaction.

Up to v4 the epoch stays, and a retry is recognized by the state. From v5 on (KIP-890) every end
bumps the epoch: a request with the epoch before is a retry. An abort may then have nothing to
abort, and the producer needs the next epoch all the same.
"""

from typing import TYPE_CHECKING

from barnabas.coordinator.decision import CoordinatorDecision
from barnabas.coordinator.transactions.markers import prepare
from barnabas.coordinator.transactions.metadata import (
    LAST_ASSIGNED_EPOCH,
    TransactionContext,
    TransactionMetadata,
    TransactionState,
    concurrent_transactions,
    fenced,
    invalid_state,
    other_producer_id,
    unknown_transactional_id,
)
from barnabas.log import EPOCH_BUMP_TRANSACTION_VERSION
from barnabas.wire.messages.transactions import EndTxnRequest, EndTxnResponse
from barnabas.wire.records.batch import NO_PRODUCER_ID

if TYPE_CHECKING:
    from barnabas.coordinator.transactions.state import TransactionCoordinatorState

FIRST_VERSION_THAT_BUMPS = 5


def end_transaction(
    request: EndTxnRequest, state: "TransactionCoordinatorState", context: TransactionContext
) -> CoordinatorDecision[EndTxnResponse]:
    current = state.by_id.get(request.transactional_id)
    if current is None:
        raise unknown_transactional_id(request.transactional_id)
    if context.api_version < FIRST_VERSION_THAT_BUMPS:
        return _end_with_same_epoch(request, current, context)
    return _end_with_next_epoch(request, current, context)


def needs_new_producer_id(
    request: EndTxnRequest, state: "TransactionCoordinatorState", api_version: int
) -> bool:
    """Whether the end uses the last epoch, so that a new producer id has to follow."""
    current = state.by_id.get(request.transactional_id)
    return api_version >= FIRST_VERSION_THAT_BUMPS and current is not None and current.is_exhausted


def _end_with_same_epoch(
    request: EndTxnRequest, current: TransactionMetadata, context: TransactionContext
) -> CoordinatorDecision[EndTxnResponse]:
    if request.producer_id != current.producer_id:
        raise other_producer_id(current, request.producer_id)
    if request.producer_epoch != current.producer_epoch:
        raise fenced(current, request.producer_id, request.producer_epoch)
    if current.is_ending:
        raise concurrent_transactions(current)
    if current.state is TransactionState.ONGOING:
        return _prepare(request, current, context, client_version=0)
    if _has_ended_as(request, current):
        return CoordinatorDecision((), _response(current))
    raise invalid_state(current, committed=request.committed)


def _end_with_next_epoch(
    request: EndTxnRequest, current: TransactionMetadata, context: TransactionContext
) -> CoordinatorDecision[EndTxnResponse]:
    if current.is_ending:
        # Checked before the producer: it may know the id and epoch that come next already.
        raise concurrent_transactions(current)
    has_rotated = (
        request.producer_id == current.previous_producer_id
        and request.producer_epoch == LAST_ASSIGNED_EPOCH
        and current.producer_epoch == 0
    )
    if request.producer_id != current.producer_id and not has_rotated:
        raise other_producer_id(current, request.producer_id)
    if request.producer_epoch == current.producer_epoch and not has_rotated:
        if current.state is not TransactionState.ONGOING and request.committed:
            raise invalid_state(current, committed=True)
        return _prepare(request, current, context, client_version=EPOCH_BUMP_TRANSACTION_VERSION)
    is_retry = has_rotated or request.producer_epoch + 1 == current.producer_epoch
    if current.state in (TransactionState.ONGOING, TransactionState.EMPTY) or not is_retry:
        raise fenced(current, request.producer_id, request.producer_epoch)
    if _has_ended_as(request, current):
        return CoordinatorDecision((), _response(current))
    raise invalid_state(current, committed=request.committed)


def _prepare(
    request: EndTxnRequest,
    current: TransactionMetadata,
    context: TransactionContext,
    *,
    client_version: int,
) -> CoordinatorDecision[EndTxnResponse]:
    prepared = current.ended(
        committed=request.committed,
        client_version=client_version,
        next_producer_id=context.new_producer_id if current.is_exhausted else NO_PRODUCER_ID,
        now_ms=context.now_ms,
    )
    # The producer may begin the next transaction at once: the response has its id and epoch there.
    return prepare(prepared, _response(prepared.completed(context.now_ms)), context)


def _has_ended_as(request: EndTxnRequest, current: TransactionMetadata) -> bool:
    outcome = (
        TransactionState.COMPLETE_COMMIT if request.committed else TransactionState.COMPLETE_ABORT
    )
    return current.state is outcome


def _response(current: TransactionMetadata) -> EndTxnResponse:
    return EndTxnResponse(producer_id=current.producer_id, producer_epoch=current.producer_epoch)
