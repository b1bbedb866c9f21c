"""Transactions: list, describe, abort hanging ones, fence producers, complete prepared ones.

A prepared transaction may be completed by another client than the producer that wrote it.
"""

from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from barnabas.client.admin.requests import UNSET, AdminRequests, one_request_per_item, require_list
from barnabas.client.admin.results import Results, error_of
from barnabas.client.cluster import CoordinatorType, Deadline
from barnabas.client.errors import KafkaError, broker_error
from barnabas.client.producer.transaction_manager import (
    LAST_V1_END_TXN,
    TRANSACTION_V2,
    TRANSACTION_VERSION_FEATURE,
)
from barnabas.client.values import PreparedTransaction, TopicPartition
from barnabas.net.handshake import API_VERSIONS_REQUEST
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.producer_ids import InitProducerIdRequest
from barnabas.wire.messages.transaction_descriptions import (
    DescribedTransactionState as DescribedTransaction,
)
from barnabas.wire.messages.transaction_descriptions import (
    DescribeTransactionsRequest,
    ListTransactionsRequest,
)
from barnabas.wire.messages.transaction_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from barnabas.wire.messages.transactions import EndTxnRequest

_NO_COORDINATOR_EPOCH = -1

_ENDED_ERRORS = frozenset(
    {
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
    }
)
"""The id has another epoch or producer by now, or has expired: the transaction has ended."""


class TransactionState(Enum):
    """The state of a transaction, as the protocol spells it."""

    EMPTY = "Empty"
    ONGOING = "Ongoing"
    PREPARE_COMMIT = "PrepareCommit"
    PREPARE_ABORT = "PrepareAbort"
    COMPLETE_COMMIT = "CompleteCommit"
    COMPLETE_ABORT = "CompleteAbort"
    PREPARE_EPOCH_FENCE = "PrepareEpochFence"
    DEAD = "Dead"
    UNKNOWN = "Unknown"

    @classmethod
    def _missing_(cls, value: object) -> "TransactionState":
        return cls.UNKNOWN


_COMMITTED = (TransactionState.PREPARE_COMMIT, TransactionState.COMPLETE_COMMIT)
_ABORTED = (TransactionState.PREPARE_ABORT, TransactionState.COMPLETE_ABORT)


@dataclass(slots=True, frozen=True)
class TransactionListing:
    transactional_id: str
    producer_id: int
    state: TransactionState


@dataclass(slots=True, frozen=True)
class TransactionDescription:
    """A transaction; its start time is None if it is not open."""

    coordinator_id: int
    state: TransactionState
    producer_id: int
    producer_epoch: int
    transaction_timeout_ms: int
    transaction_start_time_ms: int | None
    topic_partitions: list[TopicPartition]


@dataclass(slots=True, frozen=True)
class AbortTransactionSpec:
    """The transaction to abort in a partition; `describe_producers` returns all of these."""

    topic_partition: TopicPartition
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int | None = None


@dataclass(slots=True, frozen=True)
class FencedProducer:
    """The producer id and epoch that the next producer of a transactional id starts from."""

    producer_id: int
    producer_epoch: int


def list_transactions(
    admin: AdminRequests,
    *,
    states: Iterable[TransactionState] = (),
    producer_ids: Iterable[int] = (),
    duration_ms: int = -1,
    transactional_id_pattern: str | None = None,
    request_timeout: float = UNSET,
) -> Coroutine[Any, Any, Results[int, list[TransactionListing]]]:
    """Returns the transactions that each broker coordinates, by broker id.

    They can be restricted to states, to producer ids, to those open for longer than
    `duration_ms`, and to ids that match a pattern (RE2).
    """
    request = ListTransactionsRequest(
        state_filters=[state.value for state in states],
        producer_id_filters=list(producer_ids),
        duration_filter=duration_ms,
        transactional_id_pattern=transactional_id_pattern,
    )
    deadline = admin.deadline(request_timeout)

    async def list_on(node: int | None, _: int) -> list[TransactionListing] | KafkaError:
        response = await admin.send(request, node, deadline=deadline)
        return error_of(response) or [
            TransactionListing(
                transaction.transactional_id,
                transaction.producer_id,
                TransactionState(transaction.transaction_state),
            )
            for transaction in response.transaction_states
        ]

    async def list_on_all() -> Results[int, list[TransactionListing]]:
        brokers = {broker: broker for broker in await admin.broker_ids(deadline)}
        return await admin.route_to_brokers(brokers, one_request_per_item(list_on), deadline)

    return list_on_all()


