"""InitProducerId with a transactional id: who is its producer from now on.

A producer that comes without an identity is a new incarnation: whoever was there before it is
fenced. One that names the identity it has wants to go on after an error (KIP-360), and is fenced
if another has come meanwhile.
"""

from barnabas.coordinator.decision import Decision
from barnabas.coordinator.transactions.markers import prepare
from barnabas.coordinator.transactions.metadata import (
    LAST_GIVEN_EPOCH,
    TransactionMetadata,
    TransactionState,
)
from barnabas.coordinator.transactions.errors import concurrent, fenced
from barnabas.coordinator.transactions.state import TransactionCoordinatorState
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from barnabas.wire.records.batch import NO_PRODUCER_EPOCH, NO_PRODUCER_ID


def needs_new_id(transactions: TransactionCoordinatorState, transactional_id: str) -> bool:
    """Whether the producer may have to get an id that nobody had."""
    current = transactions.by_id.get(transactional_id)
    return current is None or current.is_exhausted


def init_producer_id(
    transactions: TransactionCoordinatorState, request: InitProducerIdRequest, new_id: int
) -> Decision[InitProducerIdResponse]:
    """`new_id` is there if one is needed, else -1."""
    current = transactions.by_id.get(request.transactional_id or "")
    if current is None:
        return _renew(transactions, _first(transactions, request, new_id))
    if current.is_ending:
        raise concurrent(current)
    if _is_another(current, request):
        raise fenced(current, request.producer_id, request.producer_epoch)
    if current.state is TransactionState.ONGOING:
        return _fence(transactions, current, new_id)
    return _renew(transactions, _next(transactions, current, request, new_id))


def _first(
    transactions: TransactionCoordinatorState, request: InitProducerIdRequest, new_id: int
) -> TransactionMetadata:
    assert request.transactional_id
    return TransactionMetadata(
        transactional_id=request.transactional_id,
        producer_id=new_id,
        producer_epoch=0,
        timeout_ms=request.transaction_timeout_ms,
        updated_ms=transactions.now_ms(),
        previous_producer_id=new_id,
    )


def _is_another(current: TransactionMetadata, request: InitProducerIdRequest) -> bool:
    """Whether who asks is a producer that this transactional id has no more."""
    if request.producer_id in (NO_PRODUCER_ID, current.producer_id):
        return False
    # It may not have heard that it got a new id when its epochs ran out.
    return (
        request.producer_id != current.previous_producer_id
        or request.producer_epoch < LAST_GIVEN_EPOCH
    )


def _fence(
    transactions: TransactionCoordinatorState, current: TransactionMetadata, new_id: int
) -> Decision[InitProducerIdResponse]:
    """Abort what goes on; who asks shall come again when that is done."""
    aborted = current.fenced(
        transaction_version=transactions.transaction_version,
        next_producer_id=new_id,
        now_ms=transactions.now_ms(),
    )
    meanwhile = InitProducerIdResponse(
        error_code=ErrorCode.CONCURRENT_TRANSACTIONS, producer_epoch=NO_PRODUCER_EPOCH
    )
    return prepare(transactions, aborted, meanwhile)


def _next(
    transactions: TransactionCoordinatorState,
    current: TransactionMetadata,
    request: InitProducerIdRequest,
    new_id: int,
) -> TransactionMetadata:
    given_epoch = request.producer_epoch

    def renewed(producer_id: int, producer_epoch: int) -> TransactionMetadata:
        return current.renewed(
            producer_id,
            producer_epoch,
            last_epoch=given_epoch,
            timeout_ms=request.transaction_timeout_ms,
            now_ms=transactions.now_ms(),
        )

    if given_epoch not in (NO_PRODUCER_EPOCH, current.producer_epoch):
        if given_epoch != current.last_producer_epoch:
            raise fenced(current, request.producer_id, given_epoch)
        return renewed(current.producer_id, current.producer_epoch)  # it asks again
    if current.is_exhausted:
        return renewed(new_id, 0)
    return renewed(current.producer_id, current.producer_epoch + 1)


def _renew(
    transactions: TransactionCoordinatorState, renewed: TransactionMetadata
) -> Decision[InitProducerIdResponse]:
    response = InitProducerIdResponse(
        producer_id=renewed.producer_id, producer_epoch=renewed.producer_epoch
    )
    return Decision(response, [transactions.record(renewed)])
