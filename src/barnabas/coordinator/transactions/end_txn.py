"""EndTxn: commit or abort.

In the older flow (v0-4) the epoch stays, and who asks again is known by the state. From v5 on
(KIP-890) every end bumps the epoch, so who comes with the epoch before is asking again; and an
abort may find nothing to abort: the producer needs the next epoch all the same.
"""

from barnabas.coordinator.decision import Decision
from barnabas.coordinator.transactions.markers import prepare
from barnabas.coordinator.transactions.metadata import (
    LAST_GIVEN_EPOCH,
    TransactionMetadata,
    TransactionState,
)
from barnabas.coordinator.transactions.errors import (
    concurrent,
    fenced,
    not_its_producer,
    unknown,
    wrong_state,
)
from barnabas.coordinator.transactions.state import TransactionCoordinatorState
from barnabas.log import BUMPING_VERSION
from barnabas.wire.messages.end_txn import EndTxnRequest, EndTxnResponse
from barnabas.wire.records.batch import NO_PRODUCER_ID

FIRST_VERSION_THAT_BUMPS = 5


def end(
    transactions: TransactionCoordinatorState, request: EndTxnRequest, api_version: int, new_id: int
) -> Decision[EndTxnResponse]:
    """`new_id` is there if the epochs of the present one are used up, else -1."""
    current = transactions.by_id.get(request.transactional_id)
    if current is None:
        raise unknown(request.transactional_id)
    if api_version < FIRST_VERSION_THAT_BUMPS:
        return _end_staying(transactions, current, request)
    return _end_bumping(transactions, current, request, new_id)


def takes_last_epoch(transactions: TransactionCoordinatorState, transactional_id: str, api_version: int) -> bool:
    """Whether a new producer id has to follow the end."""
    current = transactions.by_id.get(transactional_id)
    return api_version >= FIRST_VERSION_THAT_BUMPS and current is not None and current.is_exhausted


def _end_staying(
    transactions: TransactionCoordinatorState, current: TransactionMetadata, request: EndTxnRequest
) -> Decision[EndTxnResponse]:
    if request.producer_id != current.producer_id:
        raise not_its_producer(current, request.producer_id)
    if request.producer_epoch != current.producer_epoch:
        raise fenced(current, request.producer_id, request.producer_epoch)
    if current.is_ending:
        raise concurrent(current)
    if current.state is TransactionState.ONGOING:
        return _prepare(transactions, current, request, client_version=0)
    if _ended_as(current, request):
        return Decision(_told(current))
    raise wrong_state(current, committed=request.committed)


def _end_bumping(
    transactions: TransactionCoordinatorState, current: TransactionMetadata, request: EndTxnRequest, new_id: int
) -> Decision[EndTxnResponse]:
    if current.is_ending:
        # Before who it is: the producer may have been told already which id and epoch come next.
        raise concurrent(current)
    has_rotated = (
        request.producer_id == current.previous_producer_id
        and request.producer_epoch == LAST_GIVEN_EPOCH
        and current.producer_epoch == 0
    )
    if request.producer_id != current.producer_id and not has_rotated:
        raise not_its_producer(current, request.producer_id)
    if request.producer_epoch == current.producer_epoch and not has_rotated:
        if current.state is not TransactionState.ONGOING and request.committed:
            raise wrong_state(current, committed=True)
        return _prepare(
            transactions, current, request, client_version=BUMPING_VERSION, new_id=new_id
        )
    is_repeated = has_rotated or request.producer_epoch + 1 == current.producer_epoch
    if current.state in (TransactionState.ONGOING, TransactionState.EMPTY) or not is_repeated:
        raise fenced(current, request.producer_id, request.producer_epoch)
    if _ended_as(current, request):
        return Decision(_told(current))
    raise wrong_state(current, committed=request.committed)


def _prepare(
    transactions: TransactionCoordinatorState,
    current: TransactionMetadata,
    request: EndTxnRequest,
    *,
    client_version: int,
    new_id: int = NO_PRODUCER_ID,
) -> Decision[EndTxnResponse]:
    now_ms = transactions.now_ms()
    prepared = current.ended(
        committed=request.committed,
        client_version=client_version,
        next_producer_id=new_id if current.is_exhausted else NO_PRODUCER_ID,
        now_ms=now_ms,
    )
    # The producer may go on at once, so it is told who it is after the end.
    return prepare(transactions, prepared, _told(prepared.completed(now_ms)))


def _ended_as(current: TransactionMetadata, request: EndTxnRequest) -> bool:
    outcome = (
        TransactionState.COMPLETE_COMMIT if request.committed else TransactionState.COMPLETE_ABORT
    )
    return current.state is outcome


def _told(current: TransactionMetadata) -> EndTxnResponse:
    return EndTxnResponse(producer_id=current.producer_id, producer_epoch=current.producer_epoch)