def describe_transactions(
    admin: AdminRequests, transactional_ids: list[str], *, request_timeout: float = UNSET
) -> Coroutine[Any, Any, Results[str, TransactionDescription]]:
    """Returns state, producer and partitions of transactions, by transactional id."""
    require_list("transactional_ids", transactional_ids, str)
    deadline = admin.deadline(request_timeout)

    async def exchange(
        node: int | None, batch: list[str]
    ) -> Mapping[str, TransactionDescription | KafkaError]:
        assert node is not None, "transactions have coordinators"
        request = DescribeTransactionsRequest(transactional_ids=batch)
        response = await admin.send(request, node, deadline=deadline)
        return {
            transaction.transactional_id: _described(transaction, node)
            for transaction in response.transaction_states
        }

    return admin.route_to_coordinators(
        CoordinatorType.TRANSACTION, transactional_ids, exchange, deadline
    )


def abort_transaction(
    admin: AdminRequests, spec: AbortTransactionSpec, *, request_timeout: float = UNSET
) -> Coroutine[Any, Any, None]:
    """Aborts a hanging transaction in one partition.

    It is for transactions whose coordinator has no record of them: `describe_producers` has all
    that the spec needs.
    """
    if not isinstance(spec, AbortTransactionSpec):
        raise TypeError(f"{spec!r} is not an AbortTransactionSpec")
    deadline = admin.deadline(request_timeout)
    partition, epoch = spec.topic_partition, spec.coordinator_epoch
    topic = WritableTxnMarkerTopic(name=partition.topic, partition_indexes=[partition.partition])
    marker = WritableTxnMarker(
        producer_id=spec.producer_id,
        producer_epoch=spec.producer_epoch,
        transaction_result=False,
        topics=[topic],
        coordinator_epoch=_NO_COORDINATOR_EPOCH if epoch is None else epoch,
    )

    async def exchange(
        leader: int | None, _: list[TopicPartition]
    ) -> Mapping[TopicPartition, KafkaError | None]:
        request = WriteTxnMarkersRequest(markers=[marker])
        response = await admin.send(request, leader, deadline=deadline)
        return {
            TopicPartition(topic.name, partition.partition_index): error_of(partition)
            for written in response.markers
            for topic in written.topics
            for partition in topic.partitions
        }

    async def abort() -> None:
        (await admin.route_to_leaders([partition], exchange, deadline)).all()

    return abort()


def fence_producers(
    admin: AdminRequests, transactional_ids: list[str], *, request_timeout: float = UNSET
) -> Coroutine[Any, Any, Results[str, FencedProducer]]:
    """Fences the producers that use these transactional ids; results are by id.

    Their open transactions are aborted.
    """
    require_list("transactional_ids", transactional_ids, str)
    deadline = admin.deadline(request_timeout)

    async def fence(node: int | None, transactional_id: str) -> FencedProducer | KafkaError:
        request = InitProducerIdRequest(
            transactional_id=transactional_id,
            transaction_timeout_ms=admin.settings.request_timeout_ms,
        )
        response = await admin.send(request, node, deadline=deadline)
        return error_of(response) or FencedProducer(response.producer_id, response.producer_epoch)

    return admin.route_to_coordinators(
        CoordinatorType.TRANSACTION, transactional_ids, one_request_per_item(fence), deadline
    )


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


def _described(
    transaction: DescribedTransaction, coordinator_id: int
) -> TransactionDescription | KafkaError:
    if transaction.error_code:
        return broker_error(transaction.error_code)
    started_ms = transaction.transaction_start_time_ms
    return TransactionDescription(
        coordinator_id,
        TransactionState(transaction.transaction_state),
        transaction.producer_id,
        transaction.producer_epoch,
        transaction.transaction_timeout_ms,
        started_ms if started_ms >= 0 else None,
        [
            TopicPartition(topic.topic, index)
            for topic in transaction.topics
            for index in topic.partitions
        ],
    )


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
        return error_of(response)

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
        return None if is_done else error_of(response)

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
