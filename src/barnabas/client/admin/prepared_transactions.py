"""Prepared transactions: completed by another client than the producer that wrote them."""

from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from barnabas.client.admin.requests import AdminRequests, one_request_per_item
from barnabas.client.admin.results import Results, error_or_none
from barnabas.client.admin.transactions import TransactionState
from barnabas.client.admin.validation import UNSET, require_list
from barnabas.client.cluster import CoordinatorType, Deadline
from barnabas.client.errors import KafkaError, broker_error
from barnabas.client.producer.transaction_manager import (
    LAST_V1_END_TXN,
    TRANSACTION_V2,
    TRANSACTION_VERSION_FEATURE,
)
from barnabas.client.values import PreparedTransaction
from barnabas.net.handshake import API_VERSIONS_REQUEST
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.producer_ids import InitProducerIdRequest
from barnabas.wire.messages.transaction_descriptions import DescribeTransactionsRequest
from barnabas.wire.messages.transactions import EndTxnRequest

_ENDED_ERRORS = frozenset(
    {
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
    }
)
"""The id has another epoch or producer by now, or has expired: the transaction has ended."""

_COMMITTED = (TransactionState.PREPARE_COMMIT, TransactionState.COMPLETE_COMMIT)
_ABORTED = (TransactionState.PREPARE_ABORT, TransactionState.COMPLETE_ABORT)


def complete_transactions(
    admin: AdminRequests,
    prepared: list[PreparedTransaction],
    committed: bool,
    *,
    request_timeout: float = UNSET,
) -> Coroutine[Any, Any, Results[PreparedTransaction, None]]:
    """Commits, or aborts, prepared transactions; results are by transaction.

    A transaction may have been completed before. The error is INVALID_TXN_STATE for one that was
    aborted and cannot be committed any more, and TRANSACTIONAL_ID_NOT_FOUND if its outcome cannot
    be found out because its id has expired or was used again.
    """
    require_list("prepared", prepared, PreparedTransaction)
    return _complete(admin, prepared, committed, admin.deadline(request_timeout))


def fence_transactions(
    admin: AdminRequests, transactions: list[PreparedTransaction], *, request_timeout: float = UNSET
) -> Coroutine[Any, Any, Results[PreparedTransaction, None]]:
    """Aborts open transactions and fences their producers; results are by transaction.

    With transaction version 2 a transaction that has ended keeps its outcome. Before that
    version the outcome cannot be found out afterwards.
    """
    require_list("transactions", transactions, PreparedTransaction)
    return _fence(admin, transactions, admin.deadline(request_timeout))


async def _complete(
    admin: AdminRequests, prepared: list[PreparedTransaction], committed: bool, deadline: Deadline
) -> Results[PreparedTransaction, None]:
    max_version = None if await _has_transaction_version_2(admin, deadline) else LAST_V1_END_TXN

    async def end(node: int | None, transaction: PreparedTransaction) -> KafkaError | None:
        request = EndTxnRequest(
            transactional_id=transaction.transactional_id,
            producer_id=transaction.producer_id,
            producer_epoch=transaction.epoch,
            committed=committed,
        )
        response = await admin.send(request, node, deadline=deadline, max_version=max_version)
        is_over = (
            response.error_code in _ENDED_ERRORS
            or response.error_code == ErrorCode.INVALID_TXN_STATE
        )
        if is_over and not committed:
            return None  # there is nothing left to abort
        if response.error_code in _ENDED_ERRORS:
            return await _find_outcome(admin, node, transaction, deadline)
        if response.error_code == ErrorCode.INVALID_TXN_STATE:
            return _aborted(transaction)
        return error_or_none(response.error_code)

    return await _route(admin, prepared, end, deadline)


async def _fence(
    admin: AdminRequests, transactions: list[PreparedTransaction], deadline: Deadline
) -> Results[PreparedTransaction, None]:
    if await _has_transaction_version_2(admin, deadline):
        return await _complete(admin, transactions, False, deadline)  # brings another epoch

    async def fence(node: int | None, transaction: PreparedTransaction) -> KafkaError | None:
        # With the id and epoch of its producer, so that the id is left aborted, not used again.
        request = InitProducerIdRequest(
            transactional_id=transaction.transactional_id,
            transaction_timeout_ms=admin.settings.request_timeout_ms,
            producer_id=transaction.producer_id,
            producer_epoch=transaction.epoch,
        )
        response = await admin.send(request, node, deadline=deadline)
        is_done = response.error_code in {ErrorCode.CONCURRENT_TRANSACTIONS, *_ENDED_ERRORS}
        return None if is_done else error_or_none(response.error_code)

    return await _route(admin, transactions, fence, deadline)


async def _find_outcome(
    admin: AdminRequests, node: int | None, transaction: PreparedTransaction, deadline: Deadline
) -> KafkaError | None:
    """Returns None if a transaction whose id has another epoch by now was committed."""
    request = DescribeTransactionsRequest(transactional_ids=[transaction.transactional_id])
    (described,) = (await admin.send(request, node, deadline=deadline)).transaction_states
    if described.error_code not in (ErrorCode.NONE, ErrorCode.TRANSACTIONAL_ID_NOT_FOUND):
        return broker_error(described.error_code)
    state = TransactionState(described.transaction_state)
    epochs = (
        described.producer_epoch - transaction.epoch
        if described.producer_id == transaction.producer_id
        else None
    )
    if epochs == 1 and state in _COMMITTED:
        return None
    # With transaction version 2 a client that fences the producer adds an epoch of its own.
    if epochs in (1, 2) and state in _ABORTED:
        return _aborted(transaction)
    if state is TransactionState.ONGOING:
        # Its abort may be in progress, and may still fail with the coordinator.
        return broker_error(ErrorCode.CONCURRENT_TRANSACTIONS)
    return KafkaError(
        ErrorCode.TRANSACTIONAL_ID_NOT_FOUND,
        f"it is unknown whether {_name_of(transaction)} was committed: its id was used again, or "
        f"has expired after the brokers' transactional.id.expiration.ms",
    )


async def _has_transaction_version_2(admin: AdminRequests, deadline: Deadline) -> bool:
    response = await admin.send(API_VERSIONS_REQUEST, deadline=deadline)
    levels = {feature.name: feature.max_version_level for feature in response.finalized_features}
    return bool(levels.get(TRANSACTION_VERSION_FEATURE, 0) >= TRANSACTION_V2)


async def _route(
    admin: AdminRequests,
    transactions: list[PreparedTransaction],
    send: Callable[[int | None, PreparedTransaction], Awaitable[KafkaError | None]],
    deadline: Deadline,
) -> Results[PreparedTransaction, None]:
    by_id = {transaction.transactional_id: transaction for transaction in transactions}
    results = await admin.route_to_coordinators(
        CoordinatorType.TRANSACTION,
        by_id,
        one_request_per_item(lambda node, name: send(node, by_id[name])),
        deadline,
    )
    return Results({by_id[name]: results.errors.get(name) for name in by_id})


def _aborted(transaction: PreparedTransaction) -> KafkaError:
    reason = f"{_name_of(transaction)} was aborted, and cannot be committed"
    return KafkaError(ErrorCode.INVALID_TXN_STATE, reason)


def _name_of(transaction: PreparedTransaction) -> str:
    producer = f"producer {transaction.producer_id}, epoch {transaction.epoch}"
    return f"{transaction.transactional_id} ({producer})"
